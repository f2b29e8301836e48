"""Frames, sessions and commands that a careless or hostile person gives Spark: refused in words, and no record is in them."""

import os
import subprocess
import sys
import traceback

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privurn
from hostile_table import DOMAINS, TABLE, by_query, cells, hostile, labels, untyped
from privurn.domain import Bins, Bounds, Categories, Grid, TableDomain
from privurn.errors import PrivurnError
from privurn.privacy.ledger import Ledger
from privurn.reports.comparison.comparison import Runs, compare
from spark_session import local_session, spark_frame, why_not

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning"),
]

OTHER = {"outside": "other", "nulls": "cell"}
GRID = {"x": Grid(0, 9, 1, **OTHER)}
CALLS = {
    "release": lambda frame: privurn.release(frame, privurn.Urn(records=5), domain=GRID, epsilon=1, delta=1e-6),
    "release of labels": lambda frame: privurn.release(frame, domain={"x": privurn.OpenLabels()}, epsilon=1, delta=1e-6),
    "marginals": lambda frame, **paid: privurn.release(
        frame, privurn.Marginals(), domain={**GRID, "y": GRID["x"]}, epsilon=1, **paid
    ),
    "privatise": lambda frame, **paid: privurn.privatise(frame, domain={"x": Bounds(0, 9)}, epsilon=1, **paid),
    "privatise of labels": lambda frame, **paid: privurn.privatise(
        frame, domain={"x": Categories(["1", "2"], **OTHER)}, epsilon=1, **paid
    ),
    "noisy counts": lambda frame: privurn.release(frame, privurn.NoisyCounts(publish="counts"), domain=GRID, epsilon=1),
    "sums": lambda frame: privurn.release(
        frame, privurn.Sums("normal", response="x"), domain={"x": Bounds(0, 9)}, epsilon=1, delta=1e-6
    ),
    "check": lambda frame: privurn.check(frame, domain=GRID),
    "compare": lambda frame: compare(frame, domain=GRID, epsilon=1, delta=1e-6, runs=Runs(2, processes=1)),
}


def refusal(work):
    """What a person sees of it."""
    with pytest.raises(PrivurnError) as refused:
        work()
    return "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("call", CALLS)
def test_a_record_that_spark_fails_on_is_in_no_exception(call):
    local_session()
    bad = spark_frame(pa.table({"x": ["1", "PLANTED-4711"], "y": ["1", "2"]})).selectExpr("CAST(x AS INT) AS x", "y")
    said = refusal(lambda: CALLS[call](bad))
    assert "PLANTED" not in said


@pytest.mark.parametrize("call", CALLS)
def test_empty_frames_are_refused_as_such(call):
    empty = local_session().range(0).selectExpr("id AS x", "id AS y")
    assert "the table is empty" in refusal(lambda: CALLS[call](empty))


def test_frames_without_columns_are_refused():
    assert "no columns" in refusal(lambda: CALLS["release"](local_session().range(3).select()))


def growing(folder):
    """A frame that has a record more each time it is read."""

    def grow(batches):
        for _ in batches:
            read = len(os.listdir(folder))
            open(os.path.join(folder, str(read)), "x").close()
            yield pa.RecordBatch.from_pydict({"x": [1] * (10 + read), "y": [2] * (10 + read)})

    return local_session().range(0, 1, 1, 1).mapInArrow(grow, "x bigint, y bigint")


ONCE = ("release", "release of labels", "noisy counts", "sums", "check")
"""Calls that ask one question of a table."""


@pytest.mark.parametrize("call", ONCE)
def test_a_frame_is_computed_once_and_so_is_one_table(call, tmp_path):
    CALLS[call](growing(tmp_path))
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize("call", [each for each in CALLS if each not in (*ONCE, "compare")])
def test_a_frame_that_changes_its_size_is_refused_before_it_is_paid_for(call, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=2, delta=1e-5)
    (tmp_path / "read").mkdir()
    said = refusal(lambda: CALLS[call](growing(tmp_path / "read"), ledger=ledger.path))
    assert "not every record of the table once" in said
    assert not ledger.entries()


