"""Releases as large as what they are made from: executors write them, and may be killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples.spark_demo import cluster

import privurn
from privurn.counts import CountTable
from privurn.domain import Categories, Grid
from privurn.privacy.entropy import SeededEntropy
from privurn.privacy.ledger import Ledger
from privurn.tables import blocks
from privurn.tables.blocks import Blocks, Here
from spark_session import local_session, spark_frame, why_not

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")

ALONE = """
import pickle, sys
sys.modules["privurn"] = None  # importing it fails
with open("task", "rb") as handle:
    task = pickle.load(handle)
print(*task(1))
"""


def test_what_executors_run_does_not_need_privurn_there(tmp_path):
    if reason := why_not():
        pytest.skip(reason)
    from pyspark import cloudpickle

    from privurn.tables import part_file

    class Packed(Here):
        def answers(self, task, number):
            cloudpickle.register_pickle_by_value(part_file)
            (tmp_path / "task").write_bytes(cloudpickle.dumps(task))
            return super().answers(task, number)

    counts = [CountTable(np.array([0, 2]), np.array([3, 4])), CountTable(np.array([2]), np.array([5]))]
    drawn = Blocks.drawn(counts, decode=lambda cells: pa.table({"x": cells}), words=SeededEntropy(1).words, tasks=Packed())
    here = drawn.write(tmp_path, "parquet")
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=tmp_path, capture_output=True, text=True, check=True)
    name, rows, sha256 = done.stdout.split()
    assert (int(rows), sha256) == here[1][1:]  # the same bytes, whoever writes them
    assert name != here[1][0]


@pytest.mark.long
def test_executors_write_the_blocks_that_the_driver_has_drawn(monkeypatch, tmp_path):
    local_session()
    monkeypatch.setattr(blocks, "SIZE", 1_000)
    table = pa.table({"age": np.arange(4_000) % 7, "region": ["north", "south", "south", None] * 1_000})
    domain = {"age": Grid(0, 6, 1), "region": Categories(["north", "south"], nulls="cell")}
    out = privurn.release(spark_frame(table), privurn.Urn(records=3_500), domain=domain, epsilon=1, delta=1e-6)
    assert [int(each.counts.sum()) for each in out.table.blocks] == [1_000, 1_000, 1_000, 500]
    assert out.data.toArrow().to_pylist() == out.table.to_arrow().to_pylist()
    for file_format in ("parquet", "csv"):
        folder = tmp_path / file_format
        saved = out.save(folder, file_format=file_format)
        assert privurn.verify(folder).valid
        assert saved.certificate["output"]["rows"] == 3_500
        assert len(list((folder / "data").iterdir())) == 4
    assert pq.read_table(tmp_path / "parquet" / "data").to_pylist() == out.table.to_arrow().to_pylist()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["csv", "parquet"]


@pytest.mark.long
def test_records_from_a_posterior_are_written_by_executors_too(monkeypatch, tmp_path):
    local_session()
    monkeypatch.setattr(blocks, "SIZE", 1_000)
    frame = spark_frame(pa.table({"age": np.arange(4_000) % 64}))
    out = privurn.release(frame, privurn.NoisyTree(), domain={"age": Grid(0, 63, 1)}, epsilon=1)
    out = out.save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").valid
    assert out.certificate["synthetic"]["file"] == "manifest.json"
    assert out.data.count() == out.certificate["synthetic"]["rows"] == 4_000


DRIVER = '''
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
    wait("counting")
    yield from batches

write_part = blocks.write_part

def written(rows, places, counts, key, folder, suffix):
    if not os.path.exists(here / "go-writing"):
        open(os.path.join(folder, f"half-{os.getpid()}.{suffix}"), "w").write("half")
    wait("writing")
    return write_part(rows, places, counts, key, folder, suffix)

blocks.SIZE, blocks.write_part = 1_000, written
builder = SparkSession.builder.master(master).config("spark.executor.memory", "512m")
for key, value in spark_files.settings(master).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
frame = spark.range(0, 4_000, 1, 4).selectExpr("id % 7 AS age").mapInArrow(slowly, "age bigint")
ledger = here / "ledger"
out = privurn.release(
    frame, privurn.Urn(records=3_500), domain={"age": privurn.Grid(0, 6, 1)}, epsilon=1, delta=1e-6, ledger=ledger
)
out.save(here / "out")
'''


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """A cluster of one master and two workers on this computer, and its logs."""
    if reason := why_not():
        pytest.skip(reason)
    logs = tmp_path_factory.mktemp("cluster") / "logs"
    with cluster(logs) as address:
        yield address


def driver(master, folder, *waiting):
    (folder / "driver.py").write_text(DRIVER)
    Ledger.create(folder / "ledger", epsilon=1.5, delta=1e-5)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    words = [sys.executable, "driver.py", master, str(folder), *waiting]
    log = (folder / "driver.log").open("w")
    return subprocess.Popen(words, cwd=folder, env=environment, stdout=log, stderr=log)


def executor_of(folder: Path, stage, process):
    """Process number of an executor that has begun with a stage, once there is one."""
    deadline = time.monotonic() + 900
    while not (found := [each for each in folder.glob(f"{stage}-*") if each.suffix != ".part"]):
        assert process.poll() is None, (folder / "driver.log").read_text()
        assert time.monotonic() < deadline, "no executor came so far"
        time.sleep(0.2)
    return int(found[0].read_text())


@pytest.mark.long
def test_executors_killed_while_they_count_and_while_they_write_change_nothing(master, tmp_path):
    process = driver(master, tmp_path, "counting", "writing")
    try:
        for stage in ("counting", "writing"):
            os.kill(executor_of(tmp_path, stage, process), signal.SIGKILL)
            (tmp_path / f"go-{stage}").touch()
        assert process.wait(900) == 0, (tmp_path / "driver.log").read_text()
    finally:
        process.kill()
    assert privurn.verify(tmp_path / "out").valid
    parts = sorted((tmp_path / "out" / "data").iterdir())
    assert [len(each.read_text().splitlines()) - 1 for each in parts] == [1_000, 1_000, 1_000, 500]
    ledger = Ledger(tmp_path / "ledger")
    assert len(ledger.entries()) == 1  # paid once, although it was done in several attempts
    assert ledger.remaining()["epsilon"] == 0.5
    assert not list(tmp_path.glob(".privurn-*"))


@pytest.mark.long
def test_a_driver_killed_while_executors_write_has_paid_and_leaves_no_release(master, tmp_path):
    process = driver(master, tmp_path, "writing")
    try:
        executor_of(tmp_path, "writing", process)
    finally:
        process.kill()
        process.wait(60)
    (tmp_path / "go-writing").touch()
    ledger = Ledger(tmp_path / "ledger")
    assert len(ledger.entries()) == 1
    assert ledger.remaining()["epsilon"] == 0.5
    assert not (tmp_path / "out").exists()
