"""Channels by the name that certificates use."""

from collections.abc import Mapping
from typing import Any

from privurn.errors import CertificateError, PrivurnError
from privurn.mechanisms.local.channel import Channel, LocalChannel
from privurn.mechanisms.local.gaussian import DiscreteGaussian, DiscreteGaussianChannel, Gaussian, GaussianChannel
from privurn.mechanisms.local.haar_wavelet import HaarWavelet, HaarWaveletChannel
from privurn.mechanisms.local.laplace import DiscreteLaplace, DiscreteLaplaceChannel, Laplace, LaplaceChannel
from privurn.mechanisms.local.noisy_statistic import NoisyStatisticChannel
from privurn.mechanisms.local.randomised_response import RandomisedResponseChannel
from privurn.mechanisms.local.randomised_responses import RandomisedResponse, RandomisedResponsesChannel
from privurn.mechanisms.local.recipe import ChannelRecipe
from privurn.mechanisms.local.smoothed_histogram import SmoothedHistogramChannel

LOCAL: Mapping[str, type[LocalChannel]] = {
    channel.name: channel
    for channel in (
        LaplaceChannel,
        GaussianChannel,
        HaarWaveletChannel,
        RandomisedResponseChannel,
        RandomisedResponsesChannel,
        DiscreteLaplaceChannel,
        DiscreteGaussianChannel,
    )
}
CHANNELS: Mapping[str, type[Channel]] = {
    **LOCAL,
    SmoothedHistogramChannel.name: SmoothedHistogramChannel,
    NoisyStatisticChannel.name: NoisyStatisticChannel,
}

CHANNEL_RECIPES: Mapping[str, type[ChannelRecipe]] = {
    each.alias: each for each in (Laplace, Gaussian, HaarWavelet, RandomisedResponse, DiscreteLaplace, DiscreteGaussian)
}
"""What can be asked for, by the name that the command line uses."""


def channel_from_parameters(name: str, parameters: dict[str, Any]) -> Channel:
    """Rebuild a channel from its name and `parameters()`."""
    if name not in CHANNELS:
        raise CertificateError(f"the channel {name!r} is not known to this version.")
    try:
        return CHANNELS[name].from_parameters(parameters)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError, PrivurnError):
        raise CertificateError("the channel's parameters are not valid.") from None