@pytest.mark.parametrize("domain", [Bounds(0, 9), Categories(range(10))], ids=["numbers", "cells"])
def test_records_that_change_once_they_are_paid_for_are_noised_as_something(domain, tmp_path):
    """Neither fails, because a failing task would log the record, and whether it fails would tell of it."""
    flag = str(tmp_path / "drawing")

    def spoiled(batches):
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"x": pa.array([None, 4711] * (batch.num_rows // 2), pa.int64())})

    def changing(batches):
        return spoiled(batches) if os.path.exists(flag) else batches

    def progress(stage):
        if stage == "drawing":
            open(flag, "x").close()

    frame = local_session().range(0, 100, 1, 2).selectExpr("id % 10 AS x").mapInArrow(changing, "x bigint")
    out = privurn.privatise(frame, domain={"x": domain}, epsilon=1, progress=progress)
    assert out.table.num_rows == 100
    assert out.table["x"].null_count == 0
    assert not np.isnan(out.table["x"].to_numpy().astype(float)).any()


SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "Pacific/Apia",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
}
"""Of a session, each of which gives some query another meaning or another plan."""


@pytest.fixture
def unusual():
    """A session with such settings, which it loses again."""
    session = local_session()
    before = {name: session.conf.get(name) for name in SETTINGS}
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    yield session
    for name, value in before.items():
        session.conf.set(name, value)


def test_settings_of_a_session_change_no_count(unusual):
    unusual.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    table = hostile()
    here, there = untyped(table), spark_frame(table)
    for domain in DOMAINS:
        assert cells(there, domain) == cells(here, domain)
    assert by_query(there, TableDomain(TABLE)) == by_query(here, TableDomain(TABLE))
    for column in ("label", "number", "instant"):
        assert labels(there, column) == labels(here, column)


NAMES = [
    "",
    " ",
    "a.b",
    "a`b",
    'a"b',
    "c0",
    "c1",
    "t",
    "x0",
    "cell",
    "n",
    "x",
    "X",
    "x'; DROP VIEW t; --",
    "${spark.master}",
    "é\n",
]


def test_names_of_columns_are_never_spoken_in_sql():
    columns = [f"id % {i + 2} AS c{i}" for i in range(len(NAMES))]
    there = local_session().range(100).selectExpr(*columns).toDF(*NAMES)
    here = pa.table([pa.array([each % (i + 2) for each in range(100)]) for i in range(len(NAMES))], names=NAMES)
    two = Grid(0, 1, 1, **OTHER)
    for names in (NAMES[:8], NAMES[8:]):
        domain = dict.fromkeys(names, two)
        assert cells(there, domain) == cells(here, domain)
    for name in NAMES:
        assert f"no column {name + '?'!r}" in cells(there, {name + "?": two})[1]
    twice = there.toDF(*["x"] * len(NAMES))
    assert "same name" in refusal(lambda: CALLS["release"](twice))


TYPES = {
    "decimal(38,0)": ["99999999999999999999999999999999999999", "-1", "3", None],
    "decimal(20,0)": ["18446744073709551615", "9007199254740993", "3", None],
    "decimal(5,2)": ["2.49", "2.50", "-999.99", None],
    "tinyint": ["-128", "127", "3", None],
    "char(9)": ["2.50", "north", "3", None],
    "varchar(9)": ["2.50", "north", "3", None],
    "string COLLATE UNICODE_CI_AI": ["NÖRTH", "north", "3", None],
    "string COLLATE UTF8_BINARY_RTRIM": ["north  ", "north", "3 ", None],
}


@pytest.mark.parametrize("kind", TYPES)
def test_numbers_and_text_of_any_length_and_collation_are_what_their_text_says(kind):
    """Compared with the same as text, which has no type."""
    words = TYPES[kind] * 2
    there = spark_frame(pa.table({"x": pa.array(words, pa.string())})).selectExpr(f"CAST(x AS {kind}) AS x")
    here = untyped(pa.table({"x": pa.array(words, pa.string())}))
    for domain in (Grid(0, 9, "0.5", **OTHER), Grid(-999, 999, 1, **OTHER), Bins([-1, 2.5, 2**53, 2**64], **OTHER)):
        assert cells(there, {"x": domain}) == cells(here, {"x": domain})
    listed = {"x": Categories(["north", "3"], **OTHER)}
    assert cells(there, listed) == cells(here, listed)


WORDS = {
    "release": "--column x --grid 0:9:1 --epsilon 1 --delta 1e-6 -o out",
    "privatise": "--column x --bounds 0:9 --epsilon 1 -o out",
    "statistics": "--model normal --y x --bounds 0:9 --epsilon 1 -o out",
    "compare": "--column x --grid 0:9:1 --epsilon 1 --delta 1e-6",
}


def commanded(privurn_command, folder, *words, **environment):
    """A command that is refused."""
    known = {**os.environ, "PYSPARK_PYTHON": sys.executable, **environment}
    done = privurn_command(*words, cwd=folder, env=known, timeout=1_800)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "PLANTED" not in done.stdout + done.stderr
    assert {each.name for each in folder.iterdir()} <= {"x.parquet", "x.parquet.ledger"}
    return " ".join(done.stderr.split())


@pytest.fixture
def here(tmp_path):
    """A folder with a file, and a ledger that nothing is taken from."""
    if reason := why_not():
        pytest.skip(reason)
    pq.write_table(pa.table({"x": ["PLANTED-4711", "3"]}), tmp_path / "x.parquet")
    Ledger.create(tmp_path / "x.parquet.ledger", epsilon=2, delta=1e-5)
    yield tmp_path
    assert not Ledger(tmp_path / "x.parquet.ledger").entries()


@pytest.mark.parametrize("command", WORDS)
def test_commands_without_a_file_or_a_spark_are_refused_in_words(privurn_command, here, command):
    words = [*WORDS[command].split(), "--engine", "spark"]
    local = [*words, "--master", "local[2]"]
    assert "no file" in commanded(privurn_command, here, command, "missing.parquet", *local)
    said = commanded(privurn_command, here, command, "x.parquet", *local, JAVA_HOME=str(here / "nowhere"))
    assert "Spark cannot start" in said
    assert "Java 17" in said
    said = commanded(privurn_command, here, command, "x.parquet", *words, "--remote", "sc://127.0.0.1:1")
    assert "nobody answers" in said


def test_a_wrong_master_is_refused_in_words(privurn_command, here):
    words = ["release", "x.parquet", *WORDS["release"].split()]
    assert "Spark cannot start" in commanded(privurn_command, here, *words, "--engine", "spark", "--master", "nonsense")


def test_a_spark_that_cannot_verify_is_refused_in_words(privurn_command, here):
    words = ["verify", "x.parquet", "--engine", "spark"]
    said = commanded(privurn_command, here, *words, "--master", "local[2]", JAVA_HOME=str(here / "nowhere"))
    assert "Spark cannot start" in said
    assert "nobody answers" in commanded(privurn_command, here, *words, "--remote", "sc://127.0.0.1:1")


STOPPED = """
import sys, warnings
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
import privurn
from privurn.tables.spark_files import settings

builder = SparkSession.builder.master("local[1]")
for key, value in settings("local[1]").items():
    builder = builder.config(key, value)
session = builder.getOrCreate()
frame = session.createDataFrame([("PLANTED-4711",)], "x string")
session.stop()
try:
    privurn.release(frame, domain={"x": privurn.Categories(["a"], outside="other")}, epsilon=1, delta=1e-6)
except privurn.errors.FormatError as error:
    print(error)
"""


def test_a_frame_whose_session_is_gone_is_refused(tmp_path):
    if reason := why_not():
        pytest.skip(reason)
    done = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "Spark cannot read the table" in done.stdout, done.stderr
    assert "PLANTED" not in done.stdout + done.stderr
