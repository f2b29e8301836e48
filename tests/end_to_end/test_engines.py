"""Whatever engine counts a table, it counts the same, and refuses the same."""

import datetime
import subprocess
import sys
import traceback
import tracemalloc
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privurn
from csv_cases import AMBIGUOUS, CASES
from hostile_table import DOMAINS, REFUSED, SETS, TABLE, by_query, cells, hostile, outcome, untyped
from privurn.domain import Bins, Categories, Dates, Grid, JointDomain, OpenLabels, TableDomain
from privurn.errors import DomainError, FormatError
from privurn.mechanisms.marginal_counts import MarginalLayout, count_marginals
from privurn.mechanisms.sums.table_statistic import TableStatistic
from privurn.privacy.entropy import SeededEntropy
from privurn.releases.statistics import release_statistics
from privurn.tables import count_cells, count_labels, open_table, spark_files
from privurn.tables.cell_batches import cell_batches
from privurn.tables.figures import table_figures
from privurn.tables.marginals import count_sets
from privurn.tables.special_cells import SpecialCells
from spark_session import asked, local_session, spark_frame, why_not
from statistics_in_sql import REFUSED_SUMS, STATISTICS, WHOLE, sums

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")


def labels(data, column):
    with open_table(data) as source:
        return outcome(lambda: count_labels(source, column))


@pytest.fixture(scope="module")
def engines():
    """The hostile table in both engines, in a session whose time zone has gaps."""
    session = local_session()
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    table = hostile()
    return untyped(table), spark_frame(table)


@pytest.mark.parametrize("domain", DOMAINS, ids=["text and numbers", "whole numbers and times", "dates"])
def test_engines_agree_on_every_record_of_a_hostile_table(engines, domain):
    here, there = engines
    expected = cells(here, domain)
    assert len(expected[0]) > 15  # the records are told apart, so that an exchange of two would be seen
    assert cells(there, domain) == expected


def test_a_list_that_no_record_can_be_on_is_counted_as_others(engines):
    here, there = engines
    domain = {"small": Categories(["0.5", "north"], outside="other", nulls="cell")}
    assert cells(there, domain) == cells(here, domain) == ([2, 3], [68, 17])


@pytest.mark.long
def test_nothing_of_a_users_session_is_in_the_way_or_left_behind(engines):
    session = local_session()
    session.range(3).createOrReplaceTempView("t")
    before = {each.name for each in session.catalog.listTables()}
    here, there = engines
    domain = {"yes": Categories([True, False], outside="other", nulls="cell")}
    assert cells(there, domain) == cells(here, domain)
    assert {each.name for each in session.catalog.listTables()} == before


def test_a_failing_frame_is_refused_without_the_record_that_spark_quotes():
    local_session()
    bad = spark_frame(pa.table({"x": ["1", "PLANTED-4711"]})).selectExpr("CAST(x AS INT) AS x")
    with pytest.raises(Exception, match="PLANTED"):
        bad.toArrow()
    with pytest.raises(FormatError) as refused:
        privurn.release(bad, domain=Grid(0, 9, 1), epsilon=1)
    assert "PLANTED" not in "".join(traceback.format_exception(refused.value))


def by_streaming(data, domain):
    """Marginals as they are counted from records that pass by, and what stands for no value."""
    special = SpecialCells(domain.columns)
    with open_table(data) as source:
        found = count_marginals(cell_batches(source, domain, special=special), MarginalLayout(domain.sizes, SETS))
    return found.counts.tolist(), found.n, special.found


def test_marginals_counted_by_a_query_are_those_of_records_passing_by():
    table = untyped(hostile())
    assert by_query(table, TableDomain(TABLE)) == by_streaming(table, TableDomain(TABLE))


def test_marginals_are_the_same_in_both_engines(engines):
    here, there = engines
    expected = by_query(here, TableDomain(TABLE))
    assert by_query(there, TableDomain(TABLE)) == expected
    assert expected[2]["number", "below"] > 0 < expected[2]["label", "other"]


@pytest.mark.long
def test_a_custodian_is_told_the_same_of_both_engines(engines):
    found = []
    for each in engines:
        with open_table(each) as source:
            found.append(
                table_figures(source, {**TABLE, "day": Dates("2000-01-01", "2030-01-01", "year"), "small": OpenLabels()})
            )
    assert found[0] == found[1]


