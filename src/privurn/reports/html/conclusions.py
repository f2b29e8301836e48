"""What may be concluded from published measurements: the posterior's figures, and its band beside the records."""

import shlex
from pathlib import Path

from privurn.errors import ModelError
from privurn.inference.cautions import unsaid
from privurn.inference.counts.released import observe
from privurn.inference.infer import infer
from privurn.inference.posterior import Posterior
from privurn.inference.run import Run
from privurn.inference.verified import Verified
from privurn.mechanisms.mechanism import Mechanism
from privurn.privacy.certificate import Certificate
from privurn.reports.html.markup import Markup, bullets, joined, number, section, table, tag
from privurn.reports.html.pictures import plot

DRAWS = 500
"""In each of four pieces."""

FACE_VALUE = (
    "The records are for use at face value: a best guess of the confidential table. They do not show how far off they may be, "
    "and an interval computed from them as if they were the data is too short; those below know about the noise and about "
    "sampling."
)
COPIES = (
    "The copies are tables drawn from the posterior. Analyse each, and combine the M estimates q with their usual variances u: "
    "their mean, with variance U + (1 + 1/M) B for the population and (1 + 1/M) B for the confidential table, where U is the "
    "mean of the u and B the variance between the q. An interval reaches as many deviations to both sides as Student's t has "
    "with (M - 1)(1 + U/((1 + 1/M) B))^2 and with M - 1 degrees of freedom. privurn.combine does all of it, and "
    "privurn.combine_quantile for quantiles, which have no usual variance; where the noise is Laplace's and copies are few, "
    "such intervals are a little short, and privurn infer has better ones."
)


def face_value(folder: Path, certificate: Certificate, mechanism: Mechanism) -> Markup:
    """What published rows are good for as they are, and what not; where there are measurements, the conclusions say it."""
    if certificate["synthetic"] is not None:
        return Markup("")
    sources = mechanism.error_sources
    given = Verified(certificate=certificate, mechanism=mechanism, data=folder / certificate["output"]["file"])
    try:
        observe(given).term  # noqa: B018  # refuses where nobody has written the likelihood down
        then = tag(
            "p", "Intervals that know how they were made: ", tag("code", f"privurn infer {shlex.quote(folder.resolve().name)}")
        )
    except ModelError as refusal:
        then = tag("p", f"Nor does privurn infer know how far off they are: {refusal.message}")
    return section(
        "At face value",
        tag("p", f"Taken for the data, the {mechanism.rows_are} show about what the confidential table holds. They are off"),
        bullets([f"in every release alike, by {sources.shrinkage};", f"by chance, by {sources.noise}."]),
        tag(
            "p",
            "They do not show how far off they are. An interval computed from them as if they were the data is too short, and "
            "may lie beside the truth, however many rows there are.",
        ),
        then,
        name="face-value",
    )


def conclusions(folder: Path, certificate: Certificate) -> Markup:
    """Nothing for a release without measurements."""
    synthetic = certificate["synthetic"]
    if synthetic is None:
        return Markup("")
    with unsaid():
        return _concluded(infer(folder, run=Run(draws=DRAWS, seed=int(synthetic["seed"]))), certificate)


def cautions(found: Posterior) -> Markup:
    """What must be known before the figures are used; nothing where there is nothing."""
    told = [str(each) for each in found.cautions()]
    return joined([tag("p", "Before these figures are used:"), bullets(told)]) if told else Markup("")


def _concluded(found: Posterior, certificate: Certificate) -> Markup:
    synthetic = certificate["synthetic"]
    rows = [
        (each.name, number(each.mean), number(each.deviation), f"{number(each.lower)} to {number(each.upper)}")
        for each in found.summary()
    ]
    parts = [
        tag("p", COPIES if synthetic["copies"] > 1 else FACE_VALUE),
        table("Posterior of the population, from the measurements alone", ("", "mean", "sd", "95% interval"), rows),
        cautions(found),
    ]
    if len(certificate["domain"]["columns"]) == 1:
        parts.append(
            plot(
                found.plot(kind="cdf"),
                name="conclusions",
                title="Distribution function: posterior band, and the published records",
                description="Point by point, the population's distribution function lies in the band with probability 95%.",
            )
        )
    parts.append(tag("p", f"How: {found.draws.attributes['how']}; prior: {found.draws.attributes['prior']}."))
    return section("What may be concluded", joined(parts), name="conclusions")
