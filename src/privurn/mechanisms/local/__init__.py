"""Channels: what turns confidential data into what is published, with the density of the output given the data.

Local channels noise every record by itself; global ones publish a noisy sum over the records, or draws from their
histogram. Both are frozen public data: simulate, log density, guarantee. Proofs: docs/proofs/channels.md.
"""

from privurn.mechanisms.local.channel import Channel, GlobalChannel, LocalChannel
from privurn.mechanisms.local.gaussian import DiscreteGaussianChannel, GaussianChannel
from privurn.mechanisms.local.haar_wavelet import HaarWaveletChannel
from privurn.mechanisms.local.laplace import DiscreteLaplaceChannel, LaplaceChannel
from privurn.mechanisms.local.noisy_statistic import NoisyStatisticChannel
from privurn.mechanisms.local.randomised_response import RandomisedResponseChannel
from privurn.mechanisms.local.randomised_responses import RandomisedResponsesChannel
from privurn.mechanisms.local.smoothed_histogram import SmoothedHistogramChannel
from privurn.mechanisms.local.statistics import HistogramStatistic, MarginalsStatistic, MomentsStatistic, Statistic

__all__ = [
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
]
