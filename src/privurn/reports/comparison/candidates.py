"""Which mechanisms can release a column at a given guarantee, from public quantities, and where their errors come from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privurn.domain import JointDomain
from privurn.errors import CalibrationError, DomainError, FormatError, ModelError
from privurn.mechanisms.asymptotic_pseudo_posterior import AsymptoticPseudoPosterior, Variant
from privurn.mechanisms.choice import choose
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial, Urn
from privurn.mechanisms.exponential import Exponential, ExponentialHistogram
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.models import Model
from privurn.mechanisms.perturbed_histogram import NoisyCounts, PerturbedHistogram
from privurn.mechanisms.pitman_yor import OpenUrn, PitmanYor, PitmanYorUrn
from privurn.mechanisms.posterior_sample import PosteriorDraws, PosteriorSample
from privurn.mechanisms.pseudo_posterior import Pseudo, PseudoPosterior, only_column
from privurn.mechanisms.recipe import Public, Recipe
from privurn.mechanisms.smoothed_histogram import Smoothed, SmoothedHistogram
from privurn.privacy.profile import Guarantee


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A mechanism that meets the guarantee, and in words what pulls its releases away from the data.

    `certified`  whether it meets the guarantee indeed: False for one that has no certificate and is there to be looked at
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
    certified: bool = True


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A mechanism that cannot meet the guarantee, and why."""

    name: str
    reason: str


WAYS: Mapping[str, Recipe] = {
    "dirichlet-multinomial": Urn(),
    "posterior-sample": PosteriorDraws(),
    "perturbed-histogram": NoisyCounts(),
    "perturbed-histogram, Gaussian": NoisyCounts(noise="discrete-gaussian"),
    "perturbed-histogram, counts": NoisyCounts(publish="counts"),
    "smoothed-histogram": Smoothed(),
    "exponential": Exponential(),
    "dirichlet-process": OpenUrn(),
    "pitman-yor": PitmanYorUrn(discount=0.5),
    "pseudo-posterior": Pseudo(),  # only with a model of the column
    "pseudo-posterior, reference": Pseudo(),  # only with a public guess as well
}
"""Every way to release from a public domain: a mechanism's name, up to a comma, and what is asked for beside the guarantee."""

ASYMPTOTIC: Mapping[str, Variant] = {
    "asymptotic pseudo-posterior, unweighted": "unweighted",
    "asymptotic pseudo-posterior, weighted": "weighted",
    "asymptotic pseudo-posterior, weighted-e": "weighted-e",
    "asymptotic pseudo-posterior, censor-w": "censor-w",
}
"""Ways of the literature without differential privacy: only with a model, and only where they are asked for."""

NO_CERTIFICATE = "no certificate: asymptotic only"

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
    domain: JointDomain | None = None,
    model: Model | None = None,
    reference: Model | None = None,
    asymptotic: bool = False,
) -> tuple[tuple[Candidate, ...], tuple[Refused, ...]]:
    """Every mechanism that can release `n` records on `cells` cells under the guarantee, and those that cannot.

    Each is chosen just as `release` would choose it.

    `names` restricts them, by a mechanism's name or the full name of one way to use it. `coarser` = (g, number of cells when
    g neighbours are taken as one) adds some of them on wider bins. `model` of the one column of `domain` adds the
    pseudo-posterior, `reference` another one weighted by it, and `asymptotic` those that have no certificate.
    """
    able, refused = [], []
    offered = _offered(model=model, reference=reference, asymptotic=asymptotic)
    for name, way, group, size in _ways(_wanted(names, offered, asymptotic=asymptotic), cells, coarser):
        try:
            if way in ASYMPTOTIC:
                mechanism: Mechanism = _asymptotic(ASYMPTOTIC[way], n, n_records, domain, model, guarantee)
            else:
                own: dict[str, Any] = {"model": model} if way.startswith("pseudo-posterior") else {}
                own |= {"reference": reference} if way == "pseudo-posterior, reference" else {}
                own |= {"records": n_records} if WAYS[way].publishes_records else {}
                public = Public(n=n, cells=size, guarantee=guarantee, domain=domain if group == 1 else None)
                mechanism, _ = choose(replace(WAYS[way], **own), public)
        except (CalibrationError, ModelError, DomainError) as error:
            refused.append(Refused(name=name, reason=_why_not(error)))
            continue
        sources = _sources(mechanism, size)
        able.append(Candidate(name=name, mechanism=mechanism, group=group, certified=way not in ASYMPTOTIC, **sources))
    return tuple(able), tuple(refused)


