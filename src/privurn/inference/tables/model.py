"""What an analyst assumes of figures about a whole table."""

from dataclasses import dataclass

from privurn.inference.counts.places import WithinBins


@dataclass(frozen=True, kw_only=True)
class TableModel:
    """Figures about a whole table: means, shares, quantiles.

    `within`: where in its bin a record lies. "uniform" spreads it evenly, "whole" evenly over whole numbers, "midpoint" puts it
    in the middle. Summaries say what was assumed, and between what a figure lies whatever is true.
    """

    within: WithinBins = "uniform"
