"""What a ledger file shows of its past: edits, second names, other journals, amounts that cannot be."""

import hashlib
import json
import os
import shutil
import sqlite3
from types import SimpleNamespace

import numpy as np
import pytest

from privurn.errors import BudgetExceeded, LedgerError
from privurn.privacy.ledger import Ledger, Spent
from privurn.privacy.ledger_book import Subject
from privurn.privacy.ledger_check import check_ledger
from privurn.privacy.profile import Guarantee


def cost(epsilon=0.1, rho=None):
    return Spent(guarantee=Guarantee(epsilon=epsilon, delta=0.0), rho=rho, description="test")


@pytest.fixture
def ledger(tmp_path):
    """Three debits, the second one with its output."""
    made = Ledger.create(tmp_path / "l", epsilon=1.0)
    for _ in range(3):
        made.debit(cost())
    made.complete(2, output="0" * 64)
    return made


def edit(ledger, words, *values):
    connection = sqlite3.connect(ledger.path)
    with connection:
        connection.execute(words, values)
    connection.close()


def contents(ledger):
    connection = sqlite3.connect(ledger.path)
    rows = connection.execute("SELECT number, content, hash FROM events ORDER BY number").fetchall()
    connection.close()
    return rows


def reseal(ledger, change):
    """Change the events as plain data and write all hashes anew, as someone would who knows how."""
    events = [json.loads(text) for _, text, _ in contents(ledger)]
    events = change(events) or events
    edit(ledger, "DELETE FROM events")
    head = ""
    for number, event in enumerate(events):
        text = json.dumps(event, sort_keys=True, separators=(",", ":"))
        head = hashlib.sha256((head and head + "\n").encode() + text.encode()).hexdigest()
        edit(ledger, "INSERT INTO events VALUES (?, ?, ?)", number, text, head)


def test_every_hash_follows_from_the_one_before(ledger):
    before = ""
    for number, text, stated in contents(ledger):
        before = hashlib.sha256((f"{before}\n" if number else "").encode() + text.encode()).hexdigest()
        assert stated == before
    assert ledger.read().head == before
    assert [entry.status for entry in ledger.entries()] == ["debited", "released", "debited"]
    assert check_ledger(ledger.path).valid


EDITS = {
    "a smaller amount": ("UPDATE events SET content = replace(content, '\"0.1\"', '\"0.01\"') WHERE number = 2",),
    "a larger budget": ("UPDATE events SET content = replace(content, '\"1.0\"', '\"9.0\"') WHERE number = 0",),
    "an event in between removed": ("DELETE FROM events WHERE number = 2",),
    "the budget removed": ("DELETE FROM events WHERE number = 0",),
    "everything removed": ("DELETE FROM events",),
    "numbers moved": ("UPDATE events SET number = 9 WHERE number = 4",),
    "a hash": ("UPDATE events SET hash = ? WHERE number = 4", "0" * 64),
    "an output": ("UPDATE events SET content = replace(content, '0000', '1111') WHERE number = 4",),
    "no JSON": ("UPDATE events SET content = 'x' WHERE number = 1",),
    "deep JSON": ("UPDATE events SET content = ? WHERE number = 1", "[" * 100_000),
    "bytes": ("UPDATE events SET content = ? WHERE number = 1", b"\xff"),
}


@pytest.mark.parametrize("name", EDITS)
def test_edits_show(ledger, name):
    edit(ledger, *EDITS[name])
    with pytest.raises(LedgerError, match="damaged or was edited"):
        Ledger(ledger.path)
    with pytest.raises(LedgerError, match="damaged or was edited"):
        ledger.debit(cost())
    with pytest.raises(LedgerError, match="damaged or was edited"):
        ledger.remaining()
    assert not check_ledger(ledger.path).valid


def set_first(**fields):
    return lambda events: events[1].update(fields)


