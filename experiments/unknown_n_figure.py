"""Figure 1 of the unknown-n experiments."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.unknown_n_runs import KNOWN
from privurn.drawing.palette import SERIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_EPSILONS, FIGURE_SIZES = (1.0, 10.0), (0.01, 0.1, 1.0, 10.0)


def draw(rows: Sequence[Mapping[str, Any]]) -> "Figure":
    """Deviations against epsilon_n (lines: n known), and boxes of n (quantiles averaged over runs), for each epsilon."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    axes = figure.subplots(len(FIGURE_EPSILONS), 2)
    colours = SERIES[:3]
    for (left, right), epsilon in zip(axes, FIGURE_EPSILONS, strict=True):
        own = [row for row in rows if row["epsilon"] == epsilon]
        for j, colour in enumerate(colours):
            for realisation in dict.fromkeys(row["realisation"] for row in own):
                path = [row for row in own if row["realisation"] == realisation and row["epsilon_n"] != KNOWN]
                left.plot(
                    [row["epsilon_n"] for row in path], [row["deviations"][j] for row in path], "--", color=colour, lw=0.8
                )
                unmixed = [row for row in path if not row["mixed"]]  # a cross: not to be trusted
                left.plot([row["epsilon_n"] for row in unmixed], [row["deviations"][j] for row in unmixed], "x", color=colour)
            for row in own:
                if row["epsilon_n"] == KNOWN:
                    left.axhline(row["deviations"][j], color=colour, label=f"alpha{j + 1}, n known")
        left.set(xscale="log", yscale="log", xlabel="epsilon_n", ylabel="posterior deviation", title=f"epsilon {epsilon:g}")
        left.legend(fontsize=8)
        sizes = [size for size in FIGURE_SIZES if any(row["epsilon_n"] == size for row in own)]
        boxes = []
        for size in sizes:
            pooled = np.mean([row["n"] for row in own if row["epsilon_n"] == size], axis=0)
            boxes.append(
                dict(zip(("whislo", "q1", "med", "q3", "whishi"), pooled[1:6], strict=True), fliers=[], label=f"{size:g}")
            )
        right.bxp(boxes, showfliers=False)
        right.set(xlabel="epsilon_n", ylabel="n", title="posterior of n: 5, 25, 50, 75 and 95%")
    return figure
