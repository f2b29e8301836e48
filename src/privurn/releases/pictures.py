"""The picture of a plan: what a release is worth."""

from typing import TYPE_CHECKING, Any

import numpy as np

from privurn.drawing.figure import blank, line, plain_numbers
from privurn.drawing.palette import GREY, colour
from privurn.mechanisms.urn_plan import LARGEST_PRIOR_WEIGHT, UrnPlan, plan_default, plan_urn
from privurn.privacy.laws.urn import UNLIMITED
from privurn.privacy.profile import Guarantee

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plan_picture(*, n: int, cells: int, guarantee: Guarantee, points: int = 60) -> "Figure":
    """Effective sample size and shrinkage of a release from a public domain, against the number of released records.

    Under add-remove neighbours `n` is a public guess of the number of records, and as many are asked for.
    """
    secret = guarantee.neighbouring == "add-remove"
    most = 100 * n
    numbers = np.unique(np.geomspace(max(1.0, n / 1000.0), most, points).round().astype(np.int64))

    def plan(records: Any) -> UrnPlan:
        return plan_urn(n=n, cells=cells, guarantee=guarantee, records=records)

    plans = [plan(int(m)) for m in numbers]
    chosen = plan(n) if secret else plan_default(n=n, cells=cells, guarantee=guarantee)
    size = "1 cell" if cells == 1 else f"{cells:,} cells"
    about = f"about {n:,} records (add-remove)" if secret else f"n = {n:,}"
    title = f"What a release is worth: {about}, {size}, epsilon = {guarantee.epsilon:g}, delta = {guarantee.delta:g}"
    figure, (above, below) = blank(title, rows=2, height=6.0, same_x=True)
    above.plot(numbers, [each.effective_sample_size for each in plans], **line(0), label="released records")
    below.plot(numbers, [100.0 * each.prior_weight for each in plans], **line(0))
    point = "asked for" if secret else "default"
    if guarantee.delta > 0.0:
        endless = plan(UNLIMITED)
        above.axhline(endless.effective_sample_size, **line(1), label="unlimited: the cell probabilities")
        below.axhline(100.0 * endless.prior_weight, **line(1))
    for axes, value in ((above, chosen.effective_sample_size), (below, 100.0 * chosen.prior_weight)):
        axes.plot([int(chosen.records)], [value], "o", color=colour(2), label=f"{point}: {chosen.records:,} records")
        if not secret:
            axes.axvline(n, color=GREY, linewidth=1.0, linestyle=":", label=f"n = {n:,}")
        axes.set(xscale="log", xlim=(numbers[0], most))
        axes.set_ylim(bottom=0.0)
    comfort = 100.0 * LARGEST_PRIOR_WEIGHT
    if comfort < below.get_ylim()[1]:
        below.axhline(comfort, color=GREY, linewidth=1.0)
        below.text(1.01, comfort, f"{comfort:g}%", transform=below.get_yaxis_transform(), va="center", color=GREY)
    above.set(ylabel="effective sample size")
    plain_numbers(above.yaxis)
    below.set(xlabel="released records m", ylabel="shrinkage (share of the prior, %)")
    above.legend(loc="best")
    return figure
