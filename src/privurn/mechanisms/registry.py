"""Everything that a certificate can name, one line each. Nothing else lists names; modules are imported when asked for."""

from collections import ChainMap
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from privurn.errors import CertificateError, PrivurnError
from privurn.privacy.certificate import canonical

if TYPE_CHECKING:
    from privurn.mechanisms.local.channel import Channel, LocalChannel
    from privurn.mechanisms.local.recipe import ChannelRecipe
    from privurn.mechanisms.mechanism import Mechanism
    from privurn.mechanisms.recipe import Recipe
    from privurn.mechanisms.sums.statistic import StatisticMechanism

MECHANISMS = {
    "dirichlet-multinomial": "privurn.mechanisms.dirichlet_multinomial:DirichletMultinomial",
    "dirichlet-process": "privurn.mechanisms.pitman_yor:PitmanYor",
    "pitman-yor": "privurn.mechanisms.pitman_yor:PitmanYor",
    "label-discovery": "privurn.mechanisms.label_discovery:DiscoveredUrn",
    "perturbed-histogram": "privurn.mechanisms.perturbed_histogram:PerturbedHistogram",
    "smoothed-histogram": "privurn.mechanisms.smoothed_histogram:SmoothedHistogram",
    "posterior-sample": "privurn.mechanisms.posterior_sample:PosteriorSample",
    "exponential": "privurn.mechanisms.exponential:ExponentialHistogram",
    "pseudo-posterior": "privurn.mechanisms.pseudo_posterior:PseudoPosterior",
    "marginals": "privurn.mechanisms.marginals:NoisyMarginals",
}
"""On the counts of a domain."""

CHANNELS = {
    "local-laplace": "privurn.mechanisms.local.laplace:LaplaceChannel",
    "local-gaussian": "privurn.mechanisms.local.gaussian:GaussianChannel",
    "local-haar-wavelet": "privurn.mechanisms.local.haar_wavelet:HaarWaveletChannel",
    "local-randomised-response": "privurn.mechanisms.local.randomised_response:RandomisedResponseChannel",
    "local-randomised-responses": "privurn.mechanisms.local.randomised_responses:RandomisedResponsesChannel",
    "local-discrete-laplace": "privurn.mechanisms.local.laplace:DiscreteLaplaceChannel",
    "local-discrete-gaussian": "privurn.mechanisms.local.gaussian:DiscreteGaussianChannel",
}
"""On every record by itself."""

STATISTICS = {
    "noisy-regression-statistics": "privurn.mechanisms.sums.regression_statistic:RegressionStatistic",
    "noisy-normal-statistics": "privurn.mechanisms.sums.regression_statistic:NormalStatistic",
    "noisy-logistic-statistics": "privurn.mechanisms.sums.logistic_statistic:LogisticStatistic",
    "noisy-dirichlet-statistics": "privurn.mechanisms.sums.dirichlet_statistic:DirichletStatistic",
    "noisy-table-statistics": "privurn.mechanisms.sums.table_statistic:TableStatistic",
    "noisy-bernoulli-statistics": "privurn.mechanisms.sums.sum_statistic:BernoulliStatistic",
    "noisy-poisson-statistics": "privurn.mechanisms.sums.sum_statistic:PoissonStatistic",
}
"""On sums over records."""

REGISTRY: Mapping[str, str] = ChainMap(MECHANISMS, CHANNELS, STATISTICS)

GLOBAL_CHANNELS = {
    "smoothed-histogram": "privurn.mechanisms.local.smoothed_histogram:SmoothedHistogramChannel",
    "noisy-statistic": "privurn.mechanisms.local.noisy_statistic:NoisyStatisticChannel",
}
"""Laws of one output for all records, by their own names: for inference; their releases are certified as mechanisms."""

