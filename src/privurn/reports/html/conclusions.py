"""What may be concluded from published measurements: the posterior's figures, and its band beside the records."""

from pathlib import Path

from privurn.inference.infer import infer
from privurn.inference.run import Run
from privurn.privacy.certificate import Certificate
from privurn.reports.html.markup import Markup, joined, number, section, table, tag
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
    "mean of the u and B the variance between the q (privurn.combine does so)."
)


def conclusions(folder: Path, certificate: Certificate) -> Markup:
    """Nothing for a release without measurements."""
    synthetic = certificate["synthetic"]
    if synthetic is None:
        return Markup("")
    found = infer(folder, run=Run(draws=DRAWS, seed=int(synthetic["seed"])))
    rows = [
        (each.name, number(each.mean), number(each.deviation), f"{number(each.lower)} to {number(each.upper)}")
        for each in found.summary()
    ]
    parts = [
        tag("p", COPIES if synthetic["copies"] > 1 else FACE_VALUE),
        table("Posterior of the population, from the measurements alone", ("", "mean", "sd", "95% interval"), rows),
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
