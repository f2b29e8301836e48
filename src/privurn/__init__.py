"""privurn: certified differentially private synthetic data from Bayesian nonparametric urns, and inference from private output.

The main job is one call, `release(data, domain=..., epsilon=..., delta=...)`; the guarantee it gives can be recomputed by
anyone with `verify(folder)`. Everything here is imported on first use, so `import privurn` stays fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privurn.counts import CountTable as CountTable
    from privurn.domain import Bins as Bins
    from privurn.domain import Categories as Categories
    from privurn.domain import Grid as Grid
    from privurn.domain import JointDomain as JointDomain
    from privurn.domain import OpenLabels as OpenLabels
    from privurn.domain import domain_from_file as domain_from_file
    from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial as DirichletMultinomial
    from privurn.mechanisms.pitman_yor import PitmanYor as PitmanYor
    from privurn.mixtures import MixtureModel as MixtureModel
    from privurn.mixtures import fit_mixture as fit_mixture
    from privurn.noisy_statistics.file import read_statistics as read_statistics
    from privurn.noisy_statistics.file import release_statistics as release_statistics
    from privurn.noisy_statistics.fit import fit_dirichlet as fit_dirichlet
    from privurn.noisy_statistics.fit import fit_logistic as fit_logistic
    from privurn.noisy_statistics.fit import fit_mean as fit_mean
    from privurn.noisy_statistics.fit import fit_regression as fit_regression
    from privurn.noisy_statistics.table_inference import infer_table as infer_table
    from privurn.posteriors import Posterior as Posterior
    from privurn.posteriors import posterior as posterior
    from privurn.privacy.certificate import Certificate as Certificate
    from privurn.privacy.entropy import SeededEntropy as SeededEntropy
    from privurn.privacy.entropy import SystemEntropy as SystemEntropy
    from privurn.privacy.ledger import Ledger as Ledger
    from privurn.privacy.profile import Guarantee as Guarantee
    from privurn.privacy.profile import PrivacyProfile as PrivacyProfile
    from privurn.privacy.urn_accounting import DirichletMultinomialProfile as DirichletMultinomialProfile
    from privurn.privacy.urn_accounting import DirichletProcessProfile as DirichletProcessProfile
    from privurn.privacy.urn_accounting import PitmanYorProfile as PitmanYorProfile
    from privurn.privatising import privatise as privatise
    from privurn.releasing import Release as Release
    from privurn.releasing import release as release
    from privurn.reporting import report as report
    from privurn.utility.comparison import compare as compare
    from privurn.verification import Verification as Verification
    from privurn.verification import verify as verify

__version__ = "0.1.0"

_HOME = {
    "CountTable": "counts",
    "Bins": "domain",
    "Categories": "domain",
    "Grid": "domain",
    "JointDomain": "domain",
    "OpenLabels": "domain",
    "domain_from_file": "domain",
    "DirichletMultinomial": "mechanisms.dirichlet_multinomial",
    "PitmanYor": "mechanisms.pitman_yor",
    "Certificate": "privacy.certificate",
    "SeededEntropy": "privacy.entropy",
    "SystemEntropy": "privacy.entropy",
    "Ledger": "privacy.ledger",
    "Guarantee": "privacy.profile",
    "PrivacyProfile": "privacy.profile",
    "DirichletMultinomialProfile": "privacy.urn_accounting",
    "DirichletProcessProfile": "privacy.urn_accounting",
    "PitmanYorProfile": "privacy.urn_accounting",
    "MixtureModel": "mixtures",
    "fit_mixture": "mixtures",
    "read_statistics": "noisy_statistics.file",
    "release_statistics": "noisy_statistics.file",
    "infer_table": "noisy_statistics.table_inference",
    "fit_logistic": "noisy_statistics.fit",
    "fit_regression": "noisy_statistics.fit",
    "fit_dirichlet": "noisy_statistics.fit",
    "fit_mean": "noisy_statistics.fit",
    "posterior": "posteriors",
    "Posterior": "posteriors",
    "privatise": "privatising",
    "Release": "releasing",
    "compare": "utility.comparison",
    "report": "reporting",
    "release": "releasing",
    "Verification": "verification",
    "verify": "verification",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name == "models":
        return import_module("privurn.models")
    if name not in _HOME:
        raise AttributeError(f"module 'privurn' has no attribute {name!r}")
    value = getattr(import_module(f"privurn.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
