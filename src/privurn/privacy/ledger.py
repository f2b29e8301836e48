"""The ledger: one SQLite file for each data set that says how much privacy budget is left, and refuses to overspend.

A release debits the ledger and flushes it to disk before any of its output exists, so a crash can waste budget but never
leak it. Amounts are added as exact decimals (ten times 0.1 is 1). Composition is basic: epsilons add, deltas add, or rhos
add. That is a valid filter even when later releases are chosen after seeing earlier ones.
"""

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import uuid4

from privurn.errors import BudgetExceeded, FormatError, LedgerError
from privurn.privacy.profile import Guarantee, Neighbouring, check_delta, check_epsilon

SCHEMA = "privurn-ledger/1"
WAIT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What one release costs: an (epsilon, delta) pair, and a zCDP rho where there is one."""

    guarantee: Guarantee
    rho: float | None
    description: str
    parameters: Mapping[str, Any] | None = None
    """Parameters of the mechanism called `description`, where they are known before it runs: for tighter figures later."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the ledger."""

    number: int
    created: str
    status: str
    epsilon: str
    delta: str
    rho: str | None
    description: str
    parameters: str | None
    output: str | None


class Ledger:
    """An open budget. `Ledger.create` sets it once; it can be read again with `Ledger(path)`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise LedgerError(
                f"there is no ledger at {str(path)!r}.", hint=f"Create one: privurn ledger init {path} --epsilon 1 --delta 1e-6"
            )
        with self._open() as connection:
            self.meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        if self.meta.get("schema") != SCHEMA:
            raise LedgerError(f"{str(path)!r} is not a ledger of schema {SCHEMA!r}.")

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        name: str = "",
        contributions: int = 1,
        neighbouring: Neighbouring = "replace-one",
    ) -> "Ledger":
        """Make a new ledger with a budget of (epsilon, delta) or of rho, for units of up to `contributions` records."""
        path = Path(path)
        if (epsilon is None) == (rho is None):
            raise FormatError("a ledger has one budget.", hint="Give either --epsilon (with --delta) or --rho")
        Guarantee(epsilon=1.0, delta=0.0, contributions=contributions, neighbouring=neighbouring)  # checks the last two
        if rho is not None and (delta is not None or not 0 < rho < math.inf):
            raise FormatError("a rho budget is one positive number without a delta.", hint="For example --rho 0.5")
        if epsilon is not None:
            check_epsilon(epsilon)
            check_delta(delta or 0.0)
        if path.exists():
            raise LedgerError(
                f"{str(path)!r} exists.", hint="A budget is set once; choose another name or use the ledger as it is"
            )
        meta = {
            "schema": SCHEMA,
            "id": str(uuid4()),
            "created": _now(),
            "name": name,
            "epsilon": "" if epsilon is None else repr(float(epsilon)),
            "delta": "" if epsilon is None else repr(float(delta or 0.0)),
            "rho": "" if rho is None else repr(float(rho)),
            "neighbouring": neighbouring,
            "contributions": str(contributions),
        }
        partial = path.with_name(f".{path.name}.{uuid4().hex}")
        try:
            connection = sqlite3.connect(partial, isolation_level=None)
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(TABLES)
            connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
            connection.execute("PRAGMA journal_mode = WAL")
            connection.close()
            path.hardlink_to(partial)  # fails if someone else was faster, so a budget is never replaced
        except (sqlite3.Error, OSError):
            raise LedgerError(
                f"cannot create a ledger at {str(path)!r}.", hint="Check that the folder exists and is writable"
            ) from None
        finally:
            for leftover in path.parent.glob(f"{partial.name}*"):
                leftover.unlink(missing_ok=True)
        return cls(path)

    @property
    def contributions(self) -> int:
        """Records of one unit that the budget protects together."""
        return int(self.meta["contributions"])

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = None
        try:
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw", uri=True, timeout=WAIT_SECONDS, isolation_level=None
            )
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        except sqlite3.Error:
            raise LedgerError(
                f"the ledger {str(self.path)!r} cannot be read or written.",
                hint="Check that it is a privurn ledger and not damaged",
            ) from None
        finally:
            if connection is not None:
                connection.close()

    def debit(self, spent: Spent) -> int:
        """Pay for a release, or refuse. When this returns, the payment is on disk. Returns the entry's number."""
        if spent.guarantee.contributions != self.contributions:
            raise LedgerError(
                f"this ledger protects units of {self.contributions} record(s), the release {spent.guarantee.contributions}.",
                hint=f"Release with contributions={self.contributions} (--contributions {self.contributions})",
            )
        if spent.guarantee.neighbouring != self.meta["neighbouring"]:
            raise LedgerError(
                f"this ledger counts {self.meta['neighbouring']} neighbours, the release {spent.guarantee.neighbouring}.",
                hint=f"Release with neighbouring={self.meta['neighbouring']!r}, or keep another ledger",
            )
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")  # one writer at a time: nobody reads a balance that is about to change
            try:
                self._refuse_overspending(connection, spent)
                cursor = connection.execute(
                    "INSERT INTO entries (created, status, epsilon, delta, rho, description, parameters) "
                    "VALUES (?, 'debited', ?, ?, ?, ?, ?)",
                    (
                        _now(),
                        repr(spent.guarantee.epsilon),
                        repr(spent.guarantee.delta),
                        None if spent.rho is None else repr(spent.rho),
                        spent.description,
                        None if spent.parameters is None else json.dumps(spent.parameters),
                    ),
                )
                number = int(cursor.lastrowid or 0)
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
        return number

    def _refuse_overspending(self, connection: sqlite3.Connection, spent: Spent) -> None:
        if self.meta["rho"]:
            if spent.rho is None:
                raise BudgetExceeded(
                    "this ledger has a rho budget and the release has no zCDP bound.",
                    hint="Ask for delta=0, or keep an (epsilon, delta) ledger",
                )
            costs = {"rho": spent.rho}
        else:
            costs = {"epsilon": spent.guarantee.epsilon, "delta": spent.guarantee.delta}
        left = self._left(connection)
        for name, cost in costs.items():
            if Fraction(repr(cost)) > left[name]:
                raise BudgetExceeded(f"the release costs {name} = {cost:g} and {float(left[name]):g} is left.", hint=_LESS)

    def _left(self, connection: sqlite3.Connection) -> dict[str, Fraction]:
        names = ("rho",) if self.meta["rho"] else ("epsilon", "delta")
        left = {}
        for name in names:
            amounts = connection.execute(f"SELECT {name} FROM entries").fetchall()
            left[name] = Fraction(self.meta[name]) - sum((Fraction(amount) for (amount,) in amounts), Fraction(0))
        return left

    def complete(self, number: int, *, output: str) -> None:
        """Note the hash of what an entry paid for."""
        with self._open() as connection:
            connection.execute("UPDATE entries SET status = 'released', output = ? WHERE number = ?", (output, number))

    def remaining(self) -> dict[str, float]:
        """What is left of the budget."""
        with self._open() as connection:
            return {name: float(amount) for name, amount in self._left(connection).items()}

    def budget(self) -> dict[str, float]:
        """The budget as it was set."""
        return {name: float(self.meta[name]) for name in ("epsilon", "delta", "rho") if self.meta[name]}

    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        columns = "number, created, status, epsilon, delta, rho, description, parameters, output"
        names = columns.split(", ")
        with self._open() as connection:
            rows = connection.execute(f"SELECT {columns} FROM entries ORDER BY number").fetchall()
        return [Entry(**dict(zip(names, row, strict=True))) for row in rows]

    def stamp(self, number: int) -> dict[str, Any]:
        """What a certificate says about the payment."""
        return {"used": True, "ledger": self.meta["id"], "entry": number}


_LESS = "Ask for less, or stop here: a budget is set once"

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    created TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('debited', 'released')),
    epsilon TEXT NOT NULL,
    delta TEXT NOT NULL,
    rho TEXT,
    description TEXT NOT NULL,
    parameters TEXT,
    output TEXT
);
"""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
