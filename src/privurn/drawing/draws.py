"""Pictures of posterior draws: chains over time, whole-number variables, who is in one cluster with whom."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.drawing.figure import blank, line, short
from privurn.drawing.palette import colour
from privurn.errors import ModelError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_POINTS = 2000
"""Points of a trace; longer chains are shown at every so many draws."""

MOST_TRACES = 12


def trace_picture(numbers: Iterable[tuple[str, NDArray[Any]]]) -> "Figure":
    """Each chain's path for each number, (chain, draw), one below the other: chains that mix look like one band."""
    rows = list(numbers)[:MOST_TRACES]
    if not rows:
        raise ModelError("there is no variable to show.")
    figure, axes = blank("Chains over time", rows=len(rows), height=1.2 + 1.5 * len(rows), same_x=True)
    panels = np.ravel(axes)
    for panel, (label, chains) in zip(panels, rows, strict=True):
        n_draws = chains.shape[1]
        step = max(1, n_draws // MOST_POINTS)
        for i, chain in enumerate(chains):
            panel.plot(np.arange(0, n_draws, step), chain[::step], color=colour(i), linewidth=0.6)
        panel.set_ylabel(short(label), fontsize=9)
    panels[-1].set_xlabel("draw")
    return figure


def whole_number_picture(values: ArrayLike, *, name: str, marks: Mapping[str, float] | None = None) -> "Figure":
    """Posterior probability of each value of a whole-number variable; bars are grouped where there are very many values."""
    numbers = np.asarray(values).ravel()
    lowest, highest = int(numbers.min()), int(numbers.max())
    width = max(1, -(-(highest - lowest + 1) // 60))
    edges = np.arange(lowest, highest + width + 1, width) - 0.5
    heights, _ = np.histogram(numbers, bins=edges)
    figure, axes = blank(f"Posterior of {name}")
    axes.bar(edges[:-1] + width / 2, heights / len(numbers), width=0.9 * width, color=colour(0), alpha=0.8)
    for i, (label, place) in enumerate((marks or {}).items(), start=1):
        axes.axvline(place, **line(i), label=short(label))
    axes.set(xlabel=name, ylabel="probability" if width == 1 else f"probability of {width} values together")
    if marks:
        axes.legend()
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
