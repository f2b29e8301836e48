"""Records that are noised where they are: refused as they are here, drawn once, put into an order that tells nothing."""

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privurn
from hostile_table import hostile, untyped
from privurn.domain import Bounds, Categories, JointDomain
from privurn.errors import DomainError, FormatError, ModelError, PrivurnError
from privurn.privacy.ledger import Ledger
from privurn.tables import blocks, open_table
from privurn.tables.columns import floats, numbers_elsewhere, read_numbers
from privurn.tables.counting import integers
from privurn.tables.here import Here
from privurn.tables.rows import cells_elsewhere, read_cells
from privurn.tables.staged import WORDS, Staged, in_order, with_words


@dataclass(frozen=True)
class Elsewhere:
    """A table whose records are noised by tasks."""

    table: Any
    tasks: Any

    @contextmanager
    def open_source(self):
        with open_table(self.table) as source:
            yield replace(source, tasks=self.tasks)


class Writing(Here):
    """A cluster that stages what it noises."""

    def __init__(self, folder):
        self.folder = folder

    def mapped(self, records, work, *, like, n):
        for i, batch in enumerate(records.to_arrow_table().to_batches(max_chunksize=50)):
            pq.write_table(with_words(work(batch.column(0))), self.folder / f"{i}.parquet")
        return Staged(like, tasks=self, folder=str(self.folder), records=n)


def told(work):
    try:
        return work()
    except PrivurnError as refusal:
        return type(refusal), str(refusal)


@pytest.mark.parametrize("column", hostile().column_names)
@pytest.mark.parametrize("nulls", ["error", "lower"])
def test_numbers_are_refused_and_read_as_on_this_computer(column, nulls):
    def elsewhere():
        answer, n = numbers_elsewhere(source, column, nulls=nulls)
        found = floats(answer.to_arrow_table()["number"])
        assert len(found) == n
        return np.sort(found).tobytes()

    with open_table(untyped(hostile())) as source:
        assert told(elsewhere) == told(lambda: np.sort(read_numbers(source, column, nulls=nulls)).tobytes())


@pytest.mark.parametrize("policy", [{}, {"nulls": "cell"}, {"outside": "other"}, {"nulls": "cell", "outside": "other"}])
def test_cells_are_refused_and_read_as_on_this_computer(policy):
    domain = JointDomain({"label": Categories(["north", "O'Hara"], **policy), "yes": Categories([True, False], **policy)})

    def elsewhere():
        answer, n = cells_elsewhere(source, domain)
        found = np.sort(integers(answer.to_arrow_table()["cell"])).tolist()
        assert len(found) == n
        return found

    with open_table(untyped(hostile())) as source:
        assert told(elsewhere) == told(lambda: np.sort(read_cells(source, domain)).tolist())


@pytest.mark.parametrize("read", [lambda source: numbers_elsewhere(source, "x"), lambda source: cells_elsewhere(source, CELLS)])
def test_a_table_without_records_is_refused(read):
    with open_table(pa.table({"x": pa.array([], pa.int64())})) as source, pytest.raises(DomainError, match="is empty"):
        read(source)


CELLS = JointDomain({"x": Categories([1, 2])})


def test_records_come_in_the_order_of_their_words_and_ties_in_that_of_what_is_published():
    like = pa.table({"b": ["x"], "a": [1]})
    staged = pa.table({"word": [5, 3, 5, 3], "c0": ["y", "z", "x", "z"], "c1": [1, 2, 3, 1]})
    assert in_order(staged, like).to_pydict() == {"b": ["z", "z", "x", "y"], "a": [1, 2, 3, 1]}
    words = [with_words(pa.table({"a": np.arange(2_000)}))["word"].to_numpy() for _ in range(2)]
    assert not set(words[0]) & set(words[1])  # by chance: below 1e-12
    assert min(map(min, words)) >= 0
    assert 0.4 < np.mean(words[0] / WORDS) < 0.6  # by chance: below 1e-50


def test_the_order_tells_nothing_of_the_order_of_the_records():
    """All words of a small set, ties among them: the same lists as often, whichever record came first."""
    laws = set()
    for outputs in permutations([5, 5, 7, 9]):
        found = Counter(
            tuple(in_order(pa.table({"word": words, "c0": outputs}), pa.table({"z": [0]}))["z"].to_pylist())
            for words in product(range(3), repeat=4)
        )
        laws.add(frozenset(found.items()))
    assert len(laws) == 1
    assert len(next(iter(laws))) == 12  # every order of the multiset


