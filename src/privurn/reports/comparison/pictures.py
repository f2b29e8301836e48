"""Pictures of a comparison: releases drawn over the data, and box plots of their errors. All confidential.

Every function returns a matplotlib Figure of its own, without pyplot and its global state. Each mechanism keeps its colour in
every picture of the same comparison.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from privurn.drawing.figure import CONFIDENTIAL, blank, plain_numbers, plain_ticks
from privurn.drawing.palette import EDGE, FAINT, GREY, INK, PALE, SOFT, colour
from privurn.errors import FormatError, ModelError
from privurn.reports.comparison.candidates import NO_CERTIFICATE
from privurn.reports.comparison.results import Comparison, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def density_overlays(comparison: Comparison, *, column: str | None = None) -> "Figure":
    """One panel for each mechanism: its releases (median and middle 80% of the runs) over the data."""
    names = [axis.column for axis in comparison.axes]
    if column is not None and column not in names:
        raise FormatError(f"the comparison has no column {column!r}.", hint=f"It has {', '.join(names)}")
    at = 0 if column is None else names.index(column)
    axis, data = comparison.axes[at], comparison.data_curves[at]
    shown = [*comparison.results, *comparison.uncertified]
    wide = min(3 if len(shown) <= 9 else 4, len(shown))
    high = -(-len(shown) // wide)
    data_words = "bars: the data; points: releases" if axis.labels else "dashed: the data; coloured: releases"
    title = (
        f"{CONFIDENTIAL}: {axis.column} and its releases at {_guarantee(comparison)}\n"
        f"{data_words}, median and middle 80% of {_runs(comparison)}"
    )
    size = {"width": max(6.4, 3.6 * wide), "height": 2.7 * high + 1.1}
    figure, grid = blank(title, rows=high, columns=wide, same_x=True, same_y=True, **size)
    panels = np.ravel(grid)
    x = np.array(axis.at)
    for i, (panel, result) in enumerate(zip(panels, shown, strict=False)):
        low, middle, high_end = result.curves[at]
        if axis.labels is None:
            panel.fill_between(x, low, high_end, color=colour(i), alpha=0.3, linewidth=0)
            panel.plot(x, middle, color=colour(i), linewidth=2.6)
            panel.plot(x, data, color=INK, linewidth=0.9, linestyle=(0, (5, 2)))
        else:
            panel.bar(x, data, color=SOFT, edgecolor=EDGE, width=0.8)
            panel.errorbar(x, middle, yerr=[middle - low, high_end - middle], fmt="o", color=colour(i), markersize=4, capsize=3)
        panel.set_title(_titled(comparison, result), fontsize=9)
        if _uncertified(comparison, result):
            panel.set_facecolor(PALE)
        panel.margins(x=0.02)
        panel.tick_params(labelsize=8)
    top = max(float(np.max(data)), *(float(result.curves[at].max()) for result in shown))
    panels[0].set_ylim(0.0, 1.05 * top)
    for panel in panels[len(shown) :]:
        panel.set_axis_off()
    _label_x(panels, axis, used=len(shown), wide=wide)
    for panel in panels[::wide]:
        panel.set_ylabel("share" if axis.labels else "density")
    return figure


def error_boxes(comparison: Comparison, *, metric: str | None = None) -> "Figure":
    """Box plots of one metric over the runs, the best mechanism on top and a plain sample without privacy below.

    Boxes hold the middle half of the runs, whiskers reach to the 5% and 95% points.
    """
    names = [each.name for each in comparison.metrics]
    if metric is not None and metric not in names:
        raise FormatError(f"the comparison has no metric {metric!r}.", hint=f"It has {', '.join(names)}")
    which = 0 if metric is None else names.index(metric)
    shown_rows = [*comparison.results, *comparison.uncertified]
    rows = [*shown_rows, comparison.plain]
    errors = [each.errors[:, which] for each in rows]
    errors = [each[~np.isnan(each)] for each in errors]
    if not any(len(each) for each in errors):
        raise ModelError("nothing was measured.")
    height = 0.55 * len(rows) + 0.2 * len(comparison.uncertified) + 1.7
    shown = comparison.metrics[which]
    title = f"{CONFIDENTIAL}: {shown.title} between releases and data\n{_guarantee(comparison)}, {_runs(comparison)}"
    figure, axes = blank(title, width=7.6, height=height)
    drawn = axes.boxplot(
        errors,
        orientation="horizontal",
        whis=(5, 95),
        widths=0.6,
        patch_artist=True,
        medianprops={"color": INK, "linewidth": 1.0},
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": GREY},
    )
    shades = [*(colour(i) for i in range(len(shown_rows))), FAINT]
    for box, shade, row in zip(drawn["boxes"], shades, rows, strict=True):
        box.set(facecolor=shade, edgecolor=shade, alpha=0.75)
        if _uncertified(comparison, row):
            box.set(facecolor="none", hatch="////")
    labels = [_titled(comparison, each) for each in shown_rows]
    axes.set_yticks(range(1, len(rows) + 1), [*labels, f"plain sample, not private\n{comparison.plain.output}"])
    axes.tick_params(axis="y", labelsize=8)
    axes.invert_yaxis()
    positive = np.concatenate([each[each > 0] for each in errors])
    medians = [float(np.median(each)) for each in errors if len(each) and np.median(each) > 0]
    if len(medians) > 1 and max(medians) > 20.0 * min(medians) and len(positive) == sum(map(len, errors)):
        axes.set_xscale("log")
        plain_ticks(axes.xaxis, decades=math.log10(positive.max() / positive.min()) > 3.0)
    else:
        axes.set_xlim(left=0.0)
        plain_numbers(axes.xaxis)
    axes.grid(visible=False, axis="y")
    axes.set_axisbelow(True)
    axes.set_xlabel(_meaning(shown.title, shown.unit))
    return figure


def _uncertified(comparison: Comparison, result: Result) -> bool:
    return any(result is each for each in comparison.uncertified)


def _titled(comparison: Comparison, result: Result) -> str:
    """Name and output; a mechanism without differential privacy says so wherever it is shown."""
    mark = f"\n{NO_CERTIFICATE}" if _uncertified(comparison, result) else ""
    return f"{result.name}\n{result.output}{mark}"


def _label_x(panels: Any, axis: Any, *, used: int, wide: int) -> None:
    for i, panel in enumerate(panels[:used]):
        if axis.labels is not None:
            panel.set_xticks(axis.at, axis.labels, rotation=60 if max(map(len, axis.labels)) > 3 else 0, fontsize=8)
        else:
            panel.locator_params(axis="x", nbins=4)
            plain_numbers(panel.xaxis)
            panel.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4))
            panel.yaxis.get_offset_text().set_fontsize(8)
        if i + wide >= used:  # nothing hangs below it
            panel.set_xlabel(axis.column)
            panel.tick_params(labelbottom=True)


def _meaning(title: str, unit: str) -> str:
    words = {"value": "in the column's own unit", "share": "a probability", "number": "a number"}
    return f"{title} ({words[unit]}; 0 is perfect)"


def _runs(comparison: Comparison) -> str:
    return "1 run" if comparison.runs == 1 else f"{comparison.runs:,} runs"


def _guarantee(comparison: Comparison) -> str:
    return f"epsilon = {comparison.guarantee.epsilon:g}, delta = {comparison.guarantee.delta:g}"
