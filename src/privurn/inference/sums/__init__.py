"""Inference from noisy sums over records, with n public or secret.

Everything here is imported on first use.
"""

from typing import TYPE_CHECKING

from privurn.lazy_names import lazy_names

if TYPE_CHECKING:
    from privurn.inference.size import SizePrior as SizePrior
    from privurn.inference.sums.comparators import bootstrap_regression as bootstrap_regression
    from privurn.inference.sums.comparators import plug_in_regression as plug_in_regression
    from privurn.inference.sums.fit import NotMixed as NotMixed
    from privurn.inference.sums.fit import SumModel as SumModel
    from privurn.inference.sums.fit import SumPosterior as SumPosterior
    from privurn.inference.sums.fit import fit as fit
    from privurn.inference.sums.logistic_model import LogisticPrior as LogisticPrior
    from privurn.inference.sums.mcem import maximise as maximise
    from privurn.inference.sums.model import PythonModel as PythonModel
    from privurn.inference.sums.observed import Observed as Observed
    from privurn.inference.sums.reading import released_sums as released_sums
    from privurn.inference.sums.regression_model import RegressionPrior as RegressionPrior
    from privurn.mechanisms.sums.calibrating import Budget as Budget
    from privurn.mechanisms.sums.dirichlet_statistic import DirichletStatistic as DirichletStatistic
    from privurn.mechanisms.sums.logistic_statistic import LogisticStatistic as LogisticStatistic
    from privurn.mechanisms.sums.noise_law import NoiseLaw as NoiseLaw
    from privurn.mechanisms.sums.regression_statistic import NormalStatistic as NormalStatistic
    from privurn.mechanisms.sums.regression_statistic import RegressionStatistic as RegressionStatistic
    from privurn.mechanisms.sums.statistic import NoisyStatistics as NoisyStatistics
    from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic as BernoulliStatistic
    from privurn.mechanisms.sums.sum_statistic import PoissonStatistic as PoissonStatistic

_HOME = {
    "Budget": "mechanisms.sums.calibrating",
    "bootstrap_regression": "inference.sums.comparators",
    "plug_in_regression": "inference.sums.comparators",
    "DirichletStatistic": "mechanisms.sums.dirichlet_statistic",
    "NoiseLaw": "mechanisms.sums.noise_law",
    "LogisticPrior": "inference.sums.logistic_model",
    "LogisticStatistic": "mechanisms.sums.logistic_statistic",
    "NormalStatistic": "mechanisms.sums.regression_statistic",
    "RegressionStatistic": "mechanisms.sums.regression_statistic",
    "SizePrior": "inference.size",
    "NoisyStatistics": "mechanisms.sums.statistic",
    "BernoulliStatistic": "mechanisms.sums.sum_statistic",
    "PoissonStatistic": "mechanisms.sums.sum_statistic",
    "NotMixed": "inference.sums.fit",
    "SumModel": "inference.sums.fit",
    "SumPosterior": "inference.sums.fit",
    "fit": "inference.sums.fit",
    "maximise": "inference.sums.mcem",
    "Observed": "inference.sums.observed",
    "released_sums": "inference.sums.reading",
    "PythonModel": "inference.sums.model",
    "RegressionPrior": "inference.sums.regression_model",
}

__all__ = list(_HOME)
__getattr__ = lazy_names(__name__, _HOME)
