"""privurn: certified differentially private synthetic data from Bayesian nonparametric urns, and inference from private output.

The main job is one call, `release(data, domain=..., epsilon=..., delta=...)`; the guarantee it gives can be recomputed by
anyone with `verify(folder)`. Everything here is imported on first use, so `import privurn` stays fast.
"""

from typing import TYPE_CHECKING, Any

from privurn.lazy_names import lazy_names

if TYPE_CHECKING:
    from privurn.certificates.release import Release as Release
    from privurn.certificates.verify import Verification as Verification
    from privurn.certificates.verify import verify as verify
    from privurn.counts import CountTable as CountTable
    from privurn.domain import Bins as Bins
    from privurn.domain import Bounds as Bounds
    from privurn.domain import Categories as Categories
    from privurn.domain import Dates as Dates
    from privurn.domain import Grid as Grid
    from privurn.domain import JointDomain as JointDomain
    from privurn.domain import OpenLabels as OpenLabels
    from privurn.domain import TableDomain as TableDomain
    from privurn.domain import domain_from_file as domain_from_file
    from privurn.inference.counts.model import CountModel as CountModel
    from privurn.inference.infer import infer as infer
    from privurn.inference.mixtures import MixtureModel as MixtureModel
    from privurn.inference.mixtures.reading import Mixture as Mixture
    from privurn.inference.posterior import Posterior as Posterior
    from privurn.inference.run import Run as Run
    from privurn.inference.size import SizePrior as SizePrior
    from privurn.inference.sums.fit import SumModel as SumModel
    from privurn.inference.sums.logistic_model import LogisticPrior as LogisticPrior
    from privurn.inference.sums.regression_model import RegressionPrior as RegressionPrior
    from privurn.inference.tables.formula import LinearRegression as LinearRegression
    from privurn.inference.tables.formula import LogisticRegression as LogisticRegression
    from privurn.inference.tables.formula import PoissonRegression as PoissonRegression
    from privurn.inference.tables.model import TableModel as TableModel
    from privurn.inference.trees.combine import Combined as Combined
    from privurn.inference.trees.combine import CombinedQuantile as CombinedQuantile
    from privurn.inference.trees.combine import combine as combine
    from privurn.inference.trees.combine import combine_quantile as combine_quantile
    from privurn.inference.trees.model import PolyaTree as PolyaTree
    from privurn.mechanisms.dirichlet_multinomial import Urn as Urn
    from privurn.mechanisms.exponential import Exponential as Exponential
    from privurn.mechanisms.label_discovery import Discover as Discover
    from privurn.mechanisms.local.gaussian import DiscreteGaussian as DiscreteGaussian
    from privurn.mechanisms.local.gaussian import Gaussian as Gaussian
    from privurn.mechanisms.local.haar_wavelet import HaarWavelet as HaarWavelet
    from privurn.mechanisms.local.laplace import DiscreteLaplace as DiscreteLaplace
    from privurn.mechanisms.local.laplace import Laplace as Laplace
    from privurn.mechanisms.local.randomised_responses import RandomisedResponse as RandomisedResponse
    from privurn.mechanisms.marginals_recipe import Marginals as Marginals
    from privurn.mechanisms.noisy_tree_recipe import NoisyTree as NoisyTree
    from privurn.mechanisms.perturbed_histogram import NoisyCounts as NoisyCounts
    from privurn.mechanisms.pitman_yor import OpenUrn as OpenUrn
    from privurn.mechanisms.pitman_yor import PitmanYorUrn as PitmanYorUrn
    from privurn.mechanisms.posterior_sample import PosteriorDraws as PosteriorDraws
    from privurn.mechanisms.pseudo_posterior import Pseudo as Pseudo
    from privurn.mechanisms.smoothed_histogram import Smoothed as Smoothed
    from privurn.mechanisms.sums.recipe import Sums as Sums
    from privurn.privacy.certificate import Certificate as Certificate
    from privurn.privacy.entropy import SeededEntropy as SeededEntropy
    from privurn.privacy.entropy import SystemEntropy as SystemEntropy
    from privurn.privacy.laws.urn import DirichletMultinomialProfile as DirichletMultinomialProfile
    from privurn.privacy.laws.urn import DirichletProcessProfile as DirichletProcessProfile
    from privurn.privacy.laws.urn import PitmanYorProfile as PitmanYorProfile
    from privurn.privacy.ledger import Ledger as Ledger
    from privurn.privacy.profile import Guarantee as Guarantee
    from privurn.privacy.profile import PrivacyProfile as PrivacyProfile
    from privurn.releases.check import check as check
    from privurn.releases.privatise import privatise as privatise
    from privurn.releases.release import release as release
    from privurn.releases.statistics import release_statistics as release_statistics
    from privurn.reports.comparison.comparison import Runs as Runs
    from privurn.reports.comparison.comparison import compare as compare
    from privurn.reports.html import report as report