RECIPES = {
    "dirichlet-multinomial": "privurn.mechanisms.dirichlet_multinomial:Urn",
    "perturbed-histogram": "privurn.mechanisms.perturbed_histogram:NoisyCounts",
    "smoothed-histogram": "privurn.mechanisms.smoothed_histogram:Smoothed",
    "posterior-sample": "privurn.mechanisms.posterior_sample:PosteriorDraws",
    "label-discovery": "privurn.mechanisms.label_discovery:Discover",
    "dirichlet-process": "privurn.mechanisms.pitman_yor:OpenUrn",
    "pitman-yor": "privurn.mechanisms.pitman_yor:PitmanYorUrn",
    "exponential": "privurn.mechanisms.exponential:Exponential",
    "pseudo-posterior": "privurn.mechanisms.pseudo_posterior:Pseudo",
    "marginals": "privurn.mechanisms.marginals:Marginals",
}
"""What can be asked for, by the name that the command line uses, in the order in which it is offered."""

DEFAULTS = {False: "dirichlet-multinomial", True: "label-discovery"}
"""What is made where nothing is asked for; True: of labels that nobody listed."""

CHANNEL_RECIPES = {
    "laplace": "privurn.mechanisms.local.laplace:Laplace",
    "gaussian": "privurn.mechanisms.local.gaussian:Gaussian",
    "haar-wavelet": "privurn.mechanisms.local.haar_wavelet:HaarWavelet",
    "randomised-response": "privurn.mechanisms.local.randomised_responses:RandomisedResponse",
    "discrete-laplace": "privurn.mechanisms.local.laplace:DiscreteLaplace",
    "discrete-gaussian": "privurn.mechanisms.local.gaussian:DiscreteGaussian",
}
"""Channels that can be asked for, likewise."""

INVALID = (KeyError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError, PrivurnError)
"""What impossible parameters end in."""


def registered(name: str) -> Any:
    """The class that a name stands for: a mechanism, a local channel or a statistic."""
    if name not in REGISTRY:
        raise CertificateError(f"the mechanism {name!r} is not known to this version.")
    return _imported(REGISTRY[name])


def rebuild(name: str, parameters: dict[str, Any]) -> "Mechanism":
    """What a certificate or ledger entry names, from its parameters: all of them, of the right types, and no others."""
    kind = registered(name)
    try:
        made: Mechanism = kind.rebuilt(parameters)
        stated = canonical(made.parameters())
    except INVALID:
        raise CertificateError("the mechanism's parameters are not valid.") from None
    if made.name != name:
        raise CertificateError("the mechanism's name does not fit its parameters.")
    if stated != canonical(parameters):
        raise CertificateError("the mechanism's parameters are not those that it would state itself.")
    return made


def mechanisms() -> "dict[str, type[Mechanism]]":
    """Mechanisms on counts, by name."""
    return _classes(MECHANISMS)


def recipes() -> "dict[str, type[Recipe]]":
    """What can be asked for, by name."""
    return _classes(RECIPES)


def default_recipe(*, open_labels: bool) -> "type[Recipe]":
    """What is made where nothing is asked for."""
    kind: type[Recipe] = _imported(RECIPES[DEFAULTS[open_labels]])
    return kind


def channel_recipes() -> "dict[str, type[ChannelRecipe]]":
    """Channels that can be asked for, by name."""
    return _classes(CHANNEL_RECIPES)


def local_channels() -> "dict[str, type[LocalChannel]]":
    """Channels of single records, by their own names."""
    return {each.name: each for each in _classes(CHANNELS).values()}


def statistics() -> "dict[str, type[StatisticMechanism]]":
    """Noisy sums, by name."""
    return _classes(STATISTICS)


def channels() -> "dict[str, type[Channel]]":
    """Channels of single records and of all records together, by their own names."""
    return {**local_channels(), **_classes(GLOBAL_CHANNELS)}


def channel_from_parameters(name: str, parameters: dict[str, Any]) -> "Channel":
    """Rebuild a channel from its own name and `parameters()`."""
    known = channels()
    if name not in known:
        raise CertificateError(f"the channel {name!r} is not known to this version.")
    try:
        return known[name].from_parameters(parameters)
    except INVALID:
        raise CertificateError("the channel's parameters are not valid.") from None


def _classes(entries: Mapping[str, str]) -> dict[str, Any]:
    return {name: _imported(place) for name, place in entries.items()}


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
