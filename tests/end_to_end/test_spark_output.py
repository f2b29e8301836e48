"""Releases as large as what they are made from: executors write them."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privurn
from privurn.counts import CountTable
from privurn.domain import Bins, Bounds, Categories, Grid, TableDomain
from privurn.errors import FormatError
from privurn.inference.counts.released import observe
from privurn.inference.tables.in_blocks import table_lot, values_of
from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.privacy.entropy import SeededEntropy
from privurn.privacy.ledger import Ledger
from privurn.tables import blocks
from privurn.tables.blocks import Blocks
from privurn.tables.here import Here
from privurn.tables.staged import Staged
from spark_session import local_session, spark_frame, why_not

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")

ALONE = """
import pickle, sys
sys.modules["privurn"] = None  # importing it fails
with open("task", "rb") as handle:
    task = pickle.load(handle)
print(*task(1))
"""


def drawn_blocks():
    counts = [CountTable(np.array([0, 2]), np.array([3, 4])), CountTable(np.array([2]), np.array([5]))]

    def decoded(cells):
        return pa.table({"x": cells * 1.0}), {0: np.ones(len(cells))}

    return Blocks.drawn(counts, decode=decoded, words=SeededEntropy(1).words, tasks=Here())


def table_of_blocks():
    domain = TableDomain({"x": Grid(0, 1, 1), "y": Categories(["a", "b"])}, [{"x": 1, "y": "b"}])
    mixture = MixtureOfProducts(domain.sizes, np.array([0.4, 0.6]), np.array([[0.2, 0.8, 0.5, 0.5], [0.7, 0.3, 0.1, 0.9]]))
    rows, widths = values_of(domain, 1)
    options = {"seed": 1, "ranges": {}, "copy": None, "zeros": domain.zero_cells, "widths": widths, "key": b"key"}
    return Blocks(rows, lots=tuple(table_lot(mixture, 20, number=number, **options) for number in range(2)), tasks=Here())


@pytest.mark.parametrize("made", [drawn_blocks, table_of_blocks])
def test_what_executors_run_does_not_need_privurn_there(tmp_path, monkeypatch, made):
    if reason := why_not():
        pytest.skip(reason)
    from pyspark import cloudpickle

    from privurn.tables import part_file, part_sample

    class Packed(Here):
        def answers(self, task, number):
            for each in (part_file, part_sample):
                cloudpickle.register_pickle_by_value(each)
            (tmp_path / "task").write_bytes(cloudpickle.dumps(task))
            return super().answers(task, number)

    monkeypatch.setattr(blocks, "SIZE", 3)  # so that executors halve what they are given
    [wave] = made().waves()
    here = wave.write(Packed(), tmp_path, "parquet")
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=tmp_path, capture_output=True, text=True, check=True)
    name, rows, sha256 = done.stdout.split()
    assert (int(rows), sha256) == here[1][1:]  # the same bytes, whoever writes them
    assert name != here[1][0]


def small_waves(monkeypatch):
    """Of four blocks of at most 100 records, two of which an executor divides."""
    for name, value in {"SIZE": 100, "GROUP": 2, "WAVE_BLOCKS": 4}.items():
        monkeypatch.setattr(blocks, name, value)


def test_a_release_is_written_wave_by_wave(monkeypatch, tmp_path):
    """More than one computer would make at once, drawn uniformly within bins on the executors, and read again."""
    local_session()
    small_waves(monkeypatch)
    monkeypatch.setattr("privurn.mechanisms.recipe.MOST_RECORDS", 999)
    frame, told = spark_frame(pa.table({"age": np.arange(4_000) % 90})), []
    domain = {"age": Bins([0, 18, 40, 65, 90], within="uniform")}
    out = privurn.release(frame, privurn.Urn(records=1_050), domain=domain, epsilon=1, delta=1e-6, progress=told.append)
    assert told[-1] == "drawing: 1,050 of 1,050 records"
    assert [wave.parts for wave in out.table.waves()] == [3, 3, 3, 2]
    saved = out.save(tmp_path / "out", file_format="parquet", progress=told.append)
    written = [each for each in told if each.startswith("writing")]
    assert written == [f"writing: {done} of 1,050 records" for done in ("300", "600", "900", "1,050")]
    assert saved.certificate["output"]["rows"] == 1_050
    assert privurn.verify(tmp_path / "out").valid
    written = pq.read_table(tmp_path / "out" / "data")
    assert written.equals(out.table.to_arrow())  # the same, whoever divides and expands
    ages = written["age"].to_numpy()
    assert len(np.unique(ages)) > 1_000
    assert ((ages > 0) & (ages < 90)).all()
    assert observe(tmp_path / "out").counts.tolist() == np.histogram(ages, [0, 18, 40, 65, 90])[0].tolist()


def test_ctrl_c_is_not_taken_for_a_cluster_that_cannot_write():
    """Spark cancels its jobs on Ctrl-C and complains of that instead; the driver would then write all of it itself."""
    if reason := why_not():
        pytest.skip(reason)
    from py4j.protocol import Py4JError

    from privurn.tables.spark_files import replaced_errors

    def cancelled():
        try:
            raise KeyboardInterrupt
        finally:
            raise Py4JError("cancelled")

    with pytest.raises(KeyboardInterrupt), replaced_errors("write the release"):
        cancelled()


def test_a_frame_of_too_many_records_is_left_to_files(monkeypatch):
    monkeypatch.setattr(blocks, "SIZE", 3)
    monkeypatch.setattr(blocks, "WAVE_BYTES", 16)
    with pytest.raises(FormatError, match="too many for a frame"):
        drawn_blocks().frame()


@pytest.mark.long
def test_executors_write_the_blocks_that_the_driver_has_drawn(monkeypatch, tmp_path):
    local_session()
    monkeypatch.setattr(blocks, "SIZE", 1_000)
    table = pa.table({"age": np.arange(4_000) % 7, "region": ["north", "south", "south", None] * 1_000})
    domain = {"age": Grid(0, 6, 1), "region": Categories(["north", "south"], nulls="cell")}
    out = privurn.release(spark_frame(table), privurn.Urn(records=3_500), domain=domain, epsilon=1, delta=1e-6)
    assert out.table.sizes == [1_000, 1_000, 1_000, 500]
    assert out.data.toArrow().to_pylist() == out.table.to_arrow().to_pylist()
    for file_format in ("parquet", "csv"):
        folder = tmp_path / file_format
        saved = out.save(folder, file_format=file_format)
        assert privurn.verify(folder).valid
        assert saved.certificate["output"]["rows"] == 3_500
        assert len(list((folder / "data").iterdir())) == 4
    assert pq.read_table(tmp_path / "parquet" / "data").to_pylist() == out.table.to_arrow().to_pylist()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["csv", "parquet"]
    found = privurn.infer(tmp_path / "parquet", ask=["P(age<=2)"])
    assert 0.2 < found.draws["P(age<=2)"].mean() < 0.7  # of 3/7, without noise


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


@pytest.mark.long
def test_executors_noise_records_once(monkeypatch, tmp_path):
    """With nearly no noise every record comes out once; with much, it comes out the same whenever it is asked for."""
    session = local_session()
    session.conf.set("spark.privurn.staging", str(tmp_path))
    monkeypatch.setattr(blocks, "SIZE", 1_000)
    table = pa.table({"age": np.arange(3_000), "region": ["=north", "south", None] * 1_000})
    there = spark_frame(table)
    week = there.limit(900).selectExpr("age % 7 AS day")
    few = privurn.privatise(week, privurn.DiscreteLaplace(), domain={"day": Bounds(0, 6)}, epsilon=600)
    assert isinstance(few.table, pa.Table)
    assert sorted(few.table["day"].to_pylist()) == sorted(each["day"] for each in week.collect())  # by chance not: below 1e-39
    many = privurn.privatise(there, domain={"age": Categories(range(3_000))}, epsilon=41)
    assert isinstance(many.table, Staged)
    assert sorted(many.table.to_arrow()["age"].to_pylist()) == list(range(3_000))  # by chance not: below 1e-10
    assert many.table.to_arrow()["age"].to_pylist() != list(range(3_000))
    out = privurn.privatise(there, domain={"region": Categories(["=north", "south"], nulls="cell")}, epsilon=0.1)
    saved = [out.save(tmp_path / name, file_format="parquet").certificate["output"] for name in "ab"]
    assert saved[0] == saved[1]
    assert privurn.verify(tmp_path / "a").valid
    assert out.data.toArrow().to_pylist() == pq.read_table(tmp_path / "a" / "data").to_pylist()
    out.save(tmp_path / "c", file_format="csv")
    assert privurn.verify(tmp_path / "c").valid
    assert sorted(each.name for each in tmp_path.iterdir() if not each.name.startswith(".privurn-")) == ["a", "b", "c"]
    session.conf.unset("spark.privurn.staging")


@pytest.mark.long
def test_what_executors_cannot_do_is_noticed_before_it_is_paid_for(monkeypatch, tmp_path):
    session = local_session()
    there = spark_frame(pa.table({"age": np.arange(3_000) % 7}))
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1.5, delta=1e-5)
    asked = {"domain": {"age": Bounds(0, 6)}, "epsilon": 1, "ledger": tmp_path / "ledger"}
    with monkeypatch.context() as patched:
        patched.setattr(privurn, "__version__", "0.0.0")
        with pytest.raises(FormatError, match="another privurn"):
            privurn.privatise(there, **asked)
    monkeypatch.setattr(blocks, "SIZE", 1_000)
    session.conf.set("spark.privurn.staging", str(tmp_path / "nowhere"))
    with pytest.raises(FormatError, match="no folder"):
        privurn.privatise(there, **asked)
    session.conf.unset("spark.privurn.staging")
    assert not ledger.entries()


@pytest.mark.long
def test_whole_tables_are_written_by_executors_too(monkeypatch, tmp_path):
    """In order as the driver would write them, with the types that a table made at once has."""
    local_session()
    n, domain = 3_500, {"age": Grid(0, 63, 1), "region": Categories(["=north", "south"], nulls="cell"), "half": Bins([0, 1, 2])}
    table = pa.table({"age": np.arange(n) % 64, "region": ["=north", "south", None, "south", "south"] * (n // 5)})
    frame = spark_frame(table.append_column("half", pa.array(np.arange(n) % 4 / 2)))
    asked = {"domain": domain, "epsilon": 4, "delta": 1e-6}
    at_once = privurn.release(frame, privurn.Marginals(order=2), **asked)
    monkeypatch.setattr(blocks, "SIZE", 1_000)
    out = privurn.release(frame, privurn.Marginals(order=2), **asked)
    for file_format in ("parquet", "csv"):
        saved = out.save(tmp_path / file_format, file_format=file_format)
        assert privurn.verify(tmp_path / file_format).valid
        assert (saved.certificate["synthetic"]["file"], saved.certificate["synthetic"]["rows"]) == ("manifest.json", n)
        assert len(list((tmp_path / file_format / "data").iterdir())) == 4
    expanded = out.synthetic.table.to_arrow()
    assert expanded.schema == at_once.synthetic.table.schema
    assert pq.read_table(tmp_path / "parquet" / "data").equals(expanded)
    assert out.data.toArrow().to_pylist() == expanded.to_pylist()
    assert out.data.schema == at_once.data.schema
    assert sorted(each.name for each in tmp_path.iterdir()) == ["csv", "parquet"]
