"""Pictures of means and intervals of the same numbers by several analyses."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from privurn.drawing.figure import blank, short
from privurn.drawing.palette import GREY, colour
from privurn.errors import ModelError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 12


class Interval(Protocol):
    """One number: what it is called, its mean and its interval."""

    @property
    def name(self) -> str:
        """Of the number."""

    @property
    def mean(self) -> float:
        """In the middle."""

    @property
    def lower(self) -> float:
        """End."""

    @property
    def upper(self) -> float:
        """End."""


def interval_picture(groups: Mapping[str, Sequence[Interval]], *, title: str = "Intervals side by side") -> "Figure":
    """Means and intervals of the same numbers by several analyses: one panel for each number, one line for each analysis."""
    names = list(dict.fromkeys(each.name for found in groups.values() for each in found))
    if not names:
        raise ModelError("there is no interval to show.")
    figure, axes = blank(title, columns=len(names), width=1.4 + 2.6 * len(names), height=1.6 + 0.4 * len(groups))
    for column, (each, name) in enumerate(zip(np.ravel(axes), names, strict=True)):
        for row, (group, found) in enumerate(groups.items()):
            for interval in found:
                if interval.name == name:
                    each.plot(
                        [interval.lower, interval.upper], [row, row], color=colour(row), linewidth=2.0, label=short(group)
                    )
                    each.plot([interval.mean], [row], "o", color=colour(row))
        each.set_title(short(name), fontsize=10)
        each.set_yticks(range(len(groups)), [short(group) for group in groups] if column == 0 else [""] * len(groups))
        each.set_ylim(len(groups) - 0.5, -0.5)
    return figure


def interval_rows(groups: Mapping[str, Sequence[Interval]], *, released: Mapping[str, float], title: str) -> "Figure":
    """Each number's intervals by one or two analyses beside the released figure, one below the other; one scale for each."""
    rows = list(zip(*(found[: 2 * MOST_PANELS] for found in groups.values()), strict=True))
    if not rows:
        raise ModelError("there is no interval to show.")
    figure, axes = blank(title, rows=len(rows), height=1.0 + 0.7 * len(rows))
    panels = np.ravel(axes)
    for panel, row in zip(panels, rows, strict=True):
        for i, (group, each) in enumerate(zip(groups, row, strict=True)):
            panel.plot([each.lower, each.upper], [1.0 - i, 1.0 - i], color=colour(i), linewidth=3, label=group)
            panel.plot([each.mean], [1.0 - i], "o", color=colour(i), markersize=5)
        panel.plot([released[row[0].name]], [0.5], "D", color=GREY, markersize=5, label="released")
        panel.set(yticks=[], ylim=(-0.6, 1.6))
        panel.set_ylabel(short(row[0].name), rotation=0, ha="right", va="center")
    panels[0].legend(fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure
