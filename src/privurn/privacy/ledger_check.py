"""Check a ledger by itself, against hashes that were noted elsewhere, and against the certificates of what it paid for.

By itself a ledger shows edits that leave its hashes as they were. It does not show that it is an older copy, or that all hashes
were written anew: for that something outside is needed that knows a later hash.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from privurn.errors import LedgerError
from privurn.privacy.certificate import Certificate
from privurn.privacy.ledger import Ledger
from privurn.privacy.ledger_book import Book


@dataclass(frozen=True)
class LedgerCheck:
    """What is wrong with a ledger, and what it says where it can be read."""

    reasons: tuple[str, ...]
    book: Book | None

    @property
    def valid(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.reasons


def check_ledger(
    path: str | Path, *, noted: Sequence[str] = (), certificates: Mapping[str, Certificate] | None = None
) -> LedgerCheck:
    """Recompute the hashes of a ledger and its balance, and look for what must be in it.

    Parameters
    ----------
    path
        The ledger; there must be a file.
    noted
        Hashes that `ledger show` or `ledger check` once called its head.
    certificates
        By name: releases that it has paid for.
    """
    if not Path(path).is_file():
        Ledger(path)  # says that there is none
    try:
        book = Ledger(path).read()
    except LedgerError as damage:
        return LedgerCheck((damage.message.removesuffix("."),), None)
    lost = [f"it does not continue the ledger whose head was {each}" for each in noted if each not in book.hashes]
    paid = [f"{name}: {reason}" for name, each in (certificates or {}).items() if (reason := _unpaid(book, each))]
    return LedgerCheck((*lost, *paid), book)


def _unpaid(book: Book, certificate: Certificate) -> str | None:
    """Why this ledger cannot have paid for a release, None where it has."""
    stamp = certificate["ledger"]
    if not certificate.intact:
        return "the certificate was edited"
    if not isinstance(stamp, Mapping) or stamp.get("used") is not True:
        return "the certificate says that no ledger paid"
    if stamp.get("ledger") != book.meta["id"]:
        return "the certificate names another ledger"
    if (stamp.get("entry"), stamp.get("hash")) not in {(entry.number, entry.hash) for entry in book.entries}:
        return "the ledger lacks the payment that the certificate names: it is an old copy, or was rewritten"
    return None
