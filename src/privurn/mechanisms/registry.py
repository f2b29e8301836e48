"""Everything that a certificate can name, one line each. Nothing else lists names; modules are imported when asked for."""

from collections import ChainMap
from collections.abc import Mapping
from functools import cache
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
    "noisy-tree": "privurn.mechanisms.noisy_tree_recipe:PerturbedTree",
    "perturbed-histogram": "privurn.mechanisms.perturbed_histogram:PerturbedHistogram",
    "smoothed-histogram": "privurn.mechanisms.smoothed_histogram:SmoothedHistogram",
    "posterior-sample": "privurn.mechanisms.posterior_sample:PosteriorSample",
    "label-discovery": "privurn.mechanisms.label_discovery:DiscoveredUrn",
    "dirichlet-process": "privurn.mechanisms.pitman_yor:PitmanYor",
    "pitman-yor": "privurn.mechanisms.pitman_yor:PitmanYor",
    "exponential": "privurn.mechanisms.exponential:ExponentialHistogram",
    "pseudo-posterior": "privurn.mechanisms.pseudo_posterior:PseudoPosterior",
    "noisy-marginals": "privurn.mechanisms.marginals_recipe:NoisyMarginals",
}
"""On the counts of a domain, in the order in which they are offered. Recipes stand beside them, in the same module."""

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

THROUGH_CHANNELS = "privurn.mechanisms.local.local_release:LocalRelease"
"""A release through any of them."""

STATISTICS = {
    "noisy-regression-statistics": "privurn.mechanisms.sums.regression_statistic:RegressionStatistic",
    "noisy-normal-statistics": "privurn.mechanisms.sums.regression_statistic:NormalStatistic",
    "noisy-logistic-statistics": "privurn.mechanisms.sums.logistic_statistic:LogisticStatistic",
    "noisy-dirichlet-statistics": "privurn.mechanisms.sums.dirichlet_statistic:DirichletStatistic",
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

DEFAULTS = {
    "labels": "label-discovery",
    "order": "noisy-tree",
    "table": "noisy-marginals",
    "noisy cells": "perturbed-histogram",
    "urn of cells": "dirichlet-multinomial",
    "smoothed cells": "smoothed-histogram",
}
"""What is made where nothing is asked for: of labels that nobody listed, of one or two columns with an order, of several
columns with many joint cells, and of all else one of the last three, which may be the least with an order too (`LeastError`,
in `releases.usual`)."""

INVALID = (KeyError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError, PrivurnError)
"""What impossible parameters end in."""


def registered(name: str) -> Any:
    """The class that a name stands for: a mechanism, a local channel or a statistic."""
    if name not in REGISTRY:
        raise CertificateError(f"the mechanism {name!r} is not known to this version.")
    return _imported(REGISTRY[name])


def released_by(name: str) -> "type[Mechanism]":
    """The class of what `rebuild` makes: for a channel, that of a release through it."""
    kind: type[Mechanism] = _imported(THROUGH_CHANNELS) if name in CHANNELS else registered(name)
    return kind


def rebuild(name: str, parameters: dict[str, Any]) -> "Mechanism":
    """What a certificate or ledger entry names, from its parameters: all of them, of the right types, and no others."""
    kind = registered(name)
    try:
        through = name in CHANNELS
        made: Mechanism = _imported(THROUGH_CHANNELS).through(kind, parameters) if through else kind.from_parameters(parameters)
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
    from privurn.mechanisms.recipe import Recipe

    return _recipes(MECHANISMS, Recipe)


def default_recipe(of: str) -> "type[Recipe]":
    """What is made where nothing is asked for, of something that DEFAULTS lists."""
    from privurn.mechanisms.recipe import Recipe

    name = DEFAULTS[of]
    kind: type[Recipe] = _recipes({name: MECHANISMS[name]}, Recipe)[name]
    return kind


def channel_recipes() -> "dict[str, type[ChannelRecipe]]":
    """Channels that can be asked for, by name."""
    from privurn.mechanisms.local.recipe import ChannelRecipe

    return _recipes(CHANNELS, ChannelRecipe)


def local_channels() -> "dict[str, type[LocalChannel]]":
    """Channels of single records, by their own names."""
    return {each.name: each for each in _classes(CHANNELS).values()}


def statistics() -> "dict[str, type[StatisticMechanism]]":
    """Noisy sums, by name."""
    return _classes(STATISTICS)


def channels() -> "dict[str, type[Channel]]":
    """Channels of single records and of all records together, by their own names."""
    return {**local_channels(), **_classes(GLOBAL_CHANNELS)}


def _classes(entries: Mapping[str, str]) -> dict[str, Any]:
    return {name: _imported(place) for name, place in entries.items()}


def _recipes(entries: Mapping[str, str], base: Any) -> dict[str, Any]:
    """What the entries' modules define beside them, by the name that it is asked for with."""
    found: dict[str, Any] = {}
    for place in entries.values():
        found |= _defined(import_module(place.partition(":")[0]), base)
    return found


@cache
def _defined(module: Any, base: Any) -> dict[str, Any]:
    own = [each for each in vars(module).values() if getattr(each, "__module__", None) == module.__name__]
    return {each.alias: each for each in own if isinstance(each, type) and issubclass(each, base)}  # type: ignore[attr-defined]


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
