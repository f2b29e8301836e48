"""The released distributions, alone for everybody, or beside the confidential ones for the custodian."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Bins, Dates
from privurn.privacy.certificate import Certificate
from privurn.reports.comparison import distances, joint
from privurn.reports.comparison.samples import Sample, cell_values, grouped, is_numeric
from privurn.reports.html.markup import Markup, joined, number, percent, section, table, tag
from privurn.reports.html.pictures import bars, density_plot
from privurn.reports.html.released import MISSING, Cells, Column, labels_of

FEW_CELLS = 12
"""Up to this many cells numbers are drawn as bars."""

MOST_BINS = 20
"""Total variation of numbers is taken on this many equal runs of cells, or on the cells where there are no more."""

PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)
QUANTILES = ("5% quantile", "lower quartile", "median", "upper quartile", "95% quantile")

Table = Cells | dict[str | None, float]


def released_columns(released: Table, certificate: Certificate) -> Markup:
    """Public: pictures and summaries of the released file, which anyone who has it can compute."""
    intro = "Computed from the released file alone, so anyone who has the file can do the same."
    if not isinstance(released, Cells):
        labels = sorted(released, key=lambda label: (-released[label], str(label)))
        shares = np.array([released[label] for label in labels])
        body = [bars(_named(labels), [shares], caption="Share of each label", heads=["released"])]
        return section("The released data", tag("p", intro), _headed(certificate["domain"]["column"], body), name="data")
    parts = []
    for i, name in zip(count(1), released.domain.columns):
        own = released.column(name)
        body = [_picture([own], heads=["released"], name=f"released-{i}")]
        if is_numeric(own.domain):
            body.append(table(f"Summary of the released numbers{_midpoints(own)}", ("", "released"), _summary(own)))
        parts.append(_headed(name, body))
    return section("The released data", tag("p", intro), *parts, name="data")


def compared_columns(released: Table, data: Table, certificate: Certificate) -> Markup:
    """Confidential: pictures, summaries and distances of the release beside the data."""
    intro = "Computed from the confidential data: for the custodian only, covered by no guarantee."
    if not isinstance(released, Cells) or not isinstance(data, Cells):
        return section(
            "Before and after",
            tag("p", intro),
            _headed(certificate["domain"]["column"], _compared_labels(released, data, certificate["domain"])),  # type: ignore[arg-type]
            name="before-after",
        )
    parts = [
        _headed(name, _compared_cells(data.column(name), released.column(name), name=f"both-{i}"))
        for i, name in zip(count(1), data.domain.columns)
    ]
    if len(data.domain.columns) > 1:
        parts.append(_compared_pairs(released, data))
    return section("Before and after", tag("p", intro), *parts, name="before-after")


def _headed(column: str, body: list[Markup]) -> Markup:
    return tag("div", tag("h3", f"Column {column}"), joined(body))


def _named(labels: list[str | None]) -> list[str]:
    return [MISSING if label is None else label for label in labels]


def _picture(columns: list[Column], *, heads: list[str], name: str) -> Markup:
    """Bars where cells are few or no numbers, else densities; the release comes first."""
    domain = columns[0].domain
    samples = [each.sample() for each in columns]
    if domain.n_values <= FEW_CELLS or any(each is None for each in samples):
        return bars(labels_of(domain), [each.shares for each in columns], caption="Share of each value", heads=heads)
    values = cell_values(domain)[: domain.n_values]
    return density_plot(
        {head: each for head, each in zip(heads, samples, strict=True) if each is not None},
        gap=float(np.diff(values).min()),
        name=name,
        title="Density" if len(heads) == 1 else "Density, released and original",
        description="Smoothed, so the ends look softer than they are.",
    )


def _summary(column: Column) -> list[tuple[str, str]]:
    """Mean, standard deviation, quantiles, and the shares of what is no number."""
    sample = column.sample()
    rows: list[tuple[str, str]] = []
    if sample is not None:
        rows += [("mean", _short(distances.mean(sample))), ("standard deviation", _short(distances.standard_deviation(sample)))]
        found = distances.quantiles(sample, probabilities=PROBABILITIES)
        rows += [(name, _short(float(value))) for name, value in zip(QUANTILES, found, strict=True)]
    edges = column.shares[column.domain.n_values :]
    rows += [(f"share {label}", percent(float(share))) for label, share in zip(_edges(column), edges, strict=True)]
    return rows


def _midpoints(column: Column) -> str:
    if isinstance(column.domain, Dates):
        return ", a date as days since 1970-01-01"
    return ", a bin as its midpoint" if isinstance(column.domain, Bins) else ""


def _edges(column: Column) -> list[str]:
    return labels_of(column.domain)[column.domain.n_values :]


def _short(value: float) -> str:
    return number(value, digits=5)


def _compared_cells(data: Column, released: Column, *, name: str) -> list[Markup]:
    body = [_picture([released, data], heads=["released", "original"], name=name)]
    before, after = data.sample(), released.sample()
    apart = [("total variation" + _bins_words(data), number(_total_variation(data, released), digits=3))]
    if before is not None and after is not None:
        apart = [*_distances(before, after), *apart]
        shown = dict(_summary(released))
        rows = [(row, shown[row], own) for row, own in _summary(data)]
        body.append(table(f"Summaries{_midpoints(data)}", ("", "released", "original"), rows))
    body.append(table("Distances between the two; 0 is perfect", ("", "distance"), apart))
    return body


def _distances(before: Sample, after: Sample) -> list[tuple[str, str]]:
    return [
        (
            "W1: how far records must move on average, in the column's unit",
            number(distances.wasserstein(before, after), digits=3),
        ),
        ("largest difference of the distribution functions", number(distances.kolmogorov(before, after), digits=3)),
    ]


def _bins_words(column: Column) -> str:
    if is_numeric(column.domain) and column.domain.n_values > MOST_BINS:
        return f" on {MOST_BINS} equal runs of cells"
    return ""


def _total_variation(a: Column, b: Column) -> float:
    """Half of the summed differences; many cells of numbers are taken together, or chance alone would fill it."""
    domain = a.domain
    place = np.arange(domain.size)
    if is_numeric(domain) and domain.n_values > MOST_BINS:
        place[: domain.n_values] = np.arange(domain.n_values) * MOST_BINS // domain.n_values
        place[domain.n_values :] += MOST_BINS - domain.n_values
    return 0.5 * float(np.abs(grouped(place, a.shares - b.shares)).sum())


def _compared_labels(
    released: Mapping[str | None, float], data: Mapping[str | None, float], domain: Mapping[str, Any]
) -> list[Markup]:
    """Labels that were not named count as "other" where the release has such a label."""
    own: dict[str | None, float] = {}
    named = set(domain["labels"]) if "labels" in domain else None
    for label, share in data.items():
        kept = label if named is None or label in named else str(domain["other"])
        own[kept] = own.get(kept, 0.0) + share
    labels = sorted({*released, *own}, key=lambda label: (-own.get(label, 0.0), str(label)))
    shares: list[NDArray[np.float64]] = [np.array([each.get(label, 0.0) for label in labels]) for each in (released, own)]
    apart = 0.5 * float(np.abs(shares[0] - shares[1]).sum())
    return [
        bars(_named(labels), shares, caption="Share of each label", heads=["released", "original"]),
        table("Distances between the two; 0 is perfect", ("", "distance"), [("total variation", number(apart, digits=3))]),
    ]


def _compared_pairs(released: Cells, data: Cells) -> Markup:
    """How well pairs of columns are kept."""
    before, after = data.counts(), released.counts()
    apart = joint.pairwise_total_variation(before, after, domain=data.domain)
    kept = [joint.correlations(each, domain=data.domain) for each in (after, before)]
    rows = []
    for (first, second), value in apart.items():
        numbers = [_correlation(each.get((first, second))) for each in kept] if kept[0] else []
        rows.append((f"{first} and {second}", number(value, digits=3), *numbers))
    heads = ["pair", "total variation", *(["correlation, released", "correlation, original"] if kept[0] else [])]
    return tag("div", tag("h3", "Pairs of columns"), table("Joint distributions of two columns", heads, rows))


def _correlation(value: float | None) -> str:
    return "none" if value is None or np.isnan(value) else f"{value:.3f}"
