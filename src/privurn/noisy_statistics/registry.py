"""Statistics mechanisms by the name that certificates give them."""

from typing import Any

from privurn.errors import CertificateError
from privurn.noisy_statistics.dirichlet_statistic import DirichletStatistic
from privurn.noisy_statistics.logistic_statistic import LogisticStatistic
from privurn.noisy_statistics.regression_statistic import NormalStatistic, RegressionStatistic
from privurn.noisy_statistics.statistic import StatisticMechanism
from privurn.noisy_statistics.sum_statistic import BernoulliStatistic, PoissonStatistic
from privurn.noisy_statistics.table_statistic import TableStatistic

STATISTICS: dict[str, type[StatisticMechanism]] = {
    f"noisy-{each.model}-statistics": each
    for each in (
        RegressionStatistic,
        NormalStatistic,
        LogisticStatistic,
        DirichletStatistic,
        TableStatistic,
        BernoulliStatistic,
        PoissonStatistic,
    )
}


def statistic_from_parameters(name: str, parameters: dict[str, Any]) -> StatisticMechanism:
    """The mechanism that a certificate describes."""
    if name not in STATISTICS:
        raise CertificateError(f"the statistics mechanism {name!r} is not known.", hint=", ".join(STATISTICS))
    return STATISTICS[name].from_parameters(parameters)
