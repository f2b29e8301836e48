"""Which mechanisms can release a column at a given guarantee, from public quantities, and where their errors come from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privurn.choosing import Request, choose_mechanism
from privurn.errors import CalibrationError, FormatError, ModelError
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.exponential import ExponentialHistogram, calibrate_exponential
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.privacy.profile import Guarantee


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A mechanism that meets the guarantee, and in words what pulls its releases away from the data.

    `group`      neighbouring cells that it takes as one: 1, or an odd number g for a grid of g times the step
    `records`    how many it releases; None where it releases a number for each cell
    `output`     the same in words
    `shrinkage`  the error that is the same in every release
    `noise`      what differs from release to release
    `size`       why its number of records costs accuracy
    """

    name: str
    mechanism: Mechanism
    group: int
    records: int | None
    output: str
    shrinkage: str
    noise: str
    size: str


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A mechanism that cannot meet the guarantee, and why."""

    name: str
    reason: str


WAYS: Mapping[str, Mapping[str, Any]] = {
    "dirichlet-multinomial": {},
    "posterior-sample": {"n_records": None},  # its records are the resolution of the probabilities
    "perturbed-histogram": {},
    "perturbed-histogram, Gaussian": {"noise": "discrete-gaussian"},
    "perturbed-histogram, counts": {"publish": "counts", "n_records": None},
    "smoothed-histogram": {},
    "exponential": {},
    "dirichlet-process": {},
    "pitman-yor": {"discount": Fraction(1, 2)},
}
"""Every way to release from a public domain: a mechanism's name, up to a comma, and what is asked for beside the guarantee."""

COARSER = ("dirichlet-multinomial", "perturbed-histogram")
"""Tried on a coarser grid as well."""


def candidates(
    *,
    n: int,
    cells: int,
    guarantee: Guarantee,
    n_records: int | None = None,
    names: Sequence[str] | None = None,
    coarser: tuple[int, int] | None = None,
) -> tuple[tuple[Candidate, ...], tuple[Refused, ...]]:
    """Every mechanism that can release `n` records on `cells` cells under the guarantee, and those that cannot.

    Each is chosen just as `release` would choose it.

    `names` restricts them, by a mechanism's name or the full name of one way to use it. `coarser` = (g, number of cells when
    g neighbours are taken as one) adds some of them on wider bins.
    """
    able, refused = [], []
    for name, way, group, size in _ways(_wanted(names), cells, coarser):
        try:
            request = Request(**{"guarantee": guarantee, "n_records": n_records, "mechanism": _family(way), **WAYS[way]})
            mechanism = _chosen(n, size, request)
        except (CalibrationError, ModelError) as error:
            refused.append(Refused(name=name, reason=_why_not(error)))
            continue
        able.append(Candidate(name=name, mechanism=mechanism, group=group, **_sources(mechanism, size)))
    return tuple(able), tuple(refused)


def _chosen(n: int, cells: int, request: Request) -> Mechanism:
    if request.mechanism == "exponential":  # its default loss needs the number of cells alone
        return calibrate_exponential(n=n, cells=cells, guarantee=request.guarantee, records=request.n_records)
    return choose_mechanism(n=n, cells=cells, request=request)[0]


def _family(way: str) -> str:
    return way.partition(",")[0]


def _wanted(names: Sequence[str] | None) -> list[str]:
    if names is None:
        return list(WAYS)
    for name in names:
        if not any(name in (way, _family(way)) for way in WAYS):
            known = ", ".join(dict.fromkeys(map(_family, WAYS)))
            raise FormatError(f"the mechanism {name!r} is not known.", hint=f"One of {known}")
    return [way for way in WAYS if way in names or _family(way) in names]


def _ways(names: Sequence[str], cells: int, coarser: tuple[int, int] | None) -> Iterator[tuple[str, str, int, int]]:
    """What to call it, the way, and the cells to take as one and how many that leaves."""
    for way in names:
        yield way, way, 1, cells
    if coarser is not None:
        group, size = coarser
        for way in COARSER:
            if way in names:
                yield f"{way}, {size:,} cells", way, group, size


def _why_not(error: CalibrationError | ModelError) -> str:
    nearest = getattr(error, "alternatives", ())
    return f"the guarantee is out of its reach; the nearest it offers is {nearest[0]}." if nearest else error.message


def _sources(mechanism: Mechanism, cells: int) -> dict[str, Any]:
    """What is released, and where its error comes from, with the public numbers."""
    records: int | None = mechanism.records
    output = "1 record" if records == 1 else f"{records:,} records"
    noise = "the chance of sampling"
    size = f"the number of records, {records:,}"
    if isinstance(mechanism, PerturbedHistogram):
        noise = f"noise: a standard deviation of {mechanism.noise_deviation:.3g} on each of the {cells:,} counts"
        shrinkage = "noise that is cut off at 0, which fills empty cells"
        if mechanism.publish == "counts":
            records, output = None, f"{cells:,} counts"
    elif isinstance(mechanism, (DirichletMultinomial, PosteriorSample)):
        shrinkage = f"shrinkage: the flat prior over {cells:,} cells weighs {mechanism.prior_weight:.1%} of what is released"
        noise = "the randomness of the urn itself"
        if isinstance(mechanism, PosteriorSample):
            records, output = None, f"{cells:,} probabilities"
    elif isinstance(mechanism, SmoothedHistogram):
        shrinkage = f"shrinkage: the uniform over {cells:,} cells weighs {float(mechanism.weight):.1%} of what is released"
    elif isinstance(mechanism, PitmanYor):
        shrinkage = "shrinkage: new values come from the flat base"
        size = (
            "the floor: it may copy a record that nobody shares, and a chance of at most delta for that allows no more than "
            f"{output}"
        )
    elif isinstance(mechanism, ExponentialHistogram):
        shrinkage = "the pull of the uniform measure over all histograms of so many records"
        noise = "the mechanism's random choice of a histogram"
        size = f"the number of records, {records:,}, as many as can be drawn exactly"
    else:
        raise ModelError(f"the mechanism {mechanism.name!r} cannot be compared.")
    return {"records": records, "output": output, "shrinkage": shrinkage, "noise": noise, "size": size}
