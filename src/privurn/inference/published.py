"""What was published, whoever published it: read, verified, and sorted by what can be inferred from it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from privurn.inference.counts.released import Observed, observe
from privurn.inference.mixtures.reading import Privatised, one_output, read_privatised
from privurn.inference.sums.reading import read_sums
from privurn.inference.tables.reading import read_table
from privurn.inference.verified import Verified, verified
from privurn.mechanisms.sums.statistic import NoisyStatistics
from privurn.mechanisms.table_measurements import MeasuredTable

Kind = Literal["counts", "tree", "mixture", "sums", "tables"]
WORDS = {
    "counts": "counts of cells",
    "tree": "noisy trees",
    "mixture": "privatised records",
    "sums": "noisy sums",
    "tables": "noisy marginals",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Published:
    """Public numbers and how they were made. `private` is False for seeded releases, which promise nothing to anyone.

    `sha256` is the hash that the certificate carries; None for numbers without one.
    """

    numbers: Observed | Privatised | NoisyStatistics | MeasuredTable
    private: bool = True
    sha256: str | None = None

    @property
    def kind(self) -> Kind:
        """What was published, in one word."""
        if isinstance(self.numbers, MeasuredTable):
            return "tables"
        if isinstance(self.numbers, Observed):
            return "counts" if self.numbers.measured is None else "tree"
        return "mixture" if isinstance(self.numbers, Privatised) else "sums"

    @property
    def words(self) -> str:
        """The kind, for people."""
        return WORDS[self.kind]


def published(source: Any, *, mixture: bool = False) -> Published:
    """What a folder or an object holds, verified.

    `mixture`: counts of one column in equal bins are read as one output of all records, behind a channel.
    """
    if isinstance(source, Published):
        return source
    found = _read(source)
    if mixture and isinstance(found.numbers, Observed):
        return replace(found, numbers=one_output(found.numbers))
    return found


def _read(source: Any) -> Published:
    if isinstance(source, (Observed, Privatised, NoisyStatistics, MeasuredTable)):
        return Published(numbers=source)
    found = verified(source)
    numbers, certificate = READERS.get(found.mechanism.inferred_from, observe)(found), found.certificate
    return Published(numbers=numbers, private=certificate["private"] is True, sha256=str(certificate["sha256"]))


READERS: dict[str, Callable[[Verified], Any]] = {"table": read_table, "records": read_privatised, "sums": read_sums}
"""Of what is not counts of cells."""
