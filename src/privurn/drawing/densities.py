"""Pictures of distributions: a density with its band, a distribution function with its band, draws of several numbers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.drawing.figure import blank, few_numbers, line, short
from privurn.drawing.intervals import MOST_PANELS, Interval
from privurn.drawing.palette import GREY, colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS_IN_A_ROW = 3
FEW_VALUES = 25
"""Draws with fewer distinct values than this are shown as bars."""


def density_picture(
    grid: ArrayLike,
    *,
    mean: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    level: float,
    others: Mapping[str, ArrayLike] | None = None,
    title: str = "Posterior density of the confidential values",
    xlabel: str = "value",
) -> "Figure":
    """A posterior mean density with its pointwise band, and other curves on the same grid beside it."""
    x = np.asarray(grid, np.float64)
    figure, axes = blank(title)
    axes.fill_between(
        x, np.asarray(lower), np.asarray(upper), color=colour(0), alpha=0.25, linewidth=0.0, label=f"{level:.0%} band"
    )
    axes.plot(x, np.asarray(mean), **line(0), label="posterior mean")
    for i, (label, curve) in enumerate((others or {}).items(), start=1):
        axes.plot(x, np.asarray(curve), **line(i), label=short(label))
    axes.set(xlabel=xlabel, ylabel="density", xlim=(float(x[0]), float(x[-1])))
    axes.set_ylim(bottom=0.0)
    few_numbers(axes.xaxis)
    axes.legend()
    return figure


def cdf_picture(
    places: NDArray[np.float64],
    curves: Mapping[str, NDArray[np.float64]],
    *,
    released: Sequence[float],
    level: float,
    steps: bool,
    name: str,
    title: str,
) -> "Figure":
    """Mean of drawn distribution functions (draws, places) with pointwise equal-tailed intervals, by analysis.

    `released` is that of the released table; with `steps` the functions jump at the places and are constant between them.
    """
    figure, axes = blank(title, width=7.0)
    style = {"drawstyle": "steps-post"} if steps else {}
    for i, (words, draws) in zip((0, 2, 3, 4, 5), curves.items(), strict=False):  # 1 is the released table's
        low, high = np.quantile(draws, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
        band = {"color": colour(i), "alpha": 0.25, "label": f"{words}: {level:.0%} of the draws, at each place"}
        axes.fill_between(places, low, high, step="post" if steps else None, **band)
        axes.plot(places, draws.mean(axis=0), **line(i), **style, label=f"{words} mean")
    axes.plot(places, released, **line(1), **style, label="released table")
    axes.set(xlabel=short(name), ylabel="share at or below", ylim=(0.0, 1.0))
    few_numbers(axes.xaxis)
    axes.legend(fontsize=8)
    return figure


def density_panels(
    draws: Mapping[str, Mapping[str, NDArray[Any]]], intervals: Sequence[Interval], *, released: Mapping[str, float], title: str
) -> "Figure":
    """Density of the draws of each number by each analysis (`draws`: analysis, then number), one panel a number.

    Below each is the interval of the first analysis, and the released figure is a line.
    """
    shown = intervals[:MOST_PANELS]
    columns = min(PANELS_IN_A_ROW, len(shown))
    rows = -(-len(shown) // columns)
    width = 3.2 * columns if columns > 1 else 6.4
    figure, axes = blank(title, rows=rows, columns=columns, width=width, height=1.0 + 2.6 * rows)
    panels = np.ravel(axes)
    for panel, each in zip(panels, shown, strict=False):
        for i, (analysis, own) in enumerate(draws.items()):
            _density(panel, own[each.name], colour(i), analysis)
        panel.plot([each.lower, each.upper], [0.0, 0.0], color=colour(0), linewidth=5, solid_capstyle="butt")
        panel.axvline(released[each.name], color=GREY, linestyle=":", linewidth=1.5, label="released")
        panel.set(xlabel=short(each.name), yticks=[])
        panel.set_ylim(bottom=0.0)
        few_numbers(panel.xaxis)
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    panels[0].legend(fontsize=8)
    return figure


def _density(panel: Any, values: NDArray[Any], shade: str, label: str) -> None:
    """A smooth curve, or bars where the draws take few values (quantiles on a coarse grid)."""
    values = values[np.isfinite(values)].astype(np.float64)
    if len(values) == 0:
        return
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < FEW_VALUES:
        panel.vlines(distinct, 0.0, counts / counts.sum(), color=shade, linewidth=4, alpha=0.7, label=label)
        return
    from scipy.stats import gaussian_kde

    low, high = np.quantile(values, [0.001, 0.999])
    places = np.linspace(low, high, 200)
    panel.plot(places, gaussian_kde(values)(places), color=shade, linewidth=1.8, label=label)
