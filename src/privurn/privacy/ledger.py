"""The ledger: one SQLite file for each data set that says how much privacy budget is left, and refuses to overspend.

A release debits the ledger and flushes it to disk before any of its output exists, so a crash can waste budget but never
leak it. Amounts are added as exact decimals (ten times 0.1 is 1). Composition is basic: epsilons add, deltas add, or rhos
add. That is a valid filter even when later releases are chosen after seeing earlier ones.

The file is whole at every moment: SQLite's rollback journal holds what a transaction may have to undo, never a payment that
was made. What the file says is a chain of events (privurn.privacy.ledger_book), checked whenever it is read.
"""

import json
import math
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import uuid4

from privurn.errors import BudgetExceeded, FormatError, LedgerError
from privurn.privacy.ledger_book import SCHEMA, Book, Entry, Subject, event_hash, event_text, read_book, write_amount
from privurn.privacy.profile import Guarantee, Neighbouring, check_delta, check_epsilon

WAIT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What one release costs: an (epsilon, delta) pair, and a zCDP rho where there is one."""

    guarantee: Guarantee
    rho: float | None
    description: str
    parameters: Mapping[str, Any] | None = None
    """Parameters of the mechanism called `description`, where they are known before it runs: for tighter figures later."""

    def __post_init__(self) -> None:
        self.amounts()  # refuses what cannot be paid

    def amounts(self) -> dict[str, str | None]:
        """Exact decimals, as a ledger holds them."""
        return {
            "epsilon": write_amount(self.guarantee.epsilon, name="epsilon"),
            "delta": write_amount(self.guarantee.delta, name="delta"),
            "rho": None if self.rho is None else write_amount(self.rho, name="rho"),
        }


class Ledger:
    """An open budget. `Ledger.create` sets it once; it can be read again with `Ledger(path)`."""

    def __init__(self, path: str | Path) -> None:
        try:
            self.path = Path(path).resolve(strict=True)  # SQLite names its journal after the path: all must use the same
            there = self.path.is_file()
        except (OSError, ValueError, RuntimeError):
            there = False
        if not there:
            raise LedgerError(
                f"there is no ledger at {str(path)!r}.", hint=f"Create one: Ledger.create({str(path)!r}, epsilon=1, delta=1e-6)"
            )
        self.meta = self.read().meta

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
            raise FormatError("a ledger has one budget.", hint="For example epsilon=4, delta=1e-6; or rho=0.5")
        Guarantee(epsilon=1.0, delta=0.0, contributions=contributions, neighbouring=neighbouring)  # checks the last two
        if rho is not None and (delta is not None or not 0 < rho < math.inf):
            raise FormatError("a rho budget is one positive number without a delta.", hint="For example rho=0.5")
        meta = {
            "schema": SCHEMA,
            "id": str(uuid4()),
            "created": _now(),
            "name": name,
            "epsilon": "" if epsilon is None else write_amount(check_epsilon(epsilon), name="epsilon"),
            "delta": "" if epsilon is None else write_amount(check_delta(delta or 0.0), name="delta"),
            "rho": "" if rho is None else write_amount(rho, name="rho"),
            "neighbouring": neighbouring,
            "contributions": str(contributions),
        }
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))  # one of several is the first
        except FileExistsError:
            raise LedgerError(
                f"{str(path)!r} exists.", hint="A budget is set once; choose another name or use the ledger as it is"
            ) from None
        except (OSError, ValueError):
            raise LedgerError(
                f"cannot create a ledger at {str(path)!r}.", hint="Check that the folder exists and is writable"
            ) from None
        try:
            _write_budget(path.resolve(), event_text(meta))
        except BaseException:  # Ctrl-C too; the file is ours, and nobody can have paid with it
            path.unlink(missing_ok=True)
            raise
        _flush_folder(path.resolve().parent)
        return cls(path)

    @property
    def contributions(self) -> int:
        """Records of one unit that the budget protects together."""
        return int(self.meta["contributions"])

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with _connection(self.path) as connection:
            self._refuse_foreign_files(connection)
            yield connection

    def _refuse_foreign_files(self, connection: sqlite3.Connection) -> None:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "events" not in tables:
            raise LedgerError(
                f"{str(self.path)!r} is not a ledger of schema {SCHEMA!r}.",
                hint="A ledger of an earlier version shows no edits. Set what it has left as the budget of a new one: "
                "Ledger.create('PATH', epsilon=LEFT, delta=LEFT)"
                if {"meta", "entries"} <= tables
                else None,
            )
        more = "SELECT count(*) FROM sqlite_master WHERE NOT (type = 'table' AND name = 'events') AND name NOT LIKE 'sqlite_%'"
        if connection.execute(more).fetchone() != (0,):
            raise LedgerError(
                f"the ledger {str(self.path)!r} holds more than its events: a trigger, a view or another table.",
                hint="Such things can change payments. Remove them, and compare the head with one that was noted",
            )
        if self.path.stat().st_nlink != 1:
            raise LedgerError(
                f"the ledger {str(self.path)!r} has a second name (a hard link).",
                hint="Each name has a journal of its own, so payments could be lost. Remove one name; symbolic links may stay",
            )
        if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            raise LedgerError(
                f"the ledger {str(self.path)!r} was changed to a write-ahead log, so a copy of it can lack payments.",
                hint="Change it back: sqlite3 PATH 'PRAGMA journal_mode = DELETE'",
            )

    @contextmanager
    def _append(self) -> Iterator["_Page"]:
        """A transaction in which one event may be added; on disk when this ends."""
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")  # one writer at a time: nobody reads a balance that is about to change
            try:
                book = _read(connection)
                if book.meta != self.meta:
                    raise LedgerError(f"the ledger {str(self.path)!r} was replaced by another meanwhile.")
                yield _Page(book, connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def read(self) -> Book:
        """All that the ledger says, checked against its hashes."""
        with self._open() as connection:
            return _read(connection)

    def debit(self, spent: Spent, *, subject: Subject | None = None) -> int:
        """Pay for a release, or refuse. When this returns, the payment is on disk. Returns the entry's number.

        `subject` says what is released; the first one that a ledger is told is what it stands for.
        """
        if spent.guarantee.contributions != self.contributions:
            raise LedgerError(
                f"this ledger protects units of {self.contributions} record(s), the release {spent.guarantee.contributions}.",
                hint=f"Release with contributions={self.contributions}",
            )
        if spent.guarantee.neighbouring != self.meta["neighbouring"]:
            raise LedgerError(
                f"this ledger counts {self.meta['neighbouring']} neighbours, the release {spent.guarantee.neighbouring}.",
                hint=f"Release with neighbouring={self.meta['neighbouring']!r}, or keep another ledger",
            )
        amounts = spent.amounts()
        with self._append() as page:
            _refuse_overspending(page.book, amounts)
            number = len(page.book.entries) + 1
            page.write(
                {
                    "kind": "debit",
                    "entry": number,
                    "id": str(uuid4()),  # two payments of one second for the same thing are two
                    "created": _now(),
                    **amounts,
                    "description": spent.description,
                    "parameters": None if spent.parameters is None else json.dumps(spent.parameters),
                    "subject": None if subject is None or page.book.subject is not None else subject.to_json(),
                }
            )
        return number

    def complete(self, number: int, *, output: str) -> None:
        """Note the hash of what an entry paid for."""
        with self._append() as page:
            if not 1 <= number <= len(page.book.entries):
                raise LedgerError(f"the ledger {str(self.path)!r} has no entry {number}.")
            page.write({"kind": "output", "entry": number, "created": _now(), "sha256": output})

    def remaining(self) -> dict[str, float]:
        """What is left of the budget."""
        return {name: float(amount) for name, amount in self.read().left().items()}

    def budget(self) -> dict[str, float]:
        """The budget as it was set."""
        return {name: float(self.meta[name]) for name in ("epsilon", "delta", "rho") if self.meta[name]}

    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        return list(self.read().entries)

    def stamp(self, number: int) -> dict[str, Any]:
        """What a certificate says about the payment; the hash shows later that the ledger still holds it."""
        return {"used": True, "ledger": self.meta["id"], "entry": number, "hash": self.read().entries[number - 1].hash}


@dataclass(frozen=True)
class _Page:
    """Where the next event goes."""

    book: Book
    connection: sqlite3.Connection

    def write(self, content: Mapping[str, Any]) -> None:
        """Add one event to the chain."""
        text = event_text(content)
        row = (len(self.book.hashes), text, event_hash(text, self.book.head))
        self.connection.execute("INSERT INTO events (number, content, hash) VALUES (?, ?, ?)", row)


def _refuse_overspending(book: Book, amounts: Mapping[str, str | None]) -> None:
    if book.meta["rho"] and amounts["rho"] in (None, "0.0"):  # what is too small for a float is no bound either
        raise BudgetExceeded(
            "this ledger has a rho budget and the release has no zCDP bound.",
            hint="Ask for delta=0, or keep an (epsilon, delta) ledger",
        )
    for name, left in book.left().items():
        cost = Fraction(str(amounts[name]))
        if cost > left:
            raise BudgetExceeded(
                f"the release costs {name} = {float(cost):g} and {float(left):g} is left.", hint=_less(name, left)
            )


def _less(name: str, left: Fraction) -> str:
    """What may still be asked for, rounded down."""
    rounded = Context(prec=6, rounding=ROUND_FLOOR).divide(Decimal(left.numerator), Decimal(left.denominator))
    asked = f"at most {name}={float(rounded):g}" if left > 0 and name != "rho" else "less"
    return f"Ask for {asked}, or stop here: a budget is set once"


TABLE = "CREATE TABLE events (number INTEGER PRIMARY KEY, content TEXT NOT NULL, hash TEXT NOT NULL)"


@contextmanager
def _connection(path: Path) -> Iterator[sqlite3.Connection]:
    connection = None
    try:
        connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=WAIT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA synchronous = EXTRA")  # also flushes the folder when the journal has gone
        yield connection
    except (sqlite3.Error, OSError):
        raise LedgerError(
            f"the ledger {str(path)!r} cannot be read or written.", hint="Check that it is a privurn ledger and not damaged"
        ) from None
    finally:
        if connection is not None:
            connection.close()


def _read(connection: sqlite3.Connection) -> Book:
    return read_book(connection.execute("SELECT number, content, hash FROM events ORDER BY number").fetchall())


def _write_budget(path: Path, text: str) -> None:
    """Table and first event in one transaction: the file holds a whole ledger, or none."""
    with _connection(path) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute(TABLE)
        connection.execute("INSERT INTO events (number, content, hash) VALUES (0, ?, ?)", (text, event_hash(text, None)))
        connection.execute("COMMIT")


def _flush_folder(folder: Path) -> None:
    with suppress(OSError):  # some systems cannot
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
