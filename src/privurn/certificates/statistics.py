"""A statistics file: noisy statistics and their certificate in one JSON file that an analyst can be handed.

The certificate holds the hash of the statistics, and its own; a file that was edited is refused. As with every certificate,
that detects edits and is no proof against forgery.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privurn.certificates.verify import SEEDED, statistics_of, verify
from privurn.errors import CertificateError, FormatError
from privurn.mechanisms.sums.statistic import NoisyStatistics
from privurn.output_files import check_new_file, write_file
from privurn.privacy.certificate import STATISTICS_SCHEMA, Certificate, is_statistics, read_json
from privurn.privacy.ledger import Ledger


@dataclass(frozen=True, kw_only=True)
class ReleasedStatistics:
    """Noisy statistics with their certificate; public."""

    statistics: NoisyStatistics
    certificate: Certificate = field(repr=False)
    ledger: Ledger | None = field(default=None, repr=False)
    remarks: tuple[str, ...] = ()
    """For the custodian; not in the file."""

    def to_json(self) -> dict[str, Any]:
        """What the file holds."""
        return {
            "schema": STATISTICS_SCHEMA,
            "statistics": self.statistics.plain(),
            "certificate": dict(self.certificate.data),
        }

    def save(self, path: str | Path) -> "ReleasedStatistics":
        """Write the file, all of it or nothing; it must not exist."""
        target = check_new_file(path)
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        write_file(target, lambda partial: partial.write_text(text, encoding="utf-8"))
        if self.ledger is not None:
            self.ledger.complete(self.certificate["ledger"]["entry"], output=self.certificate["output"]["sha256"])
        return self


def read_statistics(path: str | Path) -> ReleasedStatistics:
    """Statistics and certificate of a file; one that does not verify is refused, but for being seeded, which it says itself."""
    try:
        data = read_json(path)
    except CertificateError:
        hint = "privurn statistics ... -o FILE"
        raise FormatError(f"there are no readable statistics at {str(path)!r}.", hint=hint) from None
    if not is_statistics(data):
        raise FormatError(f"{str(path)!r} is not a statistics file.", hint="Name a file that privurn statistics has written")
    certificate, statistics = statistics_of(data)
    reasons = [each for each in verify(path).reasons if each != SEEDED]
    if reasons:
        raise CertificateError(f"the statistics {str(path)!r} cannot be used: {reasons[0]}.", hint="Ask for the file again")
    return ReleasedStatistics(statistics=statistics, certificate=certificate)
