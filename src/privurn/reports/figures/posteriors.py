"""Pictures of posteriors of releases: densities of functionals, a distribution function with its band, intervals."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import FormatError, ModelError
from privurn.inference.counts.results import CountPosterior, Picture
from privurn.reports.figures.drawing import COLOURS, GREY, blank, line, short
from privurn.tables.cells import cell_values, is_numeric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privurn.inference.draws import Summary

POINTS = 60
"""Places at which a distribution function is computed."""

MOST_PANELS = 12
PANELS_IN_A_ROW = 3
FEW_VALUES = 25
"""Draws with fewer distinct values than this are shown as bars."""


def posterior_picture(
    found: CountPosterior, *, kind: Picture = "density", level: float = 0.95, naive: bool = False
) -> "Figure":
    """One of the three; `naive` adds the analysis that takes the release for the data."""
    if kind == "density":
        return posterior_densities(found, level=level, naive=naive)
    if kind == "cdf":
        return cdf_band(found, level=level, naive=naive)
    if kind == "intervals":
        return posterior_intervals(found, level=level, naive=naive)
    raise FormatError(f"the picture {kind!r} is not known.", hint="density, cdf, intervals, n or traces")


def posterior_densities(found: CountPosterior, *, level: float = 0.95, naive: bool = False) -> "Figure":
    """Posterior density of each functional, its interval below, and the released figure as a line."""
    names = found.names[:MOST_PANELS]
    columns = min(PANELS_IN_A_ROW, len(names))
    rows = -(-len(names) // columns)
    figure, axes = _panels(_title(found), rows, columns)
    released = found.face_value
    beside = found.naive() if naive else None
    summaries = {each.name: each for each in found.summary(level=level)}
    for i, name in enumerate(names):
        panel = axes[i]
        _density(panel, found.draws.flat(name), COLOURS[0], "posterior")
        if beside is not None:
            _density(panel, beside.flat(name), COLOURS[1], "naive")
        each = summaries[name]
        panel.plot([each.lower, each.upper], [0.0, 0.0], color=COLOURS[0], linewidth=5, solid_capstyle="butt")
        panel.axvline(released[name], color=GREY, linestyle=":", linewidth=1.5, label="released")
        panel.set(xlabel=short(name), yticks=[])
        panel.set_ylim(bottom=0.0)
    for panel in axes[len(names) :]:
        panel.set_visible(False)
    axes[0].legend(fontsize=8)
    return figure


def cdf_band(found: CountPosterior, *, level: float = 0.95, column: str | None = None, naive: bool = False) -> "Figure":
    """Posterior mean of a distribution function with pointwise equal-tailed intervals, and that of the released table.

    `naive` adds the band that taking the release for the data would give.
    """
    name, places = _places(found, column)
    asked = [f"cdf({_written(name)}, {value!r})" for value in places.tolist()]
    curve = found.ask(asked)
    figure, axes = blank(_title(found), width=7.0)
    stepped = None if _in_bins(found, name) else "post"
    style = {"drawstyle": "steps-post"} if stepped else {}
    for i, words, drawn in [(0, "posterior", curve.draws), *([(2, "naive", curve.naive())] if naive else [])]:
        draws = np.column_stack([drawn.flat(each) for each in asked])
        draws = draws[~np.isnan(draws).any(axis=1)]  # of a sample without records
        if not len(draws):
            raise ModelError("no draw holds a record, so there is no distribution function.", hint="Ask for the population")
        low, high = np.quantile(draws, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
        band = f"{words}: {level:.0%} of the draws, at each place"
        axes.fill_between(places, low, high, step=stepped, color=COLOURS[i], alpha=0.25, label=band)
        axes.plot(places, draws.mean(axis=0), **line(i), **style, label=f"{words} mean")
    released = curve.face_value
    axes.plot(places, [released[each] for each in asked], **line(1), **style, label="released table")
    axes.set(xlabel=short(name), ylabel="share at or below", ylim=(0.0, 1.0))
    axes.legend(fontsize=8)
    return figure


def posterior_intervals(found: CountPosterior, *, level: float = 0.95, naive: bool = False) -> "Figure":
    """Each functional's interval beside the released figure and, on request, the naive interval; one scale for each."""
    summaries = [each for each in found.summary(level=level) if each.name in found.names][: 2 * MOST_PANELS]
    beside = found.naive().summary([each.name for each in summaries], level=level) if naive else ()
    released = found.face_value
    figure, axes = _panels(_title(found), len(summaries), 1, height=0.7)
    for i, each in enumerate(summaries):
        panel = axes[i]
        _bar(panel, each, 1.0, COLOURS[0], "posterior")
        if beside:
            _bar(panel, beside[i], 0.0, COLOURS[1], "naive")
        panel.plot([released[each.name]], [0.5], "D", color=GREY, markersize=5, label="released")
        panel.set(yticks=[], ylim=(-0.6, 1.6))
        panel.set_ylabel(short(each.name), rotation=0, ha="right", va="center")
    axes[0].legend(fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def _panels(title: str, rows: int, columns: int, *, height: float = 2.6) -> "tuple[Figure, list[Any]]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * columns if columns > 1 else 6.4, 1.0 + height * rows), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(rows, columns)).reshape(-1))
    for each in axes:
        each.grid(alpha=0.3)
    figure.suptitle(title, fontsize=11)
    return figure, axes


def _title(found: CountPosterior) -> str:
    words = {"population": "the population", "sample": "the confidential sample", "urn": "the urn's limit"}
    return f"Posterior of {words[found.of]}"


def _bar(panel: Any, each: "Summary", height: float, colour: str, label: str) -> None:
    panel.plot([each.lower, each.upper], [height, height], color=colour, linewidth=3, label=label)
    panel.plot([each.mean], [height], "o", color=colour, markersize=5)


def _density(panel: Any, values: NDArray[Any], colour: str, label: str) -> None:
    """A smooth curve, or bars where the draws take few values (quantiles on a coarse grid)."""
    values = values[np.isfinite(values)].astype(np.float64)
    if len(values) == 0:
        return
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < FEW_VALUES:
        panel.vlines(distinct, 0.0, counts / counts.sum(), color=colour, linewidth=4, alpha=0.7, label=label)
        return
    from scipy.stats import gaussian_kde

    low, high = np.quantile(values, [0.001, 0.999])
    places = np.linspace(low, high, 200)
    panel.plot(places, gaussian_kde(values)(places), color=colour, linewidth=1.8, label=label)


def _places(found: CountPosterior, column: str | None) -> tuple[str, NDArray[np.float64]]:
    """The column, and at most POINTS of its numbers."""
    domain = found.observed[0].domain
    numeric = [] if domain is None else [name for name, each in domain.columns.items() if is_numeric(each)]
    name = column if column is not None else numeric[0] if numeric else None
    if domain is None or name not in numeric:
        raise ModelError("a distribution function needs a column of numbers.", hint="kind='density' or kind='intervals'")
    own = domain.columns[name]
    if _in_bins(found, name):
        edges = np.array([float(edge) for edge in getattr(own, "edges", ())])
        return name, np.unique(np.concatenate([edges, np.linspace(edges[0], edges[-1], max(2, POINTS - len(edges)))]))
    values = cell_values(own)[: own.n_values]
    return name, values[np.unique(np.linspace(0, len(values) - 1, POINTS).round().astype(int))]


def _in_bins(found: CountPosterior, name: str) -> bool:
    """Whether the column's numbers are spread out within bins."""
    domain = found.observed[0].domain
    return domain is not None and domain.columns[name].kind == "bins" and found.job.within == "uniform"


def _written(name: str) -> str:
    return f"'{name}'" if "'" not in name else f'"{name}"'
