"""What all pictures share: an empty figure, how a curve looks, points of a curve, plain numbers on an axis, short names."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.drawing.palette import STYLES, colour
from privurn.extras import need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFIDENTIAL = "CONFIDENTIAL"
"""In the title of every picture of figures that were computed from the confidential data."""

SMALLEST_SHOWN = 1e-12
"""Where a logarithmic axis of deltas ends."""

LONGEST_NAME = 36

Numbers = Sequence[float] | NDArray[np.float64]


def blank(
    title: str,
    *,
    rows: int = 1,
    columns: int = 1,
    width: float = 6.4,
    height: float = 4.4,
    same_x: bool = False,
    same_y: bool = False,
) -> tuple["Figure", Any]:
    """A figure with a title, and its axes: one, or an array of them side by side or above each other."""
    need("plots", what="pictures")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, sharex=same_x, sharey=same_y)
    for each in np.ravel(axes):
        each.grid(alpha=0.3)
    figure.suptitle(title, fontsize=11)
    return figure, axes


def line(i: int) -> dict[str, Any]:
    """Look of the i-th curve."""
    return {"color": colour(i), "linestyle": STYLES[i % len(STYLES)], "linewidth": 1.8}


def short(name: str) -> str:
    """A name as a legend can show it: the end of a long one, no formulas, and no leading underscore, which would hide it."""
    shown = name if len(name) <= LONGEST_NAME else "…" + name[1 - LONGEST_NAME :]
    return (" " if shown.startswith("_") else "") + shown.replace("$", r"\$")


def log_curve(
    value: Callable[[float], float], low: float, high: float, *, least: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points of a positive curve, closer where its logarithm bends; what is below `least` is drawn as `least`."""

    def at(x: float) -> float:
        return math.log(max(value(x), least))

    points = {float(x): at(float(x)) for x in np.linspace(low, high, 17)}
    pending = [pair for pair in zip(points, list(points)[1:], strict=False) if pair[0] < pair[1]]
    smallest = (high - low) / 1024.0
    while pending:
        left, right = pending.pop()
        middle = 0.5 * (left + right)
        points[middle] = at(middle)
        bent = abs(points[middle] - 0.5 * (points[left] + points[right])) > 0.02
        if bent and right - left > smallest:
            pending += [(left, middle), (middle, right)]
    x = np.array(sorted(points))
    return x, np.exp([points[each] for each in x.tolist()])


def plain_numbers(axis: Any) -> None:
    """1,000 rather than 1e3."""
    from matplotlib.ticker import StrMethodFormatter

    axis.set_major_formatter(StrMethodFormatter("{x:,g}"))


def few_numbers(axis: Any) -> None:
    """On a linear axis: few enough that long numbers stand apart."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axis.set_major_locator(MaxNLocator(4))
    axis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))


def plain_ticks(axis: Any, *, decades: bool = False) -> None:
    """On a logarithmic axis: 1, 2, 5 of each decade as plain numbers, or the decades alone."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0,) if decades else (1.0, 2.0, 5.0)))
    plain_numbers(axis)
    axis.set_minor_formatter(NullFormatter())