__version__ = "0.1.0"

_HOME: dict[str, tuple[str, ...]] = {
    "counts": ("CountTable",),
    "domain": ("Bins", "Bounds", "Categories", "Dates", "Grid", "JointDomain", "OpenLabels", "TableDomain", "domain_from_file"),
    "mechanisms.dirichlet_multinomial": ("Urn",),
    "mechanisms.pitman_yor": ("OpenUrn", "PitmanYorUrn"),
    "mechanisms.perturbed_histogram": ("NoisyCounts",),
    "mechanisms.noisy_tree_recipe": ("NoisyTree",),
    "mechanisms.marginals_recipe": ("Marginals",),
    "mechanisms.smoothed_histogram": ("Smoothed",),
    "mechanisms.posterior_sample": ("PosteriorDraws",),
    "mechanisms.exponential": ("Exponential",),
    "mechanisms.pseudo_posterior": ("Pseudo",),
    "mechanisms.label_discovery": ("Discover",),
    "mechanisms.local.laplace": ("Laplace", "DiscreteLaplace"),
    "mechanisms.local.gaussian": ("Gaussian", "DiscreteGaussian"),
    "mechanisms.local.haar_wavelet": ("HaarWavelet",),
    "mechanisms.local.randomised_responses": ("RandomisedResponse",),
    "mechanisms.sums.recipe": ("Sums",),
    "privacy.certificate": ("Certificate",),
    "privacy.entropy": ("SeededEntropy", "SystemEntropy"),
    "privacy.ledger": ("Ledger",),
    "privacy.profile": ("Guarantee", "PrivacyProfile"),
    "privacy.laws.urn": ("DirichletMultinomialProfile", "DirichletProcessProfile", "PitmanYorProfile"),
    "inference.mixtures": ("MixtureModel",),
    "inference.counts.model": ("CountModel",),
    "inference.infer": ("infer",),
    "inference.mixtures.reading": ("Mixture",),
    "inference.posterior": ("Posterior",),
    "inference.run": ("Run",),
    "inference.size": ("SizePrior",),
    "inference.sums.fit": ("SumModel",),
    "inference.sums.logistic_model": ("LogisticPrior",),
    "inference.sums.regression_model": ("RegressionPrior",),
    "inference.trees.combine": ("combine", "Combined", "combine_quantile", "CombinedQuantile"),
    "inference.trees.model": ("PolyaTree",),
    "inference.tables.formula": ("LinearRegression", "LogisticRegression", "PoissonRegression"),
    "inference.tables.model": ("TableModel",),
    "releases.statistics": ("release_statistics",),
    "releases.check": ("check",),
    "releases.privatise": ("privatise",),
    "certificates.release": ("Release",),
    "reports.comparison.comparison": ("compare", "Runs"),
    "reports.html": ("report",),
    "releases.release": ("release",),
    "certificates.verify": ("Verification", "verify"),
}

__all__ = [name for names in _HOME.values() for name in names]
_find = lazy_names(__name__, _HOME)


def __getattr__(name: str) -> Any:
    if name == "models":
        from privurn.mechanisms import models

        return models
    return _find(name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
