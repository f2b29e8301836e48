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

_HOME: dict[str, tuple[str, ...]] = {
    "mechanisms.sums.calibrating": ("Budget",),
    "inference.sums.comparators": ("bootstrap_regression", "plug_in_regression"),
    "mechanisms.sums.dirichlet_statistic": ("DirichletStatistic",),
    "mechanisms.sums.noise_law": ("NoiseLaw",),
    "inference.sums.logistic_model": ("LogisticPrior",),
    "mechanisms.sums.logistic_statistic": ("LogisticStatistic",),
    "mechanisms.sums.regression_statistic": ("NormalStatistic", "RegressionStatistic"),
    "inference.size": ("SizePrior",),
    "mechanisms.sums.statistic": ("NoisyStatistics",),
    "mechanisms.sums.sum_statistic": ("BernoulliStatistic", "PoissonStatistic"),
    "inference.sums.fit": ("NotMixed", "SumModel", "SumPosterior", "fit"),
    "inference.sums.mcem": ("maximise",),
    "inference.sums.observed": ("Observed",),
    "inference.sums.reading": ("released_sums",),
    "inference.sums.model": ("PythonModel",),
    "inference.sums.regression_model": ("RegressionPrior",),
}

__all__ = [name for names in _HOME.values() for name in names]
__getattr__ = lazy_names(__name__, _HOME)
