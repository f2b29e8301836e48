"""What a ledger says: a budget, debits and what became of them, as a chain of events that shows edits.

    event 0   the budget                       hash(0) = SHA-256(text(0))
    event k   a debit, or the output of one    hash(k) = SHA-256(hash(k-1), newline, text(k))

Events are only ever appended. The text of an event is canonical JSON (sorted keys, no spaces, ASCII), so its hash covers all of
it. Whoever changes an event has to write all later hashes anew, and then the last one, the head, is another. A hash noted
elsewhere, such as in the certificate of a release, tells such a ledger, or an old copy, from the true one.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privurn.errors import LedgerError
from privurn.privacy.profile import Guarantee

SCHEMA = "privurn-ledger/2"
META = frozenset(["schema", "id", "created", "name", "epsilon", "delta", "rho", "neighbouring", "contributions"])
DEBIT = frozenset(["kind", "entry", "id", "created", "epsilon", "delta", "rho", "description", "parameters", "subject"])
OUTPUT = frozenset(["kind", "entry", "created", "sha256"])


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a release was made of: the real files (none for a frame), the table's columns, n where that is public."""

    files: tuple[str, ...]
    columns: tuple[str, ...]
    n: int | None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"files": list(self.files), "columns": list(self.columns), "n": self.n}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Subject":
        """From plain data."""
        made = cls(files=tuple(data["files"]), columns=tuple(data["columns"]), n=data["n"])
        if not all(isinstance(name, str) for name in made.files + made.columns) or not isinstance(made.n, int | None):
            raise ValueError("not a subject")
        return made

    def changes(self, now: "Subject") -> tuple[str, ...]:
        """In words, how another table differs from this one, which a ledger stands for."""
        found = []
        if self.files and now.files and self.files != now.files:
            found.append(f"the ledger stands for {_shortened(self.files)}, and this is {_shortened(now.files)}.")
        if self.columns != now.columns:
            found.append(f"the ledger stands for the columns {_shortened(self.columns)}, these are {_shortened(now.columns)}.")
        if self.n is not None and now.n is not None and self.n != now.n:
            found.append(f"the ledger stands for a table of {self.n:,} records, this one has {now.n:,}.")
        return tuple(found)


