"""A standalone cluster on this computer: it counts what DuckDB counts, logs no record, and loses executors without harm."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples.spark_demo import cluster

import privurn
from privurn.privacy.ledger import Ledger
from spark_session import why_not

pytestmark = pytest.mark.long

BEGINNING = '''
import os, sys, time, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from pyspark.sql import SparkSession
import privurn
from privurn.tables import blocks, spark_files

master, here = sys.argv[1], Path(sys.argv[2])
waiting = sys.argv[3:]

def wait(stage):
    """Say which executor runs this, and go on when told so."""
    if stage in waiting and not os.path.exists(here / f"go-{stage}"):
        parent = int(open(f"/proc/{os.getppid()}/stat").read().rsplit(")", 1)[1].split()[1])
        open(here / f"{stage}-{os.getpid()}.part", "w").write(str(parent))
        os.rename(here / f"{stage}-{os.getpid()}.part", here / f"{stage}-{os.getpid()}")
        while not os.path.exists(here / f"go-{stage}"):
            time.sleep(0.1)

def slowly(batches):
    wait("noising" if os.path.exists(here / "drawing") else "counting")
    yield from batches

builder = SparkSession.builder.master(master).config("spark.executor.memory", "512m")
for key, value in spark_files.settings(master).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
ledger = here / "ledger"
blocks.SIZE, blocks.GROUP, blocks.WAVE_BLOCKS = 1_000, 1, 2
'''

DRIVER = (
    BEGINNING
    + """
write_records = blocks.write_records

def written(table, folder, suffix):
    if not os.path.exists(here / "go-writing"):
        open(os.path.join(folder, f"half-{os.getpid()}.{suffix}"), "w").write("half")
    wait("writing")
    if os.listdir(os.path.join(folder, "..", "data")):  # parts of the first wave
        wait("second-wave")
    return write_records(table, folder, suffix)

blocks.write_records = written
age, region = privurn.Grid(0, 6, 1), privurn.Grid(0, 2, 1)
frame = spark.range(0, 4_000, 1, 4).selectExpr("id % 7 AS age", "id % 3 AS region")
frame = frame.mapInArrow(slowly, "age bigint, region bigint")
out = privurn.release(frame, MADE, epsilon=1, delta=1e-6, ledger=ledger)
out.save(here / "out")
"""
)

MADE = {
    "an urn": "privurn.Urn(records=3_500), domain={'age': age}",
    "a whole table": "privurn.Marginals(records=3_500), domain={'age': age, 'region': region}",
}
URN, TABLE = (DRIVER.replace("MADE", each) for each in MADE.values())

NOISING = (
    BEGINNING
    + """
def progress(stage):
    if stage == "drawing":
        (here / "drawing").touch()

frame = spark.range(0, 4_000, 1, 4).selectExpr("id AS age").mapInArrow(slowly, "age bigint")
spark.conf.set("spark.privurn.staging", str(here))
every = privurn.Categories(range(4_000))
out = privurn.privatise(frame, domain={"age": every}, epsilon=41, ledger=ledger, progress=progress)
(here / "saving").touch()
out.save(here / "out")
"""
)
"""Randomised response that nearly always tells the truth: every record comes out once, if it is drawn and kept once."""


ENVIRONMENT = {**os.environ, "PYSPARK_PYTHON": sys.executable}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Where the cluster, its executors included, writes its logs."""
    return tmp_path_factory.mktemp("cluster") / "logs"


@pytest.fixture(scope="module")
def master(logs):
    """Address of a cluster of one master and two workers, which end with the tests."""
    if reason := why_not():
        pytest.skip(reason)
    with cluster(logs) as address:
        yield address


def driver(master, folder, *waiting, script=URN, epsilon=1.5):
    (folder / "driver.py").write_text(script)
    Ledger.create(folder / "ledger", epsilon=epsilon, delta=1e-5)
    words = [sys.executable, "driver.py", master, str(folder), *waiting]
    with (folder / "driver.log").open("w") as log:
        return subprocess.Popen(words, cwd=folder, env=ENVIRONMENT, stdout=log, stderr=log)


def executor_of(folder: Path, stage, process):
    """Process number of an executor that has begun with a stage, once there is one."""
    deadline = time.monotonic() + 1800
    while not (found := [each for each in folder.glob(f"{stage}-*") if each.suffix != ".part"]):
        assert process.poll() is None, (folder / "driver.log").read_text()
        assert time.monotonic() < deadline, "no executor came so far"
        time.sleep(0.2)
    return int(found[0].read_text())