@pytest.mark.parametrize("why", ["missing values", *(pytest.param(why, marks=pytest.mark.long) for why in list(REFUSED)[1:])])
def test_engines_refuse_alike(engines, why):
    here, there = engines
    expected = cells(here, REFUSED[why])
    assert issubclass(expected[0], DomainError)
    assert cells(there, REFUSED[why]) == expected
    if why != "no such column":
        with pytest.raises(DomainError) as by_streams, open_table(here) as source:
            list(cell_batches(source, TableDomain(REFUSED[why])))
        for each in engines:
            with pytest.raises(DomainError) as refusal, open_table(each) as source:
                count_sets(source, TableDomain(REFUSED[why]), ((0,),))
            assert str(refusal.value) == str(by_streams.value)


@pytest.mark.long
@pytest.mark.parametrize("column", hostile().column_names)
def test_labels_are_written_alike(engines, column):
    here, there = engines
    assert labels(there, column) == labels(here, column)


RANDOM = st.fixed_dictionaries(
    {
        "text": st.text(st.characters(codec="utf-8"), max_size=4)
        | st.text("0123456789.eE+-_ \tdfxnaiNI\x00", max_size=8)
        | st.none(),
        "number": st.floats() | st.none(),
        "whole": st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 12) | st.none(),
    }
)


@pytest.mark.long
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(RANDOM, min_size=2, max_size=200), listed=st.sets(st.text(max_size=3), min_size=1, max_size=5))
def test_engines_agree_on_random_tables(records, listed):
    kinds = {"text": pa.string(), "number": pa.float64(), "whole": pa.int64()}
    table = pa.table({name: pa.array([each[name] for each in records], kind) for name, kind in kinds.items()})
    policy = {"outside": "other", "nulls": "cell"}
    keep = [each for each in sorted(listed) if each.strip() and each.isprintable() and each != "other"] or ["a"]
    here, there = untyped(table), spark_frame(table)
    for domain in (
        {"text": Grid(0, 9, "0.1", **policy), "number": Grid(-5, 5, "0.4", **policy), "whole": Bins([0, 3, 10], **policy)},
        {"text": Categories(dict.fromkeys(each.strip() for each in keep), **policy)},
    ):
        assert cells(there, domain) == cells(here, domain)


def test_only_one_kind_of_spark_can_be_asked_for(privurn_command, tmp_path):
    words = ["release", "x.parquet", "--column", "x", "--grid", "0:9:1", "--epsilon", "1", "-o", str(tmp_path / "out")]
    for extra, said in {
        ("--engine", "spark"): "needs a master",
        ("--engine", "spark", "--master", "local[2]", "--remote", "sc://127.0.0.1"): "needs a master",
        ("--engine", "spark", "--remote", "http://x"): "begins with sc://",
        ("--engine", "polars"): "is not known",
        ("--master", "local[2]"): "are Spark's",
    }.items():
        for typed in (words, ["compare", *words[1:-2]], ["verify", str(tmp_path)]):
            done = privurn_command(*typed, *extra)
            assert done.returncode == 2
            assert said in " ".join(done.stderr.split())


def test_whole_tables_are_not_compared_by_spark(privurn_command):
    words = "compare x.parquet --mechanism noisy-marginals --grid a=0:9:1 --grid b=0:9:1 --epsilon 1"
    done = privurn_command(*words.split(), "--engine", "spark", "--master", "local[2]")
    assert done.returncode == 2
    assert "compared on this computer" in " ".join(done.stderr.split())


@pytest.mark.long
def test_a_comparison_counts_by_either_engine(engines):
    from privurn.reports.comparison.comparison import Runs, compare

    domain = {"yes": Categories([True, False], outside="other", nulls="cell")}
    found = [
        compare(each, domain=domain, epsilon=1, delta=1e-6, runs=Runs(5, processes=1)).to_confidential() for each in engines
    ]
    assert found[0] == found[1]


