"""Who pays for a release: the ledger that was named, the one that stands beside the data, or nobody.

The ledger of FILE is called FILE.ledger. It is looked for beside every name by which the data were reached: the path as it was
spelled, what a glob made of it, every link on the way and the real file. So another spelling does not avoid it; only an
explicit False does, and the certificate says so. A copy of the data elsewhere cannot be known for what it is.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from privurn.errors import FormatError, LedgerError
from privurn.privacy.ledger import Ledger, Spent
from privurn.privacy.ledger_book import Subject
from privurn.tables import Source

LedgerChoice = Ledger | str | Path | Literal[False] | None
"""A ledger or its path; None for the one beside the data, where there is one; False for none."""


@dataclass(frozen=True)
class Payment:
    """What was paid: what the certificate says of it, and remarks for the custodian."""

    stamp: dict[str, Any]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Payer:
    """A ledger, or nobody, and the table that is paid for."""

    ledger: Ledger | None
    declined: bool
    files: tuple[str, ...]
    columns: tuple[str, ...]

    @classmethod
    def find(cls, choice: LedgerChoice, source: Source) -> "Payer":
        """Who pays for a release of this table."""
        beside = ledgers_beside(() if source.found is None else source.found.names)
        return cls(
            ledger=_chosen(choice, beside),
            declined=choice is False and bool(beside),
            files=tuple(os.fsencode(path).decode(errors="backslashreplace") for path in source.files),
            columns=tuple(source.types),
        )

    def pay(self, spent: Spent, *, n: int | None) -> Payment:
        """Debit the ledger, where there is one. The number of records is noted where it is public."""
        if self.ledger is None:
            return Payment({"used": False, "declined": True} if self.declined else {"used": False})
        public = None if spent.guarantee.neighbouring == "add-remove" or n is None else int(n)
        subject = Subject(files=self.files, columns=self.columns, n=public)
        number = self.ledger.debit(spent, subject=subject)
        first = self.ledger.read().subject
        return Payment(self.ledger.stamp(number), () if first is None else first.changes(subject))


def ledgers_beside(names: Sequence[Path]) -> list[Path]:
    """The ledgers that stand beside these names, each once; a broken link counts, so that it is not taken for none."""
    paths = (Path(f"{name}.ledger") for name in names)
    return sorted({path.resolve() for path in paths if os.path.lexists(path)})


def _chosen(choice: LedgerChoice, beside: Sequence[Path]) -> Ledger | None:
    if choice is False:
        return None
    if not (choice is None or isinstance(choice, (Ledger, str, Path))):
        raise FormatError("ledger must be a ledger, its path, None for the one beside the data, or False for none.")
    if len(beside) > 1:
        raise LedgerError(
            f"beside the data stand {len(beside)} ledgers, among them {str(beside[0])!r} and {str(beside[1])!r}.",
            hint="Release each data set by itself, or keep one ledger for all of them",
        )
    if choice is None:
        return Ledger(beside[0]) if beside else None
    named = choice if isinstance(choice, Ledger) else Ledger(choice)
    if beside and named.path != beside[0]:
        raise LedgerError(
            f"{str(named.path)!r} was named, and beside the data stands the ledger {str(beside[0])!r}.",
            hint="Pay with the one beside the data; ledger=False uses none, and the certificate says so",
        )
    return named
