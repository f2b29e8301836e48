"""A ledger beside the data pays, however the data are spelled; only False avoids it, and the certificate says so."""

import numpy as np
import polars as pl
import pytest

import privurn
from privurn.errors import BudgetExceeded, FormatError, LedgerError
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic
from privurn.privacy.ledger import Ledger
from privurn.privacy.payer import ledgers_beside
from privurn.releases.privatise import privatise
from privurn.releases.statistics import release_statistics

SPELLINGS = ["d.csv", "./in/../d.csv", "d.cs[v]", "d*.csv", "?.csv", "link.csv", "second.csv", "l*.csv", "folder/d.csv"]


def release(data, **more):
    """The cheapest release there is, since it does not start the compiled urn: counts with noise."""
    more = {"domain": {"x": privurn.Grid(0, 1, 1)}, "epsilon": 0.5, **more}
    return privurn.release(data, privurn.NoisyCounts(publish="counts"), **more)


def privatised(data, **more):
    return privatise(data, domain={"x": privurn.Bounds(0, 1)}, epsilon=0.5, **more)


def summed(data, **more):
    budget = Budget(epsilon=0.5, neighbouring="replace-one")
    return release_statistics(data, mechanism=BernoulliStatistic.calibrated(column="x", budget=budget), budget=budget, **more)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """d.csv with an exhausted ledger, and other ways to it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "d.csv").write_text("x\n" + "0\n1\n" * 20)
    (tmp_path / "link.csv").symlink_to("d.csv")
    (tmp_path / "second.csv").symlink_to("link.csv")
    (tmp_path / "folder").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


OTHERS = ["d.cs[v]", "second.csv"]


@pytest.mark.parametrize(
    ("make", "spelling"),
    [(release, each) for each in SPELLINGS] + [(make, each) for make in (privatised, summed) for each in OTHERS],
)
def test_every_spelling_finds_the_ledger(place, make, spelling):
    ledger = Ledger.create(place / "d.csv.ledger", epsilon=0.5)
    made = make(spelling)
    assert made.certificate["ledger"] == ledger.stamp(1)
    with pytest.raises(BudgetExceeded):
        make(spelling)
    with pytest.raises(BudgetExceeded):
        make(place / spelling)
    unpaid = make(spelling, ledger=False)
    assert unpaid.certificate["ledger"] == {"used": False, "declined": True}
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("make", [release, privatised, summed])
def test_without_a_ledger(place, make):
    assert make("d.csv").certificate["ledger"] == {"used": False}
    assert make("d.csv", ledger=False).certificate["ledger"] == {"used": False}
    frame = pl.DataFrame({"x": [0, 1] * 20})
    assert make(frame).certificate["ledger"] == {"used": False}
    for odd in (True, 3, b"d.csv.ledger"):
        with pytest.raises(FormatError, match="ledger must be"):
            make("d.csv", ledger=odd)


@pytest.mark.parametrize("beside", ["link.csv", "second.csv"])
def test_a_ledger_beside_a_link_is_found_too(place, beside):
    ledger = Ledger.create(place / f"{beside}.ledger", epsilon=0.5)
    release("second.csv")
    assert len(ledger.entries()) == 1
    assert ledgers_beside([place / "d.csv"]) == []  # the link does not show from there: known limits


def test_a_ledger_named_after_the_glob(place):
    ledger = Ledger.create(place / "d*.csv.ledger", epsilon=0.5)
    release("d*.csv")
    assert len(ledger.entries()) == 1


def test_two_ledgers_are_one_too_many(place):
    """Whoever names a fresh ledger avoids the one that stands beside the data, too."""
    own = Ledger.create(place / "d.csv.ledger", epsilon=0.5)
    fresh = Ledger.create(place / "fresh", epsilon=100.0)
    for choice in (fresh, place / "fresh", "fresh"):
        with pytest.raises(LedgerError, match="beside the data stands the ledger"):
            release("d.csv", ledger=choice)
    for choice in (own, "d.csv.ledger", place / "folder" / "d.csv.ledger"):
        with pytest.raises(BudgetExceeded):
            release("d.csv", ledger=choice, epsilon=0.6)
    Ledger.create(place / "link.csv.ledger", epsilon=100.0)
    for choice in (None, own, fresh):
        with pytest.raises(LedgerError, match="stand 2 ledgers"):
            release("link.csv", ledger=choice)
    (place / "link.csv.ledger").unlink()
    (place / "link.csv.ledger").symlink_to("d.csv.ledger")  # the same ledger by two names
    release("link.csv")
    assert len(own.entries()) == 1
    assert fresh.entries() == []


def test_several_files(place):
    (place / "e.csv").write_text("x\n0\n1\n1\n")
    ledger = Ledger.create(place / "e.csv.ledger", epsilon=2.0)
    release("[de].csv")
    release("?.csv")
    assert len(ledger.entries()) == 2
    Ledger.create(place / "d.csv.ledger", epsilon=2.0)
    with pytest.raises(LedgerError, match="stand 2 ledgers"):
        release("[de].csv")


def test_what_stands_there_and_is_no_ledger(place):
    """A broken link or any other file is refused: it may be a ledger that cannot be reached."""
    (place / "d.csv.ledger").symlink_to("gone")
    with pytest.raises(LedgerError, match="no ledger"):
        release("d.csv")
    (place / "d.csv.ledger").unlink()
    (place / "d.csv.ledger").write_text("something else, which is long enough to be looked at")
    with pytest.raises(LedgerError, match="cannot be read"):
        release("link.csv")


@pytest.mark.parametrize("make", [release, privatised, summed])
def test_a_ledger_knows_what_it_stands_for(place, make):
    ledger = Ledger.create(place / "d.csv.ledger", epsilon=20.0)
    assert not any("stands for" in each for each in make("link.csv").remarks)
    subject = ledger.read().subject
    assert (subject.files, subject.columns, subject.n) == ((str((place / "d.csv").resolve()),), ("x",), 40)
    assert not any("stands for" in each for each in make("d*.csv").remarks)
    (place / "d.csv").write_text("x,y\n" + "0,1\n1,0\n" * 21)
    remarks = [each for each in make("d.csv").remarks if "stands for" in each]
    assert [any(part in each for each in remarks) for part in ("'y'", "40 records, this one has 42")] == [True, True]
    assert ledger.read().subject == subject


def test_another_file_is_remarked_on(place):
    ledger = Ledger.create(place / "one", epsilon=20.0)
    release("d.csv", ledger=ledger)
    (place / "copy.csv").write_bytes((place / "d.csv").read_bytes())
    (remark,) = [each for each in release("copy.csv", ledger=ledger).remarks if "stands for" in each]
    assert "d.csv" in remark
    assert "copy.csv" in remark
    frame = np.array([0, 1] * 20)
    assert any("columns" in each for each in release(frame, ledger=ledger, domain=privurn.Grid(0, 1, 1)).remarks)


def test_a_secret_number_of_records_is_not_written_down(place):
    ledger = Ledger.create(place / "d.csv.ledger", epsilon=20.0, neighbouring="add-remove")
    release("d.csv", neighbouring="add-remove")
    assert ledger.read().subject.n is None
    (place / "d.csv").write_text("x\n" + "0\n1\n" * 30)
    assert not any("stands for" in each for each in release("d.csv", neighbouring="add-remove").remarks)
