"""Pictures of figures of a whole table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from privurn.inference.draws import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def intervals(rows: Sequence[Summary]) -> "Figure":
    """Intervals, one below the other."""
    from privurn.drawing.figure import blank, line, short

    figure, axes = blank("Figures with their intervals", height=1.5 + 0.3 * len(rows))
    for i, each in enumerate(rows):
        axes.plot([each.lower, each.upper], [i, i], **line(0))
        axes.plot([each.mean], [i], "o", color=line(0)["color"])
    axes.set_yticks(range(len(rows)), [short(each.name) for each in rows])
    axes.invert_yaxis()
    return figure
