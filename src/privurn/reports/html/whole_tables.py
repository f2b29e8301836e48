"""A whole table on the page: its columns, pairs of them as measured and in the records, and what fits worst.

Everything is computed from the folder: the noisy counts, and the records that were made from them.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.domain import TableDomain
from privurn.inference.cautions import unsaid
from privurn.inference.run import Run
from privurn.inference.tables.fitted import FittedMarginal, fitted_marginals
from privurn.inference.tables.posterior import table_posterior
from privurn.inference.tables.reading import read_table
from privurn.inference.verified import verified
from privurn.mechanisms.table_measurements import MeasuredTable
from privurn.privacy.certificate import Certificate
from privurn.reports.comparison.whole_tables import Codes, marginal_distances, resampled, shuffled, worst_pairs
from privurn.reports.html.conclusions import cautions
from privurn.reports.html.markup import Markup, joined, number, section, table, tag
from privurn.reports.html.pictures import bars
from privurn.reports.html.released import labels_of, other_table
from privurn.tables import open_table
from privurn.tables.cell_batches import cell_batches
from privurn.tables.released import open_released

Floats = NDArray[np.float64]

MOST_PICTURES = 30
"""Pairs that are drawn, those first that the records follow least."""

MOST_CELLS = 60
"""Of a drawn pair: the largest ones."""

MOST_LISTED = 10
"""Sets of columns that the records follow least."""

MOST_FIGURES = 60
"""Of what may be concluded."""

WIDTH, HEIGHT = 400, 180
"""Of a drawn pair, in the picture's own units."""

WIDE = 1.96
"""Deviations to each side of a band."""

FACE_VALUE = (
    "The records are for use at face value: a best guess of the confidential table. Associations in them are shrunk towards "
    "none, and an interval computed from them as if they were the data is wrong; privurn infer reads the measured counts, "
    "knows about the noise, and does regressions as well."
)
COPIES = (
    "The copies are approximate draws of the confidential table. Shares and means from them are combined by privurn.combine; "
    "regressions on them are shrunk: those of privurn infer are not."
)


def table_sections(folder: Path, certificate: Certificate, data: Any) -> list[Markup]:
    """The records beside the data where these are given, the records beside what was measured, and what may be concluded."""
    measured = read_table(verified(folder))
    domain = measured.domain
    assert domain is not None
    codes = None if certificate["synthetic"] is None else record_cells(folder, certificate, domain)
    own = [] if data is None else [_compared(data, codes, certificate, measured, domain)]
    return [*own, _released(measured, codes, domain), _conclusions(measured, certificate)]


def _released(measured: MeasuredTable, codes: Codes | None, domain: TableDomain) -> Markup:
    """Columns, pairs and the worst fitted sets."""
    if codes is None:
        return section("The released table", tag("p", "No records were made from the measurements."), name="data")
    found = fitted_marginals(measured, codes)
    body = [
        tag("p", "Computed from the release folder alone: noisy counts, and the records that were made from them."),
        *_columns(found, measured, domain),
        *_pairs(found, domain),
        _worst(found, domain),
    ]
    return section("The released table", joined(body), name="data")


def record_cells(folder: Path, certificate: Certificate, domain: TableDomain) -> Codes:
    """The cells of the synthetic records, a row for each column; of all copies together."""
    with open_released(folder / certificate["synthetic"]["file"]) as source:
        return np.concatenate(list(cell_batches(source, domain, secret_size=True)), axis=1)


def _columns(found: tuple[FittedMarginal, ...], measured: MeasuredTable, domain: TableDomain) -> list[Markup]:
    parts = []
    for each in found:
        if len(each.places) == 1:
            name = domain.names[each.places[0]]
            labels, fine = labels_of(domain.columns[name]), measured.trees.get(each.places[0])
            if fine is not None:
                firsts = fine.column.starts(fine.column.ranges_depth).tolist()
                labels = [f"from {labels[cell]}" if cell < fine.column.values else labels[cell] for cell in firsts]
            shown = bars(
                labels,
                [each.made, each.measured],
                caption=f"Share of each value; the noise has a standard deviation of {100.0 * each.deviation:.2g}%",
                heads=["records", "measured"],
            )
            parts.append(tag("div", tag("h3", f"Column {name}"), shown))
    return parts


def _pairs(found: tuple[FittedMarginal, ...], domain: TableDomain) -> list[Markup]:
    """Measured, synthetic and band, the least followed ones first."""
    pairs = sorted((each for each in found if len(each.places) == 2), key=lambda each: -each.excess)
    if not pairs:
        return []
    drawn = [_pair(each, domain) for each in pairs[:MOST_PICTURES]]
    left = len(pairs) - len(drawn)
    words = (
        "The line is the records' share of each joint cell, the band where a noisy count of exactly that share lies with "
        "probability 95%, and dots are the measured shares: about one in twenty lies outside where the records fit."
    )
    more = f" Of {len(pairs):,} pairs the {len(drawn)} that the records follow least are drawn." if left else ""
    return [tag("h3", "Pairs of columns"), tag("p", words + more), tag("div", *drawn, class_="plots")]


def _pair(each: FittedMarginal, domain: TableDomain) -> Markup:
    made, measured = each.made.ravel(), each.measured.ravel()
    shown = np.sort(np.argsort(-made, kind="stable")[:MOST_CELLS])
    first, second = (domain.names[j] for j in each.places)
    cells = f"{'All' if len(shown) == len(made) else f'The {len(shown)} largest of'} {len(made)} joint cells"
    top, drawing = _shares(made[shown], measured[shown], WIDE * each.deviation)
    title = f"{first} and {second}"
    description = (
        f"{cells}, {second} running fastest; the picture ends at {100.0 * top:.3g}%. Mean squared difference {each.misfit:.2f} "
        "times the noise's."
    )
    picture = tag("svg", *drawing, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=f"{title}. {description}")
    return tag("figure", picture, tag("figcaption", tag("strong", f"{title}."), " ", description))


