"""Whole tables that are written in parts: the same columns, rows and promises as those that one computer makes at once."""

import tracemalloc
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import privurn
from privurn.domain import Bins, Categories, Dates, Grid, TableDomain
from privurn.errors import ModelError
from privurn.inference.tables.in_blocks import table_lot
from privurn.inference.tables.mixture import MixtureOfProducts
from privurn.inference.tables.reading import read_table
from privurn.inference.tables.synthetic import synthetic_table
from privurn.inference.verified import verified
from privurn.mechanisms.recipe import MOST_RECORDS
from privurn.privacy.entropy import SeededEntropy
from privurn.releases import tables as releases
from privurn.tables import blocks, open_table
from privurn.tables.blocks import Blocks
from privurn.tables.here import Here
from privurn.tables.part_sample import block_of

PLAIN = {
    "=sex": Categories(["=f", "m"], outside="other", nulls="cell"),
    "birth": Categories(["no", "yes"], outside="null"),
    "age": Bins([0, 20, 50, 90]),
    "month": Dates("2024-01-01", "2024-12-31", "month"),
}
ZEROS = TableDomain(PLAIN, [{"=sex": "m", "birth": "yes"}, {"birth": "yes", "age": 5}])
FINE = TableDomain(PLAIN | {"pay": Grid(0, 99, "0.5", nulls="cell")})
PAID = {"epsilon": 20, "delta": 1e-6, "ledger": False}
ASKED = {
    "structural zeros": (ZEROS, {}),
    "a fine column": (FINE, {}),
    "copies": (TableDomain(PLAIN), {"copies": 2}),
    "spread out": (TableDomain(PLAIN | {"age": Bins([0, 20, 50, 90], within="uniform")}), {}),
    "spread out copies": (TableDomain(PLAIN | {"age": Bins([0, 20, 50, 90], within="uniform")}), {"copies": 2}),
}


def people(n=1_200):
    rng = np.random.default_rng(0)
    sex, age = rng.choice(["=f", "m"], n, p=[0.3, 0.7]), rng.integers(20, 90, n)
    birth = np.where((sex == "=f") & (rng.random(n) < 0.5), "yes", "no")
    month = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 366, n), unit="D")
    return pd.DataFrame({"=sex": sex, "birth": birth, "age": age, "month": month, "pay": np.rint(rng.gamma(4, 8, n))})


@pytest.fixture(scope="module", params=ASKED)
def at_once(request):
    """A release that one computer made."""
    domain, options = ASKED[request.param]
    made = privurn.Marginals(order=2, **options)
    return privurn.release(people(), made, domain=domain, entropy=SeededEntropy(1), **PAID), request.param


def in_parts(monkeypatch, kind):
    """The same of a table that is on a cluster, which is this process."""

    @contextmanager
    def elsewhere(data, **options):
        with open_table(data, **options) as source:
            yield replace(source, tasks=Here())

    domain, options = ASKED[kind]
    monkeypatch.setattr(releases, "open_table", elsewhere)
    monkeypatch.setattr(blocks, "SIZE", 500)
    made = privurn.Marginals(order=2, **options)
    return privurn.release(people(), made, domain=domain, entropy=SeededEntropy(1), **PAID)


def test_a_table_in_parts_is_one_at_once_in_everything_but_its_files(monkeypatch, at_once, tmp_path):
    one, kind = at_once
    out = in_parts(monkeypatch, kind)
    table = out.synthetic.table
    assert isinstance(table, Blocks)
    copies = ASKED[kind][1].get("copies", 1)
    assert table.sizes == [500, 500, 200] * copies
    assert table.to_arrow().schema == one.synthetic.table.schema
    assert table.num_rows == one.synthetic.table.num_rows == 1_200 * copies
    for file_format in ("csv", "parquet"):
        folder = tmp_path / file_format
        saved = out.save(folder, file_format=file_format)
        assert privurn.verify(folder).reasons == ("the release was made with seeded randomness: not private",)
        assert saved.certificate["synthetic"]["file"] == "manifest.json"
        assert any("apostrophe" in remark for remark in saved.remarks) == (file_format == "csv")
    read = pq.read_table(tmp_path / "parquet" / "data")
    assert read.equals(table.to_arrow())
    data, true = read.to_pandas(), people()
    if kind == "structural zeros":
        assert not ((data["=sex"] == "m") & (data["birth"] == "yes")).any()
    if kind == "a fine column":
        assert data["pay"].nunique() > 40
        assert abs(data["pay"].mean() - true["pay"].mean()) < 2
    if "spread out" in kind:
        assert data["age"].nunique() > 1_000
        assert data["age"].between(0, 90, inclusive="neither").all()
        assert abs(data["age"].mean() - true["age"].mean()) < 3
    if "copies" in kind:
        assert data["copy"].tolist() == [1] * 1_200 + [2] * 1_200
    assert abs((data["birth"] == "yes").mean() - (true["birth"] == "yes").mean()) < 0.05
    again, _ = synthetic_table(
        read_table(verified(tmp_path / "csv")), records=None, copies=copies, seed=out.synthetic.seed, tasks=Here()
    )
    assert again.to_arrow().equals(table.to_arrow())  # from what is public alone


