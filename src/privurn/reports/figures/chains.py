"""Pictures of posterior draws: chains over time, whole-number variables, densities with bands, intervals side by side."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import ModelError
from privurn.inference.draws import Draws, Summary
from privurn.reports.figures.drawing import COLOURS, blank, line, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_POINTS = 2000
"""Points of a trace; longer chains are shown at every so many draws."""

MOST_TRACES = 12


def trace_picture(draws: Draws, names: Sequence[str] | None = None) -> "Figure":
    """Each chain's path for each named variable (numbers only), one below the other: chains that mix look like one band."""
    wanted = [name for name in draws.variables if draws[name].ndim == 2] if names is None else list(names)
    rows = [(label, values) for name in wanted for label, values in _numbers(draws, name)][:MOST_TRACES]
    if not rows:
        raise ModelError("there is no variable to show.", hint=f"There are: {', '.join(draws.variables)}")
    figure, axes = blank("Chains over time", rows=len(rows), height=1.2 + 1.5 * len(rows))
    step = max(1, draws.n_draws // MOST_POINTS)
    for each, (label, values) in zip(np.atleast_1d(axes), rows, strict=True):
        for i, chain in enumerate(values):
            each.plot(np.arange(0, draws.n_draws, step), chain[::step], color=COLOURS[i % len(COLOURS)], linewidth=0.6)
        each.set_ylabel(short(label), fontsize=9)
    np.atleast_1d(axes)[-1].set_xlabel("draw")
    return figure


def _numbers(draws: Draws, name: str) -> list[tuple[str, NDArray[Any]]]:
    values = draws[name]
    labels = [
        each.name for each in Draws(variables={name: values}, markov=False, dims=draws.dims, coords=draws.coords).summary()
    ]
    return list(zip(labels, (values[(..., *index)] for index in np.ndindex(values.shape[2:])), strict=True))


def whole_number_picture(values: ArrayLike, *, name: str, marks: Mapping[str, float] | None = None) -> "Figure":
    """Posterior probability of each value of a whole-number variable; bars are grouped where there are very many values."""
    numbers = np.asarray(values).ravel()
    lowest, highest = int(numbers.min()), int(numbers.max())
    width = max(1, -(-(highest - lowest + 1) // 60))
    edges = np.arange(lowest, highest + width + 1, width) - 0.5
    heights, _ = np.histogram(numbers, bins=edges)
    figure, axes = blank(f"Posterior of {name}")
    axes.bar(edges[:-1] + width / 2, heights / len(numbers), width=0.9 * width, color=COLOURS[0], alpha=0.8)
    for i, (label, place) in enumerate((marks or {}).items(), start=1):
        axes.axvline(place, **line(i), label=short(label))
    axes.set(xlabel=name, ylabel="probability" if width == 1 else f"probability of {width} values together")
    if marks:
        axes.legend()
    return figure


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
        x, np.asarray(lower), np.asarray(upper), color=COLOURS[0], alpha=0.25, linewidth=0.0, label=f"{level:.0%} band"
    )
    axes.plot(x, np.asarray(mean), **line(0), label="posterior mean")
    for i, (label, curve) in enumerate((others or {}).items(), start=1):
        axes.plot(x, np.asarray(curve), **line(i), label=short(label))
    axes.set(xlabel=xlabel, ylabel="density", xlim=(float(x[0]), float(x[-1])))
    axes.set_ylim(bottom=0.0)
    axes.legend()
    return figure


def interval_picture(groups: Mapping[str, Sequence[Summary]], *, title: str = "Intervals side by side") -> "Figure":
    """Means and intervals of the same numbers by several analyses: one panel for each number, one line for each analysis."""
    names = list(dict.fromkeys(each.name for summaries in groups.values() for each in summaries))
    if not names:
        raise ModelError("there is no interval to show.")
    figure, axes = blank(title, columns=len(names), width=1.4 + 2.6 * len(names), height=1.6 + 0.4 * len(groups))
    for column, (each, name) in enumerate(zip(np.atleast_1d(axes), names, strict=True)):
        for row, (group, summaries) in enumerate(groups.items()):
            for summary in summaries:
                if summary.name == name:
                    style = {"color": COLOURS[row % len(COLOURS)], "linewidth": 2.0}
                    each.plot([summary.lower, summary.upper], [row, row], **style, label=short(group))
                    each.plot([summary.mean], [row], "o", color=style["color"])
        each.set_title(short(name), fontsize=10)
        each.set_yticks(range(len(groups)), [short(group) for group in groups] if column == 0 else [""] * len(groups))
        each.set_ylim(len(groups) - 0.5, -0.5)
    return figure


def together_picture(probabilities: ArrayLike, *, order: ArrayLike | None = None) -> "Figure":
    """Who is with whom: the matrix of co-clustering probabilities, rows sorted by `order` (for example a point clustering)."""
    matrix = np.asarray(probabilities, np.float64)
    places = np.arange(len(matrix)) if order is None else np.argsort(np.asarray(order), kind="stable")
    figure, axes = blank("Probability of being in one cluster", width=5.4, height=4.8)
    axes.grid(visible=False)
    image = axes.imshow(matrix[np.ix_(places, places)], vmin=0.0, vmax=1.0, cmap="Blues", interpolation="nearest")
    figure.colorbar(image, ax=axes, shrink=0.8)
    axes.set(xlabel="record", ylabel="record", xticks=[], yticks=[])
    return figure
