"""The channel behind a certified release, for inference from it."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from privurn.domain import Bins, JointDomain, domain_from_json
from privurn.errors import CertificateError
from privurn.mechanisms.local.channel import Channel
from privurn.mechanisms.local.local_release import LocalRelease
from privurn.mechanisms.local.noisy_statistic import NoisyStatisticChannel
from privurn.mechanisms.local.smoothed_histogram import SmoothedHistogramChannel
from privurn.mechanisms.local.statistics import HistogramStatistic
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.registry import rebuild
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.privacy.certificate import Certificate
from privurn.privacy.laws.noise import check_whole


def channel_of(certificate: Certificate) -> Channel:
    """A local channel, or the global one of a smoothed histogram or of noisy counts on equal bins."""
    stated = certificate["mechanism"]
    name, parameters = str(stated["name"]), stated["parameters"]
    mechanism = rebuild(name, parameters)
    if isinstance(mechanism, LocalRelease):
        return mechanism.channel
    if isinstance(mechanism, SmoothedHistogram):
        bounds, bins = _equal_bins(certificate["domain"])
        return SmoothedHistogramChannel(
            bounds=bounds, bins=bins, n=mechanism.n, draws=mechanism.records, weight=mechanism.weight
        )
    counts = isinstance(mechanism, PerturbedHistogram) and mechanism.publish == "counts" and mechanism.n is not None
    if counts and parameters["noise"] in ("discrete-laplace", "discrete-gaussian"):
        bounds, bins = _equal_bins(certificate["domain"])
        check_whole("n", parameters["n"])
        return NoisyStatisticChannel(
            statistic=HistogramStatistic(bounds=bounds, bins=bins),
            n=int(parameters["n"]),
            noise="laplace" if parameters["noise"] == "discrete-laplace" else "gaussian",
            scale=float(parameters["scale"]),
        )
    raise CertificateError(
        f"a release by {name!r} has no channel to infer from.",
        hint="Use privurn privatise; or release bins with smoothed-histogram, or with perturbed-histogram and publish='counts'",
    )


def _equal_bins(stated: Mapping[str, Any]) -> tuple[tuple[float, float], int]:
    """Bounds and number of bins of a one-column domain of equal bins that holds nothing else."""
    domain = domain_from_json(stated)
    bins = next(iter(domain.columns.values())) if isinstance(domain, JointDomain) and len(domain.columns) == 1 else None
    if not isinstance(bins, Bins) or bins.size != bins.n_values:
        raise CertificateError(
            "the release is not of one column in bins.", hint="Declare bins with outside values clamped and no nulls"
        )
    edges = [Fraction(edge) for edge in bins.edges]
    if len({b - a for a, b in pairwise(edges)}) != 1:
        raise CertificateError("the bins of the release are not of equal width.", hint="Release equal bins")
    return (float(edges[0]), float(edges[-1])), bins.n_values
