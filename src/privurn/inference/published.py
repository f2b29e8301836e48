"""What was published, whoever published it: read, verified, and sorted by what can be inferred from it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from privurn.certificates.release import Release
from privurn.certificates.statistics import ReleasedStatistics, read_statistics
from privurn.errors import FormatError
from privurn.inference.counts.released import Observed, observe
from privurn.inference.mixtures.reading import Privatised, located, read_privatised
from privurn.inference.tables.measured import MeasuredTable
from privurn.inference.tables.reading import is_table, read_table
from privurn.mechanisms.local.local_release import PREFIX
from privurn.mechanisms.sums.statistic import NoisyStatistics
from privurn.privacy.certificate import Certificate, is_statistics, read_json

Kind = Literal["counts", "mixture", "sums", "tables"]


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
        """Counts of cells, records (or all of them together) behind a channel, noisy sums, or marginals of a whole table."""
        if isinstance(self.numbers, MeasuredTable):
            return "tables"
        if isinstance(self.numbers, Observed):
            return "counts"
        return "mixture" if isinstance(self.numbers, Privatised) else "sums"

    @property
    def words(self) -> str:
        """The kind, for people."""
        names = {
            "counts": "counts of cells",
            "mixture": "privatised records",
            "sums": "noisy sums",
            "tables": "noisy marginals",
        }
        return names[self.kind]


def published(source: Any, *, mixture: bool = False) -> Published:
    """What a folder, a file or an object holds, verified.

    `mixture`: noisy counts or records of one column in equal bins are read as one output of all records, behind a channel.
    """
    if isinstance(source, Published):
        return source
    if isinstance(source, (Observed, Privatised, MeasuredTable)):
        return Published(numbers=source)
    if isinstance(source, NoisyStatistics):
        return Published(numbers=_sums(source))
    if isinstance(source, (str, Path)):
        path = Path(source)
        if path.suffix == ".json" and path.is_file() and is_statistics(read_json(path)):
            source = read_statistics(path)
    if isinstance(source, ReleasedStatistics):
        return _certified(_sums(source.statistics), source.certificate)
    if isinstance(source, Release):
        certificate = source.certificate
    elif isinstance(source, (str, Path)):
        folder, certificate = located(Path(source))
        source = folder
    else:
        raise FormatError(
            f"an object of type {type(source).__name__} is no release.",
            hint="Give the folder of a release, or what privurn.release returned",
        )
    if is_table(certificate):
        return _certified(read_table(source, certificate), certificate)
    local = str(certificate["mechanism"]["name"]).startswith(PREFIX)
    return _certified(read_privatised(source) if local or mixture else observe(source)[0], certificate)


def _certified(numbers: Any, certificate: Certificate) -> Published:
    return Published(numbers=numbers, private=certificate["private"] is True, sha256=str(certificate["sha256"]))


def _sums(statistics: NoisyStatistics) -> Observed | NoisyStatistics:
    """Noisy counts of cells are counts, whoever published them."""
    return observe(statistics)[0] if statistics.model == "table" else statistics
