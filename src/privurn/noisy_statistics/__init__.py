"""Noisy sums over records, with n public or secret: releasing them with a certificate, and inference from them.

Everything here is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privurn.mechanisms.sums.calibrating import Budget as Budget
    from privurn.mechanisms.sums.dirichlet_statistic import DirichletStatistic as DirichletStatistic
    from privurn.mechanisms.sums.logistic_statistic import LogisticStatistic as LogisticStatistic
    from privurn.mechanisms.sums.noise_law import NoiseLaw as NoiseLaw
    from privurn.mechanisms.sums.regression_statistic import NormalStatistic as NormalStatistic
    from privurn.mechanisms.sums.regression_statistic import RegressionStatistic as RegressionStatistic
    from privurn.mechanisms.sums.statistic import NoisyStatistics as NoisyStatistics
    from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic as BernoulliStatistic
    from privurn.mechanisms.sums.sum_statistic import PoissonStatistic as PoissonStatistic
    from privurn.mechanisms.sums.table_statistic import TableStatistic as TableStatistic
    from privurn.noisy_statistics.comparators import bootstrap_regression as bootstrap_regression
    from privurn.noisy_statistics.comparators import plug_in_regression as plug_in_regression
    from privurn.noisy_statistics.file import ReleasedStatistics as ReleasedStatistics
    from privurn.noisy_statistics.file import read_statistics as read_statistics
    from privurn.noisy_statistics.file import release_statistics as release_statistics
    from privurn.noisy_statistics.fit import Fit as Fit
    from privurn.noisy_statistics.fit import NotMixed as NotMixed
    from privurn.noisy_statistics.fit import fit_dirichlet as fit_dirichlet
    from privurn.noisy_statistics.fit import fit_logistic as fit_logistic
    from privurn.noisy_statistics.fit import fit_mean as fit_mean
    from privurn.noisy_statistics.fit import fit_regression as fit_regression
    from privurn.noisy_statistics.logistic_model import LogisticPrior as LogisticPrior
    from privurn.noisy_statistics.mcem import maximise as maximise
    from privurn.noisy_statistics.model import PythonModel as PythonModel
    from privurn.noisy_statistics.observed import Observed as Observed
    from privurn.noisy_statistics.regression_model import RegressionPrior as RegressionPrior
    from privurn.noisy_statistics.size import SizePrior as SizePrior
    from privurn.noisy_statistics.table_inference import infer_table as infer_table

_HOME = {
    "Budget": "mechanisms.sums.calibrating",
    "bootstrap_regression": "comparators",
    "plug_in_regression": "comparators",
    "DirichletStatistic": "mechanisms.sums.dirichlet_statistic",
    "ReleasedStatistics": "file",
    "read_statistics": "file",
    "release_statistics": "file",
    "NoiseLaw": "mechanisms.sums.noise_law",
    "LogisticPrior": "logistic_model",
    "LogisticStatistic": "mechanisms.sums.logistic_statistic",
    "NormalStatistic": "mechanisms.sums.regression_statistic",
    "RegressionStatistic": "mechanisms.sums.regression_statistic",
    "SizePrior": "size",
    "NoisyStatistics": "mechanisms.sums.statistic",
    "BernoulliStatistic": "mechanisms.sums.sum_statistic",
    "PoissonStatistic": "mechanisms.sums.sum_statistic",
    "infer_table": "table_inference",
    "TableStatistic": "mechanisms.sums.table_statistic",
    "Fit": "fit",
    "NotMixed": "fit",
    "fit_dirichlet": "fit",
    "fit_logistic": "fit",
    "fit_mean": "fit",
    "fit_regression": "fit",
    "maximise": "mcem",
    "Observed": "observed",
    "PythonModel": "model",
    "RegressionPrior": "regression_model",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'privurn.noisy_statistics' has no attribute {name!r}")
    home = _HOME[name] if "." in _HOME[name] else f"noisy_statistics.{_HOME[name]}"
    value = getattr(import_module(f"privurn.{home}"), name)
    globals()[name] = value
    return value
