"""What all pictures share: an empty figure, colours, a curve on a logarithmic axis, and the file it goes to."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import FormatError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")
GREY = "#6E6E6E"
FORMATS = ("png", "svg", "pdf")
SMALLEST_SHOWN = 1e-12
"""Where a logarithmic axis of deltas ends."""

LONGEST_NAME = 36

Numbers = Sequence[float] | NDArray[np.float64]


def save(figure: "Figure", path: str | Path) -> Path:
    """Write a figure as PNG, SVG or PDF, by the ending of the name; the same figure gives the same bytes."""
    from io import BytesIO

    from matplotlib import rc_context

    target = Path(path)
    suffix = check_suffix(target)
    undated = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    buffer = BytesIO()  # drawn in full before the file is touched
    with rc_context({"svg.hashsalt": "privurn"}):
        figure.savefig(buffer, format=suffix, dpi=150, metadata=undated[suffix])
    try:
        target.write_bytes(buffer.getvalue())
    except OSError:
        raise FormatError(f"the picture {str(target)!r} cannot be written.", hint="Does its folder exist?") from None
    return target


def check_suffix(path: str | Path) -> str:
    """The format that a picture's name asks for."""
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise FormatError(f"the kind of picture {str(path)!r} is not known.", hint="Names must end in .png, .svg or .pdf")
    return suffix


def blank(title: str, *, rows: int = 1, columns: int = 1, width: float = 6.4, height: float = 4.4) -> tuple["Figure", Any]:
    """A figure with a title, and its axes: one, or an array of them side by side or above each other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, sharex=rows > 1)
    for each in np.atleast_1d(axes):
        each.grid(alpha=0.3)
    figure.suptitle(title, fontsize=11)
    return figure, axes


def line(i: int) -> dict[str, Any]:
    """Look of the i-th curve."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": STYLES[i % len(STYLES)], "linewidth": 1.8}


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


def plain_ticks(axis: Any) -> None:
    """1, 2, 5 of each decade as plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axis.set_minor_formatter(NullFormatter())


def cells_text(number: int) -> str:
    """Size of a public domain in words."""
    return "1 cell" if number == 1 else f"{number:,} cells"
