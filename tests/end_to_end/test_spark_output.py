"""Releases as large as what they are made from: executors write them."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privurn
from privurn.counts import CountTable
from privurn.domain import Categories, Grid
from privurn.privacy.entropy import SeededEntropy
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
