"""A statistics file: noisy statistics and their certificate in one JSON file that an analyst can be handed.

The certificate holds the hash of the statistics, and its own; a file that was edited is refused. As with every certificate,
that detects edits and is no proof against forgery.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privurn.certifying import certify
from privurn.errors import CertificateError, DomainError, FormatError, ModelError
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.statistic import NoisyStatistics, StatisticMechanism, opened
from privurn.output_files import check_new_file, write_file
from privurn.privacy.certificate import STATISTICS_SCHEMA, Certificate, is_statistics, read_json
from privurn.privacy.entropy import Entropy, SystemEntropy
from privurn.privacy.ledger import Ledger
from privurn.privacy.payer import LedgerChoice, Payer
from privurn.releasing import pay
from privurn.verification import SEEDED, statistics_hash, statistics_of, verify


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


def release_statistics(
    data: Any,
    *,
    mechanism: StatisticMechanism,
    budget: Budget,
    ledger: LedgerChoice = None,
    entropy: Entropy | None = None,
) -> ReleasedStatistics:
    """Read the data, pay, add noise, certify.

    `ledger`: one that pays, or its path; left out: FILE.ledger beside the data, where that stands; False: none.

    Examples
    --------
    >>> import numpy as np
    >>> from privurn.mechanisms.sums.regression_statistic import RegressionStatistic
    >>> budget = Budget(epsilon=1, epsilon_n=0.1)
    >>> made = RegressionStatistic.calibrated(response="column_1", covariates=["column_0"], bounds=(-5, 5), budget=budget)
    >>> data = np.random.default_rng(1).normal(size=(1000, 2))
    >>> out = release_statistics(data, mechanism=made, budget=budget)
    >>> out.certificate["target"], out.statistics.n
    ({'epsilon': 1.1, 'delta': 0.0}, None)
    """
    promise = budget.guarantee
    if (mechanism.neighbouring, mechanism.contributions) != (promise.neighbouring, promise.contributions):
        raise ModelError("the mechanism and the budget are for different neighbours.")
    if mechanism.profile.delta(promise.epsilon) > promise.delta:
        raise ModelError("the mechanism does not meet the budget.", hint="Use the mechanism's `calibrated`")
    domain = {"kind": "statistics", **mechanism.own_parameters()}
    source_of_noise = entropy or SystemEntropy()
    with opened(data) as source:
        payer = Payer.find(ledger, source)
        sums, n = mechanism.sum_units(source)
    if n == 0 and promise.neighbouring == "replace-one":
        raise DomainError("the table is empty.")
    payment = pay(payer, mechanism, promise, domain=domain, n=n)
    statistics = mechanism.add_noise(sums, n, entropy=source_of_noise)
    certificate = certify(
        mechanism,
        guarantee=promise,
        domain=domain,
        columns=list(mechanism.columns),
        entropy=source_of_noise,
        payment=payment.stamp,
        n=statistics.n,
        output={"rows": len(statistics.values), "sha256": statistics_hash(statistics.plain())},
    )
    return ReleasedStatistics(statistics=statistics, certificate=certificate, ledger=payer.ledger, remarks=payment.remarks)


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
