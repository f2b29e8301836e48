"""Pictures of a comparison: releases drawn over the data, and box plots of their errors. All confidential.

Every function returns a matplotlib Figure of its own, without pyplot and its global state. Colours are those of Okabe and Ito,
which colour-blind people can tell apart; each mechanism keeps its colour in every picture of the same comparison.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from privurn.errors import FormatError, ModelError
from privurn.reports.comparison.candidates import NO_CERTIFICATE
from privurn.reports.comparison.results import Comparison, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B", "#999933")
GREY = "#6E6E6E"
UNCERTIFIED = "#F2F2F2"
CONFIDENTIAL = "CONFIDENTIAL"


def density_overlays(comparison: Comparison, *, column: str | None = None) -> "Figure":
    """One panel for each mechanism: its releases (median and middle 80% of the runs) over the data."""
    from matplotlib.figure import Figure

    names = [axis.column for axis in comparison.axes]
    if column is not None and column not in names:
        raise FormatError(f"the comparison has no column {column!r}.", hint=f"It has {', '.join(names)}")
    at = 0 if column is None else names.index(column)
    axis, data = comparison.axes[at], comparison.data_curves[at]
    shown = [*comparison.results, *comparison.uncertified]
    wide = min(3 if len(shown) <= 9 else 4, len(shown))
    high = -(-len(shown) // wide)
    figure = Figure(figsize=(max(6.4, 3.6 * wide), 2.7 * high + 1.1), layout="constrained")
    panels = figure.subplots(high, wide, sharex=True, sharey=True, squeeze=False).ravel()
    x = np.array(axis.at)
    for i, (panel, result) in enumerate(zip(panels, shown, strict=False)):
        low, middle, high_end = result.curves[at]
        colour = COLOURS[i % len(COLOURS)]
        if axis.labels is None:
            panel.fill_between(x, low, high_end, color=colour, alpha=0.3, linewidth=0)
            panel.plot(x, middle, color=colour, linewidth=2.6)
            panel.plot(x, data, color="black", linewidth=0.9, linestyle=(0, (5, 2)))
        else:
            panel.bar(x, data, color="#D9D9D9", edgecolor="#9A9A9A", width=0.8)
            panel.errorbar(x, middle, yerr=[middle - low, high_end - middle], fmt="o", color=colour, markersize=4, capsize=3)
        panel.set_title(_titled(comparison, result), fontsize=9)
        if _uncertified(comparison, result):
            panel.set_facecolor(UNCERTIFIED)
        panel.grid(alpha=0.3)
        panel.margins(x=0.02)
        panel.tick_params(labelsize=8)
    top = max(float(np.max(data)), *(float(result.curves[at].max()) for result in shown))
    panels[0].set_ylim(0.0, 1.05 * top)
    for panel in panels[len(shown) :]:
        panel.set_axis_off()
    _label_x(panels, axis, used=len(shown), wide=wide)
    for panel in panels[::wide]:
        panel.set_ylabel("share" if axis.labels else "density")
    data_words = "bars: the data; points: releases" if axis.labels else "dashed: the data; coloured: releases"
    figure.suptitle(
        f"{CONFIDENTIAL}: {axis.column} and its releases at {_guarantee(comparison)}\n"
        f"{data_words}, median and middle 80% of {_runs(comparison)}",
        fontsize=11,
    )
    return figure


def error_boxes(comparison: Comparison, *, metric: str | None = None) -> "Figure":
    """Box plots of one metric over the runs, the best mechanism on top and a plain sample without privacy below.

    Boxes hold the middle half of the runs, whiskers reach to the 5% and 95% points.
    """
    from matplotlib.figure import Figure

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
    figure = Figure(figsize=(7.6, height), layout="constrained")
    axes = figure.subplots()
    drawn = axes.boxplot(
        errors,
        orientation="horizontal",
        whis=(5, 95),
        widths=0.6,
        patch_artist=True,
        medianprops={"color": "black", "linewidth": 1.0},
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": GREY},
    )
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(shown_rows))] + ["#BDBDBD"]
    for box, colour, row in zip(drawn["boxes"], colours, rows, strict=True):
        box.set(facecolor=colour, edgecolor=colour, alpha=0.75)
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
        _plain_ticks(axes, positive)
    else:
        axes.set_xlim(left=0.0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    axes.grid(alpha=0.3, axis="x")
    axes.set_axisbelow(True)
    shown = comparison.metrics[which]
    axes.set_xlabel(_meaning(shown.title, shown.unit))
    figure.suptitle(
        f"{CONFIDENTIAL}: {shown.title} between releases and data\n{_guarantee(comparison)}, {_runs(comparison)}", fontsize=11
    )
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
            panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
            panel.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4))
            panel.yaxis.get_offset_text().set_fontsize(8)
        if i + wide >= used:  # nothing hangs below it
            panel.set_xlabel(axis.column)
            panel.tick_params(labelbottom=True)


def _plain_ticks(axes: Any, values: Any) -> None:
    """Ticks at 1, 2, 5 of each decade, or at the decades where there are many."""
    from matplotlib.ticker import LogLocator, NullFormatter

    many = math.log10(values.max() / values.min()) > 3.0
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if many else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _meaning(title: str, unit: str) -> str:
    words = {"value": "in the column's own unit", "share": "a probability", "number": "a number"}
    return f"{title} ({words[unit]}; 0 is perfect)"


def _runs(comparison: Comparison) -> str:
    return "1 run" if comparison.runs == 1 else f"{comparison.runs:,} runs"


def _guarantee(comparison: Comparison) -> str:
    return f"epsilon = {comparison.guarantee.epsilon:g}, delta = {comparison.guarantee.delta:g}"