def _offered(*, model: Model | None, reference: Model | None, asymptotic: bool) -> list[str]:
    """The ways that there is enough to try."""
    if model is None and (reference is not None or asymptotic):
        raise ModelError(
            "a pseudo-posterior needs a model of the column.",
            hint="For example model=privurn.models.Beta()",
        )
    without = {"pseudo-posterior, reference"} if reference is None else set()
    if model is None:
        without.add("pseudo-posterior")
    return [way for way in WAYS if way not in without] + (list(ASYMPTOTIC) if asymptotic else [])


def _asymptotic(
    variant: Variant, n: int, n_records: int | None, domain: JointDomain | None, model: Model | None, guarantee: Guarantee
) -> AsymptoticPseudoPosterior:
    """With the threshold epsilon/2 of the paper, where the variant has one."""
    if domain is None or model is None:
        raise ModelError("a pseudo-posterior needs a model of the column, and its domain.")
    threshold = guarantee.epsilon / 2.0 if variant in ("weighted-e", "censor-w") else None
    records = n if n_records is None else n_records
    return AsymptoticPseudoPosterior(
        n=n, domain=only_column(domain), model=model, records=records, variant=variant, threshold=threshold
    )


def _family(way: str) -> str:
    return way.partition(",")[0]


def _wanted(names: Sequence[str] | None, offered: Sequence[str], *, asymptotic: bool) -> list[str]:
    """Of what is offered, what is named; what has no certificate is asked for by a switch, so a name only restricts it."""
    if names is None:
        return list(offered)
    for name in names:
        if not any(name in (way, _family(way)) for way in (*WAYS, *ASYMPTOTIC)):
            known = ", ".join(dict.fromkeys(map(_family, WAYS)))
            raise FormatError(f"the mechanism {name!r} is not known.", hint=f"One of {known}")
        if not any(name in (way, _family(way)) for way in offered):
            raise ModelError(
                f"the mechanism {name!r} needs more than its name.",
                hint="A model of the column, a reference for a weighted one, asymptotic=True for one without a certificate",
            )
    named = [way for way in offered if way in names or _family(way) in names]
    if asymptotic and not any(way in ASYMPTOTIC for way in named):
        named += ASYMPTOTIC
    return named


def _ways(names: Sequence[str], cells: int, coarser: tuple[int, int] | None) -> Iterator[tuple[str, str, int, int]]:
    """What to call it, the way, and the cells to take as one and how many that leaves."""
    for way in names:
        yield way, way, 1, cells
    if coarser is not None:
        group, size = coarser
        for way in COARSER:
            if way in names:
                yield f"{way}, {size:,} cells", way, group, size


def _why_not(error: CalibrationError | ModelError | DomainError) -> str:
    own = [each for each in error.offered if isinstance(each.changes.get("mechanism", each.refused), type(each.refused))]
    return f"{error.message} The nearest that it offers is {own[0]}." if own else error.message  # others are here anyway


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
    elif isinstance(mechanism, PseudoPosterior):
        shrinkage = (
            f"the model: a {mechanism.model.kind} curve does not follow the data everywhere, and each record's log density is "
            f"cut off at {mechanism.threshold:.3g}"
        )
        noise = "the draw of the model's parameters, which censoring spreads out"
    elif isinstance(mechanism, AsymptoticPseudoPosterior):
        shrinkage = f"the model: a {mechanism.model.kind} curve does not follow the data everywhere"
        if mechanism.variant != "unweighted":
            shrinkage += ", and rare records weigh less"
        noise = "the draw of the model's parameters"
    else:
        raise ModelError(f"the mechanism {mechanism.name!r} cannot be compared.")
    return {"records": records, "output": output, "shrinkage": shrinkage, "noise": noise, "size": size}
