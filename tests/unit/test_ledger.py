"""The ledger adds exactly, refuses to overspend, and is never replaced."""

import sqlite3

import pytest

import privurn
from privurn.errors import BudgetExceeded, LedgerError
from privurn.privacy.ledger import Ledger, Spent
from privurn.privacy.profile import Guarantee


def cost(epsilon, delta=0.0, rho=None, contributions=1):
    guarantee = Guarantee(epsilon=epsilon, delta=delta, contributions=contributions)
    return Spent(guarantee=guarantee, rho=rho, description="test")


def test_ten_tenths_are_one(tmp_path):
    ledger = Ledger.create(tmp_path / "l", epsilon=1.0, delta=1e-6)
    for _ in range(10):
        ledger.debit(cost(0.1, 1e-7))
    assert ledger.remaining() == {"epsilon": 0.0, "delta": 0.0}
    with pytest.raises(BudgetExceeded, match="epsilon = 1e-09 and 0 is left"):
        ledger.debit(cost(1e-9))
    assert len(ledger.entries()) == 10


def test_delta_counts_too(tmp_path):
    ledger = Ledger.create(tmp_path / "l", epsilon=10.0, delta=1e-6)
    with pytest.raises(BudgetExceeded, match="delta"):
        ledger.debit(cost(0.1, 2e-6))
    assert ledger.entries() == []


def test_a_rho_budget_refuses_what_has_no_rho(tmp_path):
    ledger = Ledger.create(tmp_path / "l", rho=0.5)
    with pytest.raises(BudgetExceeded, match="no zCDP bound"):
        ledger.debit(cost(0.1, 1e-6))
    ledger.debit(cost(0.8, rho=0.32))
    with pytest.raises(BudgetExceeded, match="rho"):
        ledger.debit(cost(0.8, rho=0.32))
    assert ledger.remaining() == {"rho": pytest.approx(0.18)}


def test_pure_releases_can_be_paid_in_rho(tmp_path):
    ledger = Ledger.create(tmp_path / "l", rho=0.5)
    data = [i % 4 for i in range(400)]
    import polars as pl

    privurn.release(pl.DataFrame({"x": data}), privurn.Urn(), domain=privurn.Grid(0, 3, 1), epsilon=0.5, ledger=ledger)
    assert ledger.remaining()["rho"] == pytest.approx(0.5 - 0.125, rel=1e-4)


def test_the_unit_must_be_the_ledgers(tmp_path):
    ledger = Ledger.create(tmp_path / "l", epsilon=1.0, contributions=2)
    with pytest.raises(LedgerError, match="units of 2"):
        ledger.debit(cost(0.1))
    assert ledger.debit(cost(0.1, contributions=2)) == 1


def test_a_budget_is_set_once(tmp_path):
    Ledger.create(tmp_path / "l", epsilon=1.0)
    with pytest.raises(LedgerError, match="exists"):
        Ledger.create(tmp_path / "l", epsilon=100.0)
    assert Ledger(tmp_path / "l").budget() == {"epsilon": 1.0, "delta": 0.0}
    assert [path.name for path in tmp_path.iterdir()] == ["l"]


@pytest.mark.parametrize(
    "arguments", [{}, {"epsilon": 1.0, "rho": 1.0}, {"rho": -1.0}, {"rho": 1.0, "delta": 1e-6}, {"epsilon": 0.0}]
)
def test_impossible_budgets(tmp_path, arguments):
    with pytest.raises(privurn.errors.PrivurnError):
        Ledger.create(tmp_path / "l", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_unreadable_ledgers(tmp_path):
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger(tmp_path / "none")
    (tmp_path / "text").write_text("not a database at all, but long enough to be looked at")
    with pytest.raises(LedgerError, match="cannot be read"):
        Ledger(tmp_path / "text")
    connection = sqlite3.connect(tmp_path / "other")
    connection.execute("CREATE TABLE meta (key TEXT, value TEXT)")
    connection.close()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(tmp_path / "other")
    with pytest.raises(LedgerError, match="cannot create"):
        Ledger.create(tmp_path / "no" / "where", epsilon=1.0)


def test_durable_settings(tmp_path):
    ledger = Ledger.create(tmp_path / "l", epsilon=1.0)
    with ledger._open() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)  # a copy of the file has all payments
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA


def test_a_release_is_paid_for_before_it_is_drawn(tmp_path, monkeypatch):
    import numpy as np

    from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial

    ledger = Ledger.create(tmp_path / "l", epsilon=1.0, delta=1e-6)
    paid = []
    draw = DirichletMultinomial.draw
    monkeypatch.setattr(DirichletMultinomial, "draw", lambda *a, **k: (paid.append(len(ledger.entries())), draw(*a, **k))[1])
    out = privurn.release(
        np.arange(100) % 5, privurn.Urn(), domain=privurn.Grid(0, 4, 1), epsilon=0.5, delta=1e-6, ledger=tmp_path / "l"
    )
    assert paid == [1]
    entry = ledger.entries()[0]
    assert out.certificate["ledger"] == {"used": True, "ledger": ledger.meta["id"], "entry": 1, "hash": entry.hash}
    assert entry.status == "debited"
    out.save(tmp_path / "out")
    assert ledger.entries()[0].status == "released"
    with pytest.raises(BudgetExceeded):
        privurn.release(
            np.arange(100) % 5, privurn.Urn(), domain=privurn.Grid(0, 4, 1), epsilon=0.5, delta=1e-6, ledger=tmp_path / "l"
        )


def test_both_figures_of_what_was_spent(tmp_path):
    import numpy as np

    from privurn.certificates.spending import spending

    ledger = Ledger.create(tmp_path / "l", epsilon=10.0, delta=1e-3)
    assert spending(ledger).tight_epsilon is None
    for _ in range(6):
        privurn.release(
            np.arange(4000) % 5, privurn.Urn(), domain=privurn.Grid(0, 4, 1), epsilon=0.5, delta=1e-6, ledger=ledger
        )
    spent = spending(ledger)
    assert spent.epsilon == pytest.approx(3.0)
    assert spent.delta == pytest.approx(6e-6)
    assert 0.5 < spent.tight_epsilon < 1.6  # about the square root of the number of releases
    ledger.debit(cost(0.5, 1e-6))  # parameters unknown: only the point that was paid
    assert spent.tight_epsilon < spending(ledger).tight_epsilon < spent.tight_epsilon + 0.5
    pure = Ledger.create(tmp_path / "p", epsilon=1.0)
    pure.debit(cost(0.25))
    assert spending(pure).tight_epsilon == 0.25
