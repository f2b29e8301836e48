"""Mechanisms by the name that certificates use."""

from collections.abc import Callable, Mapping
from typing import Any

from privurn.errors import CertificateError, PrivurnError
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial, Urn
from privurn.mechanisms.exponential import Exponential, ExponentialHistogram
from privurn.mechanisms.label_discovery import Discover, DiscoveredUrn
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.perturbed_histogram import NoisyCounts, PerturbedHistogram
from privurn.mechanisms.pitman_yor import OpenUrn, PitmanYor, PitmanYorUrn
from privurn.mechanisms.posterior_sample import PosteriorDraws, PosteriorSample
from privurn.mechanisms.pseudo_posterior import Pseudo, PseudoPosterior
from privurn.mechanisms.recipe import Recipe
from privurn.mechanisms.smoothed_histogram import Smoothed, SmoothedHistogram

BUILDERS: Mapping[str, Callable[[dict[str, Any]], Mechanism]] = {
    "dirichlet-multinomial": DirichletMultinomial.from_parameters,
    "dirichlet-process": PitmanYor.from_parameters,
    "pitman-yor": PitmanYor.from_parameters,
    "label-discovery": DiscoveredUrn.from_parameters,
    "perturbed-histogram": PerturbedHistogram.from_parameters,
    "smoothed-histogram": SmoothedHistogram.from_parameters,
    "posterior-sample": PosteriorSample.from_parameters,
    "exponential": ExponentialHistogram.from_parameters,
    "pseudo-posterior": PseudoPosterior.from_parameters,
}

RECIPES: Mapping[str, type[Recipe]] = {
    each.alias: each
    for each in (Urn, NoisyCounts, Smoothed, PosteriorDraws, Discover, OpenUrn, PitmanYorUrn, Exponential, Pseudo)
}
"""What can be asked for, by the name that the command line uses, in the order in which it is offered."""


def default_recipe(*, open_labels: bool) -> type[Recipe]:
    """What is made where nothing is asked for: the urn, after label discovery where the labels are not listed."""
    return Discover if open_labels else Urn


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
