"""A statistics file: noisy statistics and their certificate in one JSON file that an analyst can be handed.

The certificate holds the hash of the statistics, and its own; a file that was edited is refused. As with every certificate,
that detects edits and is no proof against forgery.
"""

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privurn.certifying import certify, check_certifiable
from privurn.errors import CertificateError, FormatError, ModelError
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.statistic import NoisyStatistics, StatisticMechanism, opened
from privurn.privacy.certificate import STATISTICS_SCHEMA, Certificate, is_statistics, read_json
from privurn.privacy.entropy import Entropy, SystemEntropy
from privurn.privacy.ledger import Ledger
from privurn.releasing import pay
from privurn.verification import SEEDED, statistics_hash, statistics_of, verify


@dataclass(frozen=True, kw_only=True)
class ReleasedStatistics:
    """Noisy statistics with their certificate; public."""

    statistics: NoisyStatistics
    certificate: Certificate = field(repr=False)
    ledger: Ledger | None = field(default=None, repr=False)

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
        handle, partial = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.absolute().parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            mask = os.umask(0)
            os.umask(mask)
            Path(partial).chmod(0o666 & ~mask)
            target.hardlink_to(partial)  # fails if the file has appeared meanwhile
        finally:  # Ctrl-C too
            Path(partial).unlink(missing_ok=True)
        if self.ledger is not None:
            self.ledger.complete(self.certificate["ledger"]["entry"], output=self.certificate["output"]["sha256"])
        return self


def release_statistics(
    data: Any,
    *,
    mechanism: StatisticMechanism,
    budget: Budget,
    ledger: Ledger | str | Path | None = None,
    entropy: Entropy | None = None,
) -> ReleasedStatistics:
    """Read the data, pay, add noise, certify.

    Examples
    --------
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
    check_certifiable(mechanism)
    account = Ledger(ledger) if isinstance(ledger, (str, Path)) else ledger
    source_of_noise = entropy or SystemEntropy()
    with opened(data) as source:
        sums, n = mechanism.sum_units(source)
    payment = pay(account, mechanism, promise)
    statistics = mechanism.add_noise(sums, n, entropy=source_of_noise)
    certificate = certify(
        mechanism,
        guarantee=promise,
        domain={"kind": "statistics", **mechanism.own_parameters()},
        columns=list(mechanism.columns),
        entropy=source_of_noise,
        payment=payment,
        n=statistics.n,
        output={"rows": len(statistics.values), "sha256": statistics_hash(statistics.plain())},
    )
    return ReleasedStatistics(statistics=statistics, certificate=certificate, ledger=account)


def check_new_file(path: str | Path) -> Path:
    """A file that can be written and does not exist yet, checked before anything is paid."""
    target = Path(path)
    if target.exists():
        raise FormatError(f"the file {str(target)!r} exists.", hint="Name a new file, or remove the old one first")
    if not target.absolute().parent.is_dir():
        raise FormatError(f"there is no folder {str(target.absolute().parent)!r} to write into.", hint="Create it first")
    if not os.access(target.absolute().parent, os.W_OK):
        raise FormatError(f"cannot write into {str(target.absolute().parent)!r}.", hint="Name a folder you may write to")
    return target


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
