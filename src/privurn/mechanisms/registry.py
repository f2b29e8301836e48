"""Mechanisms by the name that certificates use."""

from collections.abc import Callable, Mapping
from typing import Any

from privurn.errors import CertificateError, PrivurnError
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.exponential import ExponentialHistogram
from privurn.mechanisms.label_discovery import DiscoveredUrn
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.noisy_tree import NoisyTree
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.pseudo_posterior import PseudoPosterior
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram

BUILDERS: Mapping[str, Callable[[dict[str, Any]], Mechanism]] = {
    "dirichlet-multinomial": DirichletMultinomial.from_parameters,
    "dirichlet-process": PitmanYor.from_parameters,
    "pitman-yor": PitmanYor.from_parameters,
    "label-discovery": DiscoveredUrn.from_parameters,
    "noisy-tree": NoisyTree.from_parameters,
    "perturbed-histogram": PerturbedHistogram.from_parameters,
    "smoothed-histogram": SmoothedHistogram.from_parameters,
    "posterior-sample": PosteriorSample.from_parameters,
    "exponential": ExponentialHistogram.from_parameters,
    "pseudo-posterior": PseudoPosterior.from_parameters,
}


def mechanism_from_parameters(name: str, parameters: dict[str, Any]) -> Mechanism:
    """Rebuild a mechanism from what a certificate says of it."""
    if name not in BUILDERS:
        raise CertificateError(f"the mechanism {name!r} is not known to this version.")
    try:
        mechanism = BUILDERS[name](parameters)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError, PrivurnError):
        raise CertificateError("the mechanism's parameters are not valid.") from None
    if mechanism.name != name:
        raise CertificateError("the mechanism's name does not fit its parameters.")
    return mechanism