@pytest.mark.parametrize("records", [1, 999, 1_000, 1_001, 5_500])
def test_every_word_belongs_to_one_part(monkeypatch, tmp_path, records):
    monkeypatch.setattr(blocks, "SIZE", 1_000)
    staged = Staged(pa.table({"a": [0]}), tasks=Here(), folder=str(tmp_path), records=records)
    number = -(-records // 1_000)
    firsts = [i * staged.width for i in range(number)]
    words = sorted({0, WORDS - 1, *firsts, *(each - 1 for each in firsts[1:])})
    pq.write_table(pa.table({"word": words, "c0": words}), tmp_path / "0.parquet")
    found = [each["word"].to_pylist() for each in staged.parts()]
    assert [word for each in found for word in each] == words
    assert found == [[word for word in words if word // staged.width == i] for i in range(number)]  # as an engine groups them


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_noised_records_are_drawn_once_and_saved_in_parts_that_verify(monkeypatch, tmp_path, file_format):
    monkeypatch.setattr(blocks, "SIZE", 100)
    (tmp_path / "stage").mkdir()
    table = pa.table({"town": ["=a", "b", None, "b"] * 100, "x": np.arange(400.0)})
    domain = {"town": Categories(["=a", "b"], nulls="cell")}
    out = privurn.privatise(Elsewhere(table, Writing(tmp_path / "stage")), domain=domain, epsilon=0.1)
    saved = [out.save(tmp_path / name, file_format=file_format) for name in "ab"]
    for each, name in zip(saved, "ab", strict=True):
        assert privurn.verify(tmp_path / name).valid
        assert each.certificate["output"] == saved[0].certificate["output"]  # not drawn again
        assert any("behind an apostrophe" in remark for remark in each.remarks) is (file_format == "csv")
    assert len(list((tmp_path / "a" / "data").iterdir())) == 4
    assert out.table.num_rows == out.table.to_arrow().num_rows == 400
    if file_format == "parquet":
        assert pq.read_table(tmp_path / "a" / "data").equals(out.table.to_arrow())


def test_noise_elsewhere_is_the_channels():
    """Nearly no noise: each record comes out as it went in, once, whatever the order."""
    table = pa.table({"x": np.arange(300) % 7, "town": ["a", "b", "c"] * 100})
    there = Elsewhere(table, Here())
    numbers = privurn.privatise(there, privurn.DiscreteLaplace(), domain={"x": Bounds(0, 6)}, epsilon=600).table
    assert sorted(numbers["x"].to_pylist()) == sorted(table["x"].to_pylist())
    assert numbers["x"].to_pylist() != table["x"].to_pylist()
    towns = {"town": Categories(["a", "b", "c"]), "x": Categories(range(7))}
    both = privurn.privatise(there, domain=towns, epsilon=80).table
    assert sorted(map(str, both.to_pylist())) == sorted(map(str, table.select(["town", "x"]).to_pylist()))
    wavelets = privurn.privatise(there, privurn.HaarWavelet(levels=1), domain={"x": Bounds(0, 6)}, epsilon=1).table
    assert wavelets.column_names == ["x_0_0", "x_1_0", "x_1_1"]


class Unable(Here):
    """A cluster without privurn."""

    def check(self, n):
        raise FormatError("Spark cannot noise records.", hint="")


def test_nothing_is_paid_for_what_a_cluster_cannot_do(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1.5, delta=1e-5)
    table = pa.table({"x": [1, 2, 3]})
    asked = {"domain": {"x": Bounds(0, 6)}, "epsilon": 1, "ledger": tmp_path / "ledger"}
    with pytest.raises(FormatError, match="cannot noise"):
        privurn.privatise(Elsewhere(table, Unable()), **asked)
    with pytest.raises(ModelError, match="no order that could be kept"):
        privurn.privatise(Elsewhere(table, Here()), order="kept", **asked)
    assert not ledger.entries()
    privurn.privatise(Elsewhere(table, Here()), **asked)
    assert len(ledger.entries()) == 1
