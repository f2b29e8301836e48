"""Channels: what turns confidential data into what is published, with the density of the output given the data.

Local channels noise every record by itself; global ones publish a noisy sum over the records, or draws from their
histogram. Both are frozen public data: simulate, log density, guarantee. Proofs: docs/proofs/channels.md.
"""

from privurn.channels.channel import Channel, GlobalChannel, LocalChannel
from privurn.channels.gaussian import DiscreteGaussianChannel, GaussianChannel
from privurn.channels.haar_wavelet import HaarWaveletChannel
from privurn.channels.laplace import DiscreteLaplaceChannel, LaplaceChannel
from privurn.channels.noisy_statistic import NoisyStatisticChannel
from privurn.channels.randomised_response import RandomisedResponseChannel
from privurn.channels.randomised_responses import RandomisedResponsesChannel
from privurn.channels.registry import CHANNELS, channel_from_parameters
from privurn.channels.smoothed_histogram import SmoothedHistogramChannel
from privurn.channels.statistics import HistogramStatistic, MarginalsStatistic, MomentsStatistic, Statistic

__all__ = [
    "CHANNELS",
    "Channel",
    "DiscreteGaussianChannel",
    "DiscreteLaplaceChannel",
    "GaussianChannel",
    "GlobalChannel",
    "HaarWaveletChannel",
    "HistogramStatistic",
    "LaplaceChannel",
    "LocalChannel",
    "MarginalsStatistic",
    "MomentsStatistic",
    "NoisyStatisticChannel",
    "RandomisedResponseChannel",
    "RandomisedResponsesChannel",
    "SmoothedHistogramChannel",
    "Statistic",
    "channel_from_parameters",
]