def _shares(made: Floats, measured: Floats, reach: float) -> tuple[float, list[Markup]]:
    """The highest share that is drawn, and band, line, dots and the line of nothing: numbers only, no label."""
    top = float(max(np.max(made + reach), np.max(measured)))
    low = float(min(np.min(made - reach), np.min(measured), 0.0))
    at = np.linspace(0.0, WIDTH, len(made) + 1)

    def height(share: Floats) -> Floats:
        found: Floats = HEIGHT * (top - share) / (top - low)
        return found

    def steps(heights: Floats) -> str:
        return " ".join(f"V{y:.1f} H{x:.1f}" for x, y in zip(at[1:], heights, strict=True))

    upper, lower = height(made + reach), height(made - reach)
    back = " ".join(f"V{y:.1f} H{x:.1f}" for x, y in zip(at[-2::-1], lower[::-1], strict=True))
    middles = 0.5 * (at[1:] + at[:-1])
    dots = " ".join(f"M{x:.1f} {y:.1f} h0" for x, y in zip(middles, height(measured), strict=True))
    zero = float(height(np.zeros(1))[0])
    return top, [
        tag("path", d=f"M0 {upper[0]:.1f} {steps(upper)} {back} Z", style="fill: var(--series-1); opacity: 0.25"),
        tag("path", d=f"M0 {zero:.1f} H{WIDTH}", style="stroke: var(--grid); fill: none"),
        tag("path", d=f"M0 {height(made)[0]:.1f} {steps(height(made))}", style="stroke: var(--series-1); fill: none"),
        tag("path", d=dots, style="stroke: var(--series-2); stroke-width: 5; stroke-linecap: round; fill: none"),
    ]


def _worst(found: tuple[FittedMarginal, ...], domain: TableDomain) -> Markup:
    ordered = sorted(found, key=lambda each: -each.excess)[:MOST_LISTED]
    rows = [
        (
            ", ".join(domain.names[j] for j in each.places),
            f"{each.measured.size:,}",
            f"{100.0 * each.deviation:.2g}%",
            f"{each.misfit:.2f}",
            f"{each.excess:.1f}",
        )
        for each in ordered
    ]
    heads = ("columns", "cells", "noise on a share", "misfit", "deviations above 1")
    words = (
        "Misfit is the mean squared difference of records and measurements, in variances of the noise: 1 is what noise alone "
        "gives, more means that the records do not follow these columns."
    )
    caption = f"The {len(rows)} sets of columns that the records follow least, of {len(found):,} measured"
    return tag("div", tag("h3", "What fits worst"), tag("p", words), table(caption, heads, rows))


def _conclusions(measured: MeasuredTable, certificate: Certificate) -> Markup:
    """Means and shares with intervals, from the measurements alone."""
    synthetic = certificate["synthetic"]
    with unsaid():
        found = table_posterior(measured, run=Run(seed=0 if synthetic is None else int(synthetic["seed"])))
    rows = [
        (each.name, number(each.mean), number(each.deviation), f"{number(each.lower)} to {number(each.upper)}")
        for each in found.summary()[:MOST_FIGURES]
    ]
    left = len(found.figures) - len(rows)
    parts = [
        tag("p", FACE_VALUE if synthetic is None or synthetic["copies"] == 1 else COPIES),
        table("Of the population, from the measurements alone", ("", "estimate", "sd", "95% interval"), rows),
        cautions(found),
        tag("p", f"How: {found.attributes['how']}." + (f" {left:,} more: privurn infer." if left else "")),
    ]
    return section("What may be concluded", joined(parts), name="conclusions")


def _compared(data: Any, made: Codes | None, certificate: Certificate, measured: MeasuredTable, domain: TableDomain) -> Markup:
    """Confidential: how far the records are from the data, between shuffled columns and a resample of the data.

    Fine columns are compared by their ranges.
    """
    intro = "Computed from the confidential data: for the custodian only, covered by no guarantee."
    with open_table(data) as source:
        given = np.concatenate(list(cell_batches(source, domain, secret_size=certificate["n"] is None)), axis=1)
    if certificate["n"] not in (None, given.shape[1]):
        raise other_table(certificate["n"])
    if made is None:
        return section("Before and after", tag("p", intro), tag("p", "There are no records to compare."), name="before-after")
    rng = np.random.default_rng(0)
    given, made = measured.ranges(given), measured.ranges(made)
    tables = {
        "released records": made,
        "columns shuffled": shuffled(given, rng=rng),
        "a resample of the data": resampled(given, rng=rng),
    }
    found = {name: marginal_distances(given, each, measured.sizes) for name, each in tables.items()}
    rows = [
        (
            f"{apart.order} column{'s' if apart.order > 1 else ''}",
            *(f"{own[i].mean:.4f} (worst {own[i].worst:.4f})" for own in found.values()),
        )
        for i, apart in enumerate(found["released records"])
    ]
    named = [
        (", ".join(domain.names[j] for j in places), number(value, digits=3))
        for places, value in worst_pairs(given, made, measured.sizes, most=MOST_LISTED)
    ]
    return section(
        "Before and after",
        tag("p", intro),
        table("Total variation from the data, mean over all sets of columns; 0 is perfect", ("", *tables), rows),
        table("Pairs of columns that are furthest apart", ("columns", "total variation"), named),
        name="before-after",
    )