def test_spark_on_this_computer_cannot_be_reached_from_others():
    for master in ("local", "local[4]", "spark://127.0.0.1:7077", "spark://localhost:7077"):
        assert spark_files.settings(master)["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.bindAddress" not in spark_files.settings("spark://cluster.example:7077")
    assert all(spark_files.settings(each)["spark.ui.enabled"] == "false" for each in ("local", "yarn"))


@pytest.fixture
def planted(tmp_path):
    """Parquet files with text that must not be seen anywhere else."""
    table = pa.table(
        {"label": ["PLANTED-4711", "north", "south", "north"] * 50, "number": [0.5, 1e300, float("nan"), 3.0] * 50}
    )
    for i in range(2):
        pq.write_table(table, tmp_path / f"part-{i}.parquet")
    return tmp_path


@pytest.mark.long
def test_files_read_by_spark_give_the_release_that_duckdb_gives(planted):
    if reason := why_not():
        pytest.skip(reason)
    files, made = str(planted / "*.parquet"), {}
    [(kind, address)] = asked().items()
    for engine in (["--engine", "spark", f"--{kind}", address], []):
        folder = planted / f"out-{len(engine)}"
        domain = [
            "--column",
            "label",
            "--categories",
            "north,south",
            "--outside",
            "other",
            "--mechanism",
            "dirichlet-multinomial",
        ]
        words = ["release", files, *domain, "--epsilon", "1", "--delta", "1e-6", "--seed", "1", "-o", str(folder), *engine]
        done = subprocess.run([sys.executable, "-m", "privurn", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "PLANTED" not in done.stdout + done.stderr
        made[len(engine)] = (folder / "data.csv").read_bytes()
        assert privurn.verify(folder).reasons == ("the release was made with seeded randomness: not private",)
    assert made[0] == made[4]


def test_files_that_spark_would_pass_over_are_noticed(planted):
    (planted / "part-0.parquet").rename(planted / "_part-0.parquet")
    local_session()
    files = spark_files.SparkFiles(str(planted / "*.parquet"), **asked())
    with pytest.raises(DomainError, match="every record of the table once"):
        privurn.release(files, privurn.Urn(), domain={"label": Categories(["north"], outside="other")}, epsilon=1, delta=1e-6)


def read(data):
    """All records of a table, compared as they are compared with categories, or that it is refused."""
    try:
        with open_table(data) as source:
            wanted = ", ".join(f"{source.value(name)} AS v{i}" for i, name in enumerate(source.types))
            found = source.connection.sql(f"SELECT {wanted} FROM t").to_arrow_table().to_pylist()
            return list(source.types), source.untyped, sorted(map(repr, found)), source.rows()
    except FormatError:
        return "refused"


QUICK = ("quotes", "a long line")


@pytest.mark.parametrize("name", [each if each in QUICK else pytest.param(each, marks=pytest.mark.long) for each in CASES])
def test_csv_files_are_read_alike(tmp_path, name):
    local_session()
    path = tmp_path / "x.csv"
    path.write_bytes(CASES[name])
    there = read(spark_files.SparkFiles(str(path), **asked()))
    assert there == ("refused" if name in AMBIGUOUS else read(str(path)))
    assert (there == "refused") is (name in [*AMBIGUOUS, "a short line", "a long line", "a blank line"])


@pytest.mark.long
def test_csv_files_of_one_column_are_left_to_duckdb(tmp_path):
    local_session()
    (tmp_path / "x.csv").write_bytes(b"a\n1\n\n2\n")
    assert read(str(tmp_path / "x.csv"))[3] == 3
    assert read(spark_files.SparkFiles(str(tmp_path / "x.csv"), **asked())) == "refused"


@pytest.mark.long
def test_frames_come_out_as_frames_and_every_call_takes_them(engines):
    _, there = engines
    domain = {"yes": Categories([True, False], outside="other", nulls="cell")}
    out = privurn.release(there, privurn.Urn(records=9), domain=domain, epsilon=1, delta=1e-6, entropy=SeededEntropy(1))
    assert out.data.count() == 9
    privatised = privurn.privatise(there, domain=domain, epsilon=1)
    assert privatised.data.count() == privatised.table.num_rows == there.count()
    table = TableStatistic.calibrated(domain=domain, budget=WHOLE)
    assert release_statistics(there, mechanism=table, budget=WHOLE).statistics.n == there.count()
    counts = release_statistics(there, mechanism=STATISTICS["whole counts"], budget=WHOLE)
    assert counts.statistics.n == there.count()


@pytest.mark.parametrize(
    "name", ["a logistic regression", *(pytest.param(name, marks=pytest.mark.long) for name in STATISTICS if name[:3] != "a l")]
)
def test_sums_are_the_same_to_the_last_unit(engines, name):
    here, there = engines
    assert sums(there, STATISTICS[name]) == sums(here, STATISTICS[name])


@pytest.mark.long
@pytest.mark.parametrize("why", REFUSED_SUMS)
def test_sums_are_refused_alike(engines, why):
    here, there = engines
    assert sums(there, REFUSED_SUMS[why]) == sums(here, REFUSED_SUMS[why])


OTHER = {"outside": "other", "nulls": "cell"}
STEPS = [1_711_848_600 * 10**9 + 999, 1_704_067_200 * 10**9 - 1, -1, None]
RARE = {
    "nanoseconds": pa.array(STEPS, pa.timestamp("ns")),
    "instants in nanoseconds": pa.array(STEPS, pa.timestamp("ns", tz="UTC")),
    "times of day": pa.array([datetime.time(1, 30), datetime.time(23, 59, 59, 500_000), None], pa.time64("us")),
    "floats of 16 bits": pa.array([np.float16(0.1), np.float16(2.5), None], pa.float16()),
    "decimals of 70 digits": pa.array([Decimal("0.5"), Decimal("1e30"), None], pa.decimal256(70, 38)),
}
"""What Spark does not read of Parquet files."""
KEPT = {
    "beyond 63 bits": pa.array([2**64 - 1, 2**64 - 2**11, 2**63, 2**53 + 1, 3, 0, None], pa.uint64()),
    "256 bits for 38 digits": pa.array([Decimal("0.1"), Decimal("2.5"), None], pa.decimal256(38, 10)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", KEPT)
def test_numbers_of_parquet_files_that_spark_stores_as_others_are_counted_alike(tmp_path, name):
    local_session()
    path = str(tmp_path / "x.parquet")
    pq.write_table(pa.table({"x": KEPT[name]}), path)
    there = spark_files.SparkFiles(path, **asked())
    for domain in (
        Grid(0, 2**64, 2**60, **OTHER),
        Bins([0, 0.1, 2.5, 2**53, 2**53 + 2, 2**63, 2**64], **OTHER),
        Categories([2**64 - 1, 2**63, 2**53, 3, "0.1", "2.5"], **OTHER),
        Dates("2024-01-01", "2025-01-01", "month"),
    ):
        assert cells(there, {"x": domain}) == cells(path, {"x": domain})
    assert labels(there, "x") == labels(path, "x")


@pytest.mark.long
@pytest.mark.parametrize("name", RARE)
def test_columns_that_spark_does_not_read_are_named_before_anything_is_paid(tmp_path, name):
    local_session()
    path, ledger = str(tmp_path / "x.parquet"), tmp_path / "ledger"
    pq.write_table(pa.table({"a column": RARE[name], "other": pa.array([1] * len(RARE[name]))}), path)
    assert sum(labels(path, "a column")[1]) == len(RARE[name])
    with pytest.raises(FormatError, match=r"of 'a column'\.\n  Leave Spark out, or write times in microseconds"):
        privurn.release(spark_files.SparkFiles(path, **asked()), domain={"other": Grid(0, 1, 1)}, epsilon=1, ledger=ledger)
    assert not ledger.exists()


@pytest.mark.long
def test_frames_of_times_and_of_collated_text_are_counted_alike():
    session = local_session()
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    words = ["north", "North", "NORTH ", "süd", "SÜD", None]
    times = RARE["times of day"].to_pylist() * 2
    table = pa.table(
        {"word": words, "time": pa.array(times, pa.time64("us")), "step": pa.array([*STEPS, *STEPS[:2]], pa.timestamp("ns"))}
    )
    there = spark_frame(table).selectExpr("word COLLATE UTF8_LCASE AS word", "time", "step")
    assert "collate" in there.schema["word"].simpleString()
    domain = {
        "word": Categories(["north", "süd"], **OTHER),
        "time": Categories(["01:30:00", "23:59:59.5"], **OTHER),
        "step": Dates("1969-12-01", "2024-12-31", "month", nulls="cell"),
    }
    here = untyped(table)
    found = cells(here, domain)
    assert len(found[0]) == 6
    assert cells(there, domain) == found
    assert [labels(there, each) for each in ("word", "time")] == [labels(here, each) for each in ("word", "time")]
    for refused in (Grid(0, 9, 1), Dates("2024-01-01", "2025-01-01", "month")):
        assert cells(there, {"time": refused}) == cells(here, {"time": refused})


@pytest.mark.long
def test_the_drivers_memory_follows_distinct_values():
    session = local_session()
    peaks = []
    for rows in (2_000, 2_000_000):
        frame = session.range(rows).selectExpr("id % 50 AS x")
        tracemalloc.start()
        try:
            with open_table(frame) as source:
                assert count_cells(source, JointDomain({"x": Grid(0, 49, 1)})).n == rows
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2**20  # two million records of eight bytes would be 16 times that
