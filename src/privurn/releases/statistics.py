"""Noisy statistics of a table: read, pay, add noise, certify."""

from typing import Any

from privurn.certificates.certify import certify
from privurn.certificates.release import Release
from privurn.errors import DomainError, ModelError
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.statistic import StatisticMechanism, opened
from privurn.privacy.entropy import Entropy, SystemEntropy
from privurn.privacy.payer import LedgerChoice, Payer
from privurn.releases.payment import pay


def release_statistics(
    data: Any,
    *,
    mechanism: StatisticMechanism,
    budget: Budget,
    ledger: LedgerChoice = None,
    entropy: Entropy | None = None,
) -> Release:
    """Read the data, pay, add noise, certify; `release` with `Sums` calls it.

    `ledger`: one that pays, or its path; left out: FILE.ledger beside the data, where that stands; False: none.

    Examples
    --------
    >>> import numpy as np
    >>> from privurn.mechanisms.sums.regression_statistic import RegressionStatistic
    >>> budget = Budget(epsilon=1.1, epsilon_n=0.1, neighbouring="add-remove")
    >>> made = RegressionStatistic.calibrated(response="column_1", covariates=["column_0"], bounds=(-5, 5), budget=budget)
    >>> data = np.random.default_rng(1).normal(size=(1000, 2))
    >>> out = release_statistics(data, mechanism=made, budget=budget)
    >>> out.certificate["target"], out.certificate["n"], len(out.data)
    ({'epsilon': 1.1, 'delta': 0.0}, None, 6)
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
        kind = source.kind
    if n == 0 and promise.neighbouring == "replace-one":
        raise DomainError("the table is empty.", hint="Give a table with records in it")
    payment = pay(payer, mechanism, promise, domain=domain, n=n)
    statistics = mechanism.add_noise(sums, n, entropy=source_of_noise)
    table = statistics.table()
    certificate = certify(
        mechanism,
        guarantee=promise,
        domain=domain,
        columns=table.column_names,
        entropy=source_of_noise,
        payment=payment.stamp,
        n=statistics.n,
    )
    return Release(table, kind, certificate, (*statistics.remarks, *payment.remarks), payer.ledger, measured=True)
