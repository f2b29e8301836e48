"""What was published where it is no synthetic data: noisy sums, or records that each got noise of their own."""

import shlex
from pathlib import Path

from privurn.inference.sums.reading import released_sums
from privurn.mechanisms.mechanism import Mechanism
from privurn.privacy.certificate import Certificate
from privurn.reports.html.markup import Markup, number, section, table, tag

MOST_SUMS = 100
"""On the page; the file has all."""

SUMS = (
    "Each number is a sum over the confidential records with random noise added, whose standard deviation stands beside it. "
    "How columns were clamped and scaled before is among the parameters."
)
RECORDS = (
    "Every record was changed at random by itself before it was written down. A single one tells little, and figures computed "
    "from all of them as if they were the data are wrong: the noise is part of them."
)


def published_sums(path: Path) -> list[Markup]:
    """The sums with their noise, and what reads them."""
    public = released_sums(path)
    named = list(zip(public.mechanism.names, public.values.tolist(), strict=True))
    rows = [(name, number(value), number(public.noise.deviation)) for name, value in named[:MOST_SUMS]]
    if public.noisy_n is not None and public.size_noise is not None:
        rows.append(("number of records", number(public.noisy_n), number(public.size_noise.deviation)))
    elif public.n is not None:
        rows.append(("number of records", f"{public.n:,}", "none: it is public"))
    left = f" (the first {MOST_SUMS:,} of {len(named):,})" if len(named) > MOST_SUMS else ""
    shown = table(f"Published sums{left}", ("sum of", "published", "deviation of the noise"), rows)
    return [section("The published sums", tag("p", SUMS), shown, name="data"), _conclusions(path)]


def published_records(folder: Path, certificate: Certificate, mechanism: Mechanism) -> list[Markup]:
    """What privatised records are good for, and what reads them."""
    words = f"The file holds {certificate['output']['rows']:,} {mechanism.rows_are}."
    return [section("The published records", tag("p", words), tag("p", RECORDS), name="data"), _conclusions(folder)]


def _conclusions(path: Path) -> Markup:
    return section(
        "What may be concluded",
        tag(
            "p",
            "Intervals that know about the noise, from what was published alone: ",
            tag("code", f"privurn infer {shlex.quote(path.resolve().name)}"),
        ),
        name="conclusions",
    )
