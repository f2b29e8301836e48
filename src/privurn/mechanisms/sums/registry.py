"""Statistics mechanisms by the name that certificates give them."""

from typing import Any

from privurn.errors import CertificateError, PrivurnError
from privurn.mechanisms.sums.dirichlet_statistic import DirichletStatistic
from privurn.mechanisms.sums.logistic_statistic import LogisticStatistic
from privurn.mechanisms.sums.regression_statistic import NormalStatistic, RegressionStatistic
from privurn.mechanisms.sums.statistic import StatisticMechanism
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic, PoissonStatistic
from privurn.mechanisms.sums.table_statistic import TableStatistic

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
    try:
        return STATISTICS[name].from_parameters(parameters)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError, PrivurnError):
        raise CertificateError("the mechanism's parameters are not valid.") from None