IMPOSSIBLE = {
    "a negative amount": set_first(epsilon="-5.0"),
    "minus zero": set_first(delta="-0.0"),
    "not a number": set_first(epsilon="nan"),
    "infinite": set_first(epsilon="inf"),
    "a negative rho": set_first(rho="-1.0"),
    "an amount that no float has": set_first(epsilon="1e-999999999"),
    "an amount as a number": set_first(epsilon=0.1),
    "no amount": set_first(epsilon=None),
    "a fraction": set_first(epsilon="1/3"),
    "another entry": set_first(entry=2),
    "another kind": set_first(kind="refund"),
    "more fields": set_first(more=1),
    "a subject that is none": set_first(subject=3),
    "a subject of other things": set_first(subject={"files": [], "columns": [1], "n": None}),
    "a description that is none": set_first(description=["x"]),
    "more spent than there was": set_first(epsilon="0.9"),
    "an output of no entry": lambda events: events[4].update(entry=4),
    "a budget of nothing": lambda events: events[0].update(epsilon="0.0"),
    "an infinite budget": lambda events: events[0].update(epsilon="inf"),
    "another schema": lambda events: events[0].update(schema="privurn-ledger/3"),
    "no neighbours": lambda events: events[0].update(neighbouring="none"),
    "no contributions": lambda events: events[0].update(contributions="0"),
    "a budget of rho that nobody paid": lambda events: events[0].update(rho="1.0"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_is_refused_even_where_the_hashes_fit(ledger, name):
    reseal(ledger, IMPOSSIBLE[name])
    with pytest.raises(LedgerError, match="damaged or was edited"):
        Ledger(ledger.path)
    assert not check_ledger(ledger.path).valid


def test_the_same_events_sealed_again_are_the_same_ledger(ledger):
    """Or the test above would refuse for the sealing alone."""
    head = ledger.read().head
    reseal(ledger, lambda events: None)
    assert ledger.read().head == head


def test_an_old_copy_and_a_rewritten_ledger_need_a_hash_noted_elsewhere(ledger, tmp_path):
    """Without one they cannot be told from a true ledger: that is a stated limit, shown here."""
    shutil.copy(ledger.path, tmp_path / "old")
    noted = [ledger.read().head]
    assert check_ledger(tmp_path / "old", noted=noted).valid
    ledger.debit(cost())
    noted.append(ledger.read().head)
    assert check_ledger(ledger.path, noted=noted).valid
    shutil.copy(tmp_path / "old", ledger.path)
    assert check_ledger(ledger.path).valid
    assert len(check_ledger(ledger.path, noted=noted).reasons) == 1
    reseal(ledger, set_first(epsilon="0.01"))
    assert check_ledger(ledger.path).valid
    assert len(check_ledger(ledger.path, noted=noted).reasons) == 2


def test_the_same_payment_made_again_in_the_same_second_is_another(ledger, tmp_path, monkeypatch):
    monkeypatch.setattr("privurn.privacy.ledger._now", lambda: "2026-01-01T00:00:00+00:00")
    shutil.copy(ledger.path, tmp_path / "old")
    hashes = []
    for _ in range(2):
        shutil.copy(tmp_path / "old", ledger.path)
        hashes.append(ledger.stamp(ledger.debit(cost()))["hash"])
    assert hashes[0] != hashes[1]


def test_a_second_name_is_refused(tmp_path):
    ledger = Ledger.create(tmp_path / "l", epsilon=1.0)
    assert ledger.path.stat().st_nlink == 1
    assert [path.name for path in tmp_path.iterdir()] == ["l"]
    os.link(ledger.path, tmp_path / "other")
    for path in (tmp_path / "l", tmp_path / "other"):
        with pytest.raises(LedgerError, match="second name"):
            Ledger(path)
        assert not check_ledger(path).valid
    with pytest.raises(LedgerError, match="second name"):
        ledger.debit(cost())
    (tmp_path / "other").unlink()
    (tmp_path / "other").symlink_to("l")
    assert Ledger(tmp_path / "other").debit(cost()) == 1


def test_two_names_never_spend_twice(tmp_path):
    """Through two hard links twenty debits of 0.1 would fit into a budget of 1."""
    first = Ledger.create(tmp_path / "a", epsilon=1.0)
    accepted = 0
    for i in range(20):
        if i == 4:
            os.link(tmp_path / "a", tmp_path / "b")
        try:
            (first if i < 4 or i % 2 else Ledger(tmp_path / "b")).debit(cost())
            accepted += 1
        except LedgerError:
            pass
    assert accepted == 4


def test_another_journal_is_refused(ledger):
    edit(ledger, "PRAGMA journal_mode = WAL")
    with pytest.raises(LedgerError, match="write-ahead log"):
        ledger.debit(cost())
    assert not check_ledger(ledger.path).valid
    edit(ledger, "PRAGMA journal_mode = DELETE")
    assert ledger.debit(cost()) == 4


def test_a_ledger_of_the_first_version_is_refused_with_a_reason(tmp_path):
    connection = sqlite3.connect(tmp_path / "l")
    connection.executescript(
        "CREATE TABLE meta (key TEXT, value TEXT); CREATE TABLE entries (number INTEGER); PRAGMA journal_mode = WAL;"
    )
    connection.close()
    with pytest.raises(LedgerError, match="not a ledger of schema 'privurn-ledger/2'") as refused:
        Ledger(tmp_path / "l")
    assert "Ledger.create(" in refused.value.hint


@pytest.mark.parametrize("rho", [-1.0, float("nan"), float("inf"), -float("inf"), np.float64(-0.1), -1e-300])
def test_amounts_that_cannot_be_paid(rho):
    with pytest.raises(LedgerError, match="rho cannot be paid"):
        cost(rho=rho)


@pytest.mark.parametrize(("epsilon", "delta"), [(-5.0, 0.0), (float("nan"), 0.0), (float("inf"), 0.0), (1.0, -1e-6)])
def test_a_guarantee_of_ones_own_gives_no_refund(ledger, epsilon, delta):
    """Whatever class it has: the amounts are looked at when they are written."""
    odd = SimpleNamespace(epsilon=epsilon, delta=delta, contributions=1, neighbouring="replace-one")
    with pytest.raises(LedgerError, match="cannot be paid"):
        ledger.debit(Spent(guarantee=odd, rho=None, description="test"))
    assert ledger.remaining()["epsilon"] == pytest.approx(0.7)


def test_a_rho_too_small_for_a_float_is_not_free(tmp_path):
    ledger = Ledger.create(tmp_path / "l", rho=1.0)
    with pytest.raises(BudgetExceeded, match="no zCDP bound"):
        ledger.debit(cost(rho=0.0))
    assert ledger.entries() == []


def test_numbers_of_numpy_are_exact_decimals(tmp_path):
    ledger = Ledger.create(tmp_path / "l", rho=np.float64(1.0))
    for _ in range(10):
        ledger.debit(cost(epsilon=np.float64(0.1), rho=np.float64(0.1)))
    assert ledger.remaining() == {"rho": 0.0}
    assert {entry.rho for entry in ledger.entries()} == {"0.1"}
    wide = Ledger.create(tmp_path / "w", epsilon=np.float32(0.5), delta=np.float64(1e-6))
    assert wide.budget() == {"epsilon": 0.5, "delta": 1e-6}


def test_sums_keep_amounts_of_every_size(tmp_path):
    ledger = Ledger.create(tmp_path / "l", epsilon=600.0, delta=0.5)
    tiny = Spent(guarantee=Guarantee(epsilon=1e-100, delta=1e-290), rho=None, description="test")
    ledger.debit(tiny)
    with pytest.raises(BudgetExceeded):
        ledger.debit(cost(epsilon=600.0))
    assert ledger.read().left()["epsilon"] < 600


def test_a_ledger_that_was_replaced_meanwhile(tmp_path):
    ledger = Ledger.create(tmp_path / "l", epsilon=1.0)
    (tmp_path / "l").unlink()
    with pytest.raises(LedgerError, match="cannot be read"):
        ledger.debit(cost())
    Ledger.create(tmp_path / "l", epsilon=100.0)
    with pytest.raises(LedgerError, match="replaced"):
        ledger.debit(cost())


def test_only_the_first_of_several_creators_succeeds(tmp_path):
    Ledger.create(tmp_path / "l", epsilon=1.0)
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("l", "dangling"):
        with pytest.raises(LedgerError, match="exists"):
            Ledger.create(tmp_path / name, epsilon=100.0)
    for name in ("no\0thing", "n" * 5000):
        with pytest.raises(LedgerError, match="cannot create"):
            Ledger.create(tmp_path / name, epsilon=1.0)
        with pytest.raises(LedgerError, match="no ledger"):
            Ledger(tmp_path / name)
    assert not (tmp_path / "nowhere").exists()


def test_a_creation_that_fails_leaves_nothing(tmp_path, monkeypatch):
    import privurn.privacy.ledger as module

    monkeypatch.setattr(module, "TABLE", "CREATE nonsense")
    with pytest.raises(LedgerError):
        Ledger.create(tmp_path / "l", epsilon=1.0)
    assert list(tmp_path.iterdir()) == []


def test_names_with_signs_that_addresses_use(tmp_path):
    for name in ("a?b", "a#b", "a%20b", "a b", "ü'\""):
        assert Ledger.create(tmp_path / name, epsilon=1.0).debit(cost()) == 1
        assert (tmp_path / name).is_file()


def test_entries_that_are_not_there(ledger):
    for number in (0, 4, -1):
        with pytest.raises(LedgerError, match="no entry"):
            ledger.complete(number, output="x")
    ledger.complete(2, output="1" * 64)
    assert ledger.entries()[1].output == "1" * 64


def test_the_first_subject_is_what_it_stands_for(ledger):
    first = Subject(files=("/a.csv",), columns=("x", "y"), n=10)
    assert ledger.read().subject is None
    ledger.debit(cost(), subject=first)
    ledger.debit(cost(), subject=Subject(files=("/b.csv",), columns=("z",), n=11))
    assert ledger.read().subject == first
    assert first.changes(first) == ()
    assert first.changes(Subject(files=(), columns=("x", "y"), n=None)) == ()
    words = first.changes(Subject(files=("/b.csv",), columns=("z",), n=11))
    assert [any(part in each for each in words) for part in ("'/b.csv'", "'z'", "10 records, this one has 11")] == [True] * 3
    assert len(words) == 3