@pytest.mark.parametrize(
    "domain",
    [TableDomain(FINE.columns, ZEROS.zeros)],
    ids=["zeros beside a fine column"],
)
def test_what_counts_do_not_tell_is_made_at_once(monkeypatch, domain):
    monkeypatch.setitem(ASKED, "other", (domain, {}))
    out = in_parts(monkeypatch, "other")
    assert not isinstance(out.synthetic.table, Blocks)
    assert out.synthetic.table.num_rows == 1_200


MIXTURE = MixtureOfProducts((2, 3), np.array([0.3, 0.7]), np.array([[0.2, 0.8, 0.5, 0.3, 0.2], [0.6, 0.4, 0.1, 0.2, 0.7]]))


def drawn(records, zeros=()):
    options = {"seed": 1, "number": 0, "zeros": zeros, "ranges": {}, "copy": None, "widths": {}, "key": b"key"}
    return table_lot(MIXTURE, records, **options)


def test_records_are_within_one_of_expectation_class_by_class_over_all_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "SIZE", 100)
    lot = drawn(1_037)
    found = [block_of(*each.given()[0], number) for each in lot.groups() for number in each.numbers]
    assert [int(classes.sum()) for classes, _, _ in found] == [100] * 10 + [37]
    for j in range(len(MIXTURE.sizes)):
        assert all((columns[j].sum(axis=1) == classes).all() for classes, columns, _ in found)
        counts = sum(columns[j].sum(axis=0) for _, columns, _ in found)
        assert np.abs(counts - 1_037 * MIXTURE.marginal((j,))).max() < 2 * len(MIXTURE.weights)


def test_zeros_that_leave_no_room_are_refused_before_anything_is_written():
    every = tuple(((0, a), (1, b)) for a in range(2) for b in range(3))
    with pytest.raises(ModelError, match="next to no room"):
        drawn(20, zeros=every)


def test_memory_does_not_follow_the_number_of_records():
    def peak(records):
        tracemalloc.start()
        try:
            lot = drawn(records)
            assert sum(int(each.held[0].sum()) for each in lot.groups()) == lot.records == records
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(MOST_RECORDS) < 2**24  # 800 megabytes if there were records


@pytest.mark.parametrize(
    "mechanism",
    [
        privurn.Marginals(),
        privurn.Marginals(copies=2),
        privurn.NoisyTree(copies=2),
    ],
)
def test_more_records_than_are_made_are_refused_before_anything_is_paid(mechanism, monkeypatch):
    monkeypatch.setattr("privurn.mechanisms.recipe.MOST_RECORDS", 99)
    data = pd.DataFrame({"x": np.arange(100) % 10, "y": np.arange(100) % 3})
    domain = {"x": Grid(0, 9, 1)} if mechanism.alias == "noisy-tree" else {"x": Grid(0, 9, 1), "y": Grid(0, 2, 1)}
    if isinstance(mechanism, privurn.Marginals):
        domain = TableDomain(domain)
    monkeypatch.setattr("privurn.releases.payment.Payer.pay", None)  # nothing gets there
    with pytest.raises(ModelError, match="records can be released at once"):
        privurn.release(data, mechanism, domain=domain, epsilon=1.0, delta=1e-6, ledger=False)


def test_a_secret_number_beyond_what_is_made_leaves_as_many_as_are_made(monkeypatch):
    monkeypatch.setattr("privurn.mechanisms.recipe.MOST_RECORDS", 60)
    data = pd.DataFrame({"x": np.arange(100) % 10, "y": np.arange(100) % 3})
    domain = TableDomain({"x": Grid(0, 9, 1), "y": Grid(0, 2, 1)})
    made = privurn.release(
        data, privurn.Marginals(), domain=domain, epsilon=4.0, delta=1e-6, neighbouring="add-remove", ledger=False
    )
    assert len(made.data) == 60