def _shortened(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return ", ".join(repr(name) for name in names[:3]) + more


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One debit, and the output that it paid for where that was noted."""

    number: int
    created: str
    status: str
    epsilon: str
    delta: str
    rho: str | None
    description: str
    parameters: str | None
    output: str | None
    hash: str


@dataclass(frozen=True, kw_only=True)
class Book:
    """All that a ledger says, checked."""

    meta: Mapping[str, str]
    entries: tuple[Entry, ...]
    subject: Subject | None
    """What the first debit that said so was for."""

    hashes: tuple[str, ...]
    """Of all events, oldest first."""

    @property
    def head(self) -> str:
        """Hash of the last event."""
        return self.hashes[-1]

    def left(self) -> dict[str, Fraction]:
        """What is left of the budget, exactly."""
        names = ("rho",) if self.meta["rho"] else ("epsilon", "delta")
        return {
            name: read_amount(self.meta[name]) - sum((read_amount(getattr(entry, name)) for entry in self.entries), Fraction(0))
            for name in names
        }


def write_amount(value: float, *, name: str) -> str:
    """An amount as a ledger holds it: the shortest decimal of a float that is finite and not negative."""
    number = float(value)
    if not 0.0 <= number < math.inf:
        raise LedgerError(f"{name} cannot be paid: it must be a finite number that is not negative.")
    return repr(number + 0.0)  # no sign on a zero


def read_amount(text: Any) -> Fraction:
    """The exact decimal; raises ValueError on what `write_amount` does not write."""
    if not isinstance(text, str) or repr(float(text)) != text or not 0.0 <= float(text) < math.inf or text[0] == "-":
        raise ValueError("not an amount")
    return Fraction(text)


def event_text(content: Mapping[str, Any]) -> str:
    """The text that is kept and hashed."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def event_hash(text: str, previous: str | None) -> str:
    """Hash of an event that follows the one with this hash."""
    return hashlib.sha256(text.encode() if previous is None else f"{previous}\n{text}".encode()).hexdigest()


class _Damage(Exception):
    """Why an event cannot be believed."""


def read_book(rows: Iterable[tuple[Any, Any, Any]]) -> Book:
    """Check all events (number, text, hash) against each other; a ledger that was edited or damaged is refused."""
    position = 0
    try:
        reader = _Reader()
        for position, (number, text, stated) in enumerate(rows):
            reader.add(position, number, text, stated)
        return reader.book()
    except _Damage as damage:
        reason = str(damage)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        reason = "it does not hold what it should"
    raise LedgerError(
        f"the ledger is damaged or was edited: event {position}: {reason}.",
        hint="Release nothing with it. Compare a copy with what was published: check_ledger('PATH', certificates=PUBLISHED)",
    )


class _Reader:
    """Reads events one by one."""

    def __init__(self) -> None:
        self.meta: dict[str, str] = {}
        self.debits: list[dict[str, Any]] = []
        self.outputs: dict[int, str] = {}
        self.hashes: list[str] = []

    def add(self, position: int, number: Any, text: Any, stated: Any) -> None:
        """Check one event and take it in."""
        content = json.loads(text)
        if number != position or event_text(content) != text:
            raise _Damage("an event is missing or is not written as a ledger writes it")
        if stated != event_hash(text, self.hashes[-1] if self.hashes else None):
            raise _Damage("its hash does not fit")
        if position == 0:
            self._budget(content)
        elif content["kind"] == "debit":
            self._debit(content, stated)
        else:
            self._output(content)
        self.hashes.append(stated)

    def _budget(self, content: dict[str, Any]) -> None:
        if content.keys() != META or content["schema"] != SCHEMA or not all(isinstance(each, str) for each in content.values()):
            raise _Damage(f"it is not the budget of a ledger of schema {SCHEMA!r}")
        total, delta = read_amount(content["rho"] or content["epsilon"]), read_amount(content["delta"] or "0.0")
        if total == 0 or delta >= 1:
            raise _Damage("it is no budget")
        Guarantee(epsilon=1, delta=0, contributions=int(content["contributions"]), neighbouring=content["neighbouring"])
        self.meta = content

    def _debit(self, content: dict[str, Any], stated: str) -> None:
        amounts = [content["epsilon"], content["delta"], *([] if content["rho"] is None else [content["rho"]])]
        try:
            for amount in amounts:
                read_amount(amount)
        except (TypeError, ValueError):
            raise _Damage("an amount is negative, not finite or not a number") from None
        words = [content["id"], content["created"], content["description"], content["parameters"] or ""]
        if content.keys() != DEBIT or content["entry"] != len(self.debits) + 1 or not all(isinstance(w, str) for w in words):
            raise _Damage("it is not the next debit")
        if content["subject"] is not None:
            Subject.from_json(content["subject"])
        self.debits.append(content | {"hash": stated})

    def _output(self, content: dict[str, Any]) -> None:
        if content.keys() != OUTPUT or content["kind"] != "output" or not 1 <= content["entry"] <= len(self.debits):
            raise _Damage("it is neither a debit nor the output of one")
        self.outputs[int(content["entry"])] = str(content["sha256"])

    def book(self) -> Book:
        """Everything together."""
        if not self.meta:
            raise _Damage("there is no budget")
        entries = tuple(
            Entry(
                number=each["entry"],
                status="released" if each["entry"] in self.outputs else "debited",
                output=self.outputs.get(each["entry"]),
                **{key: each[key] for key in ("created", "epsilon", "delta", "rho", "description", "parameters", "hash")},
            )
            for each in self.debits
        )
        subject = next((Subject.from_json(each["subject"]) for each in self.debits if each["subject"] is not None), None)
        book = Book(meta=self.meta, entries=entries, subject=subject, hashes=tuple(self.hashes))
        if min(book.left().values()) < 0:
            raise _Damage("more was spent than the budget allows")
        return book