@pytest.mark.parametrize("script", [URN, TABLE], ids=MADE)
def test_executors_killed_while_they_count_and_while_they_write_change_nothing(master, tmp_path, script):
    stages = ("counting", "writing", "second-wave")
    process = driver(master, tmp_path, *stages, script=script)
    try:
        for stage in stages:
            os.kill(executor_of(tmp_path, stage, process), signal.SIGKILL)
            (tmp_path / f"go-{stage}").touch()
        assert process.wait(1800) == 0, (tmp_path / "driver.log").read_text()
    finally:
        process.kill()
    assert privurn.verify(tmp_path / "out").valid
    parts = sorted((tmp_path / "out" / "data").iterdir())
    assert [len(each.read_text().splitlines()) - 1 for each in parts] == [1_000, 1_000, 1_000, 500]
    ledger = Ledger(tmp_path / "ledger")
    assert len(ledger.entries()) == 1  # paid once, although it was done in several attempts
    assert ledger.remaining()["epsilon"] == 0.5
    assert not list(tmp_path.glob(".privurn-*"))


def test_executors_killed_while_they_noise_and_while_they_write_draw_no_record_twice(master, tmp_path):
    process = driver(master, tmp_path, "noising", script=NOISING, epsilon=41.5)
    try:
        first = executor_of(tmp_path, "noising", process)
        os.kill(first, signal.SIGKILL)
        (tmp_path / "go-noising").touch()
        deadline = time.monotonic() + 1800
        while not (tmp_path / "saving").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        others = {int(each.read_text()) for each in tmp_path.glob("noising-*") if each.suffix != ".part"} - {first}
        for each in list(others)[:1]:
            os.kill(each, signal.SIGKILL)
        assert process.wait(1800) == 0, (tmp_path / "driver.log").read_text()
    finally:
        process.kill()
    assert privurn.verify(tmp_path / "out").valid
    parts = sorted((tmp_path / "out" / "data").iterdir())
    assert len(parts) == 4
    found = [int(line) for each in parts for line in each.read_text().splitlines()[1:]]
    assert sorted(found) == list(range(4_000))  # by chance not: below 1e-10
    assert found != sorted(found)
    ledger = Ledger(tmp_path / "ledger")
    assert len(ledger.entries()) == 1
    assert not list(tmp_path.glob(".privurn-*"))  # what was staged is gone with the driver


def kill_driver(master, folder, at, **options):
    """One that had come so far; its executors go on."""
    process = driver(master, folder, at, **options)
    try:
        executor_of(folder, at, process)
    finally:
        process.kill()
        process.wait(60)
    (folder / f"go-{at}").touch()


def test_a_driver_killed_while_executors_noise_has_paid_and_leaves_no_release(master, tmp_path):
    kill_driver(master, tmp_path, "noising", script=NOISING, epsilon=41.5)
    assert len(Ledger(tmp_path / "ledger").entries()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("at", ["writing", "second-wave"])
def test_a_driver_killed_while_executors_write_has_paid_and_leaves_no_release(master, tmp_path, at):
    kill_driver(master, tmp_path, at)
    ledger = Ledger(tmp_path / "ledger")
    assert len(ledger.entries()) == 1
    assert ledger.remaining()["epsilon"] == 0.5
    assert not (tmp_path / "out").exists()


def test_a_cluster_counts_what_duckdb_counts_and_logs_no_record(master, logs, tmp_path):
    table = {"label": ["PLANTED-4711", "north", "south", "north"] * 50, "number": [0.5, 1e300, float("nan"), 3.0] * 50}
    for i in range(2):
        pq.write_table(pa.table(table), tmp_path / f"part-{i}.parquet")
    words = "release *.parquet --column label --categories north,south --outside other --mechanism dirichlet-multinomial"
    words = [*words.split(), "--epsilon", "1", "--delta", "1e-6", "--seed", "1"]
    command = [sys.executable, "-m", "privurn", *words, "-o"]
    subprocess.run([*command, "here"], check=True, capture_output=True, cwd=tmp_path)
    there = [*command, "there", "--engine", "spark", "--master", master]
    done = subprocess.run(there, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "there" / "data.csv").read_bytes() == (tmp_path / "here" / "data.csv").read_bytes()
    written = [each.read_bytes() for each in logs.rglob("*") if each.is_file()]
    assert len([each for each in written if b"executor" in each.lower()]) > 2  # master, workers and executors wrote theirs
    assert not any(b"PLANTED" in each for each in [*written, done.stdout.encode(), done.stderr.encode()])


FAILING = """
import sys
from pyspark.sql import SparkSession
from privurn.tables.spark_files import settings

builder = SparkSession.builder.master(sys.argv[1])
for key, value in settings(sys.argv[1]).items():
    builder = builder.config(key, value)
try:
    builder.getOrCreate().range(4).selectExpr("CAST(concat('PLANTED-', id) AS INT) AS x").collect()
except Exception:
    print("failed, as it should")
"""


def test_a_record_in_the_logs_would_be_found(master, logs):
    """A plain cast, as privurn's queries have none, fails on a record, and Spark writes the record down."""
    done = subprocess.run([sys.executable, "-c", FAILING, master], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert "failed, as it should" in done.stdout, done.stderr
    assert any(b"PLANTED-" in each.read_bytes() for each in logs.rglob("*") if each.is_file())
