"""Sums that engines make by themselves, and their twin that adds up what each record gives."""

from privurn.errors import PrivurnError
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.logistic_statistic import LogisticStatistic
from privurn.mechanisms.sums.regression_statistic import NormalStatistic, RegressionStatistic
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic, PoissonStatistic
from privurn.tables import open_table

PURE, WHOLE = Budget(epsilon=1), Budget(epsilon=1, noise="discrete-laplace")
READS = {"missing": "unreadable", "budget": PURE}

STATISTICS = {
    "a regression": RegressionStatistic.calibrated(
        response="number", covariates=["small", "text", "wide"], bounds=(-5, 5.3), **READS
    ),
    "complements": RegressionStatistic.calibrated(
        response="number", covariates=["single"], bounds=(-1e3, 7.1), squares="complement", **READS
    ),
    "a normal mean": NormalStatistic.calibrated(response="long", bounds=(-(2.0**63), 2.0**62), **READS),
    "a logistic regression": LogisticStatistic.calibrated(
        response="yes", covariates=["number", "long"], bounds={"number": (-0.3, 5.3), "long": (0, 2**53)}, **READS
    ),
    "text as response": LogisticStatistic.calibrated(response="text", covariates=["wide"], bounds=(0, 1), **READS),
    "counts": PoissonStatistic.calibrated(column="text", upper=9, **READS),
    "whole counts": PoissonStatistic.calibrated(column="number", upper=2**31, budget=WHOLE, missing="unreadable"),
    "yes or no": BernoulliStatistic.calibrated(column="yes", **READS),
}
REFUSED_SUMS = {
    "missing values": PoissonStatistic.calibrated(column="number", upper=9, budget=PURE),
    "no numbers at all": PoissonStatistic.calibrated(column="label", upper=9, **READS),
    "a type that holds no numbers": PoissonStatistic.calibrated(column="day", upper=9, **READS),
    "no such column": PoissonStatistic.calibrated(column="nothing", upper=9, **READS),
}


def sums(data, statistic):
    """What a statistic adds up, or what it refuses with."""
    try:
        with open_table(data) as source:
            return statistic.sum_units(source)
    except PrivurnError as refusal:
        return type(refusal), str(refusal)
