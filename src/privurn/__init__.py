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
    from privurn.inference.trees.combine import combine as combine
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
    from privurn.mechanisms.perturbed_histogram import NoisyCounts as NoisyCounts
    from privurn.mechanisms.pitman_yor import OpenUrn as OpenUrn
    from privurn.mechanisms.pitman_yor import PitmanYorUrn as PitmanYorUrn
    from privurn.mechanisms.posterior_sample import PosteriorDraws as PosteriorDraws
    from privurn.mechanisms.pseudo_posterior import Pseudo as Pseudo
    from privurn.mechanisms.smoothed_histogram import Smoothed as Smoothed
    from privurn.mechanisms.sums.recipe import Sums as Sums
    from privurn.mechanisms.tree_layout import NoisyTree as NoisyTree
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

_HOME = {
    "CountTable": "counts",
    "Bins": "domain",
    "Bounds": "domain",
    "Categories": "domain",
    "Dates": "domain",
    "Grid": "domain",
    "JointDomain": "domain",
    "OpenLabels": "domain",
    "TableDomain": "domain",
    "domain_from_file": "domain",
    "Urn": "mechanisms.dirichlet_multinomial",
    "OpenUrn": "mechanisms.pitman_yor",
    "PitmanYorUrn": "mechanisms.pitman_yor",
    "NoisyCounts": "mechanisms.perturbed_histogram",
    "NoisyTree": "mechanisms.tree_layout",
    "Marginals": "mechanisms.marginals_recipe",
    "Smoothed": "mechanisms.smoothed_histogram",
    "PosteriorDraws": "mechanisms.posterior_sample",
    "Exponential": "mechanisms.exponential",
    "Pseudo": "mechanisms.pseudo_posterior",
    "Discover": "mechanisms.label_discovery",
    "Laplace": "mechanisms.local.laplace",
    "DiscreteLaplace": "mechanisms.local.laplace",
    "Gaussian": "mechanisms.local.gaussian",
    "DiscreteGaussian": "mechanisms.local.gaussian",
    "HaarWavelet": "mechanisms.local.haar_wavelet",
    "RandomisedResponse": "mechanisms.local.randomised_responses",
    "Sums": "mechanisms.sums.recipe",
    "Certificate": "privacy.certificate",
    "SeededEntropy": "privacy.entropy",
    "SystemEntropy": "privacy.entropy",
    "Ledger": "privacy.ledger",
    "Guarantee": "privacy.profile",
    "PrivacyProfile": "privacy.profile",
    "DirichletMultinomialProfile": "privacy.laws.urn",
    "DirichletProcessProfile": "privacy.laws.urn",
    "PitmanYorProfile": "privacy.laws.urn",
    "MixtureModel": "inference.mixtures",
    "CountModel": "inference.counts.model",
    "infer": "inference.infer",
    "Mixture": "inference.mixtures.reading",
    "Posterior": "inference.posterior",
    "Run": "inference.run",
    "SizePrior": "inference.size",
    "SumModel": "inference.sums.fit",
    "LogisticPrior": "inference.sums.logistic_model",
    "RegressionPrior": "inference.sums.regression_model",
    "combine": "inference.trees.combine",
    "PolyaTree": "inference.trees.model",
    "Combined": "inference.trees.combine",
    "LinearRegression": "inference.tables.formula",
    "LogisticRegression": "inference.tables.formula",
    "PoissonRegression": "inference.tables.formula",
    "TableModel": "inference.tables.model",
    "release_statistics": "releases.statistics",
    "check": "releases.check",
    "privatise": "releases.privatise",
    "Release": "certificates.release",
    "compare": "reports.comparison.comparison",
    "Runs": "reports.comparison.comparison",
    "report": "reports.html",
    "release": "releases.release",
    "Verification": "certificates.verify",
    "verify": "certificates.verify",
}

__all__ = list(_HOME)
_find = lazy_names(__name__, _HOME)


def __getattr__(name: str) -> Any:
    if name == "models":
        from privurn.mechanisms import models

        return models
    return _find(name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
