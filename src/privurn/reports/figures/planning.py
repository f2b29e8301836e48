"""Pictures of what a guarantee allows: numbers of records, priors, and what a release is worth."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.mechanisms.urn_plan import LARGEST_PRIOR_WEIGHT, UrnPlan, plan_default, plan_urn
from privurn.privacy.calibration import alpha_star
from privurn.privacy.laws.add_remove import AddRemoveDirichletMultinomialProfile, alpha_star_add_remove
from privurn.privacy.laws.urn import (
    UNLIMITED,
    DirichletMultinomialProfile,
    DirichletProcessProfile,
    PitmanYorProfile,
)
from privurn.privacy.profile import Guarantee, Neighbouring, PrivacyProfile
from privurn.reports.figures.drawing import COLOURS, GREY, Numbers, blank, cells_text, line, plain_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SHOWN = 10**12
"""The map of numbers of records stops there."""

PublicDomainProfile = DirichletMultinomialProfile | AddRemoveDirichletMultinomialProfile
UrnProfile = PublicDomainProfile | DirichletProcessProfile | PitmanYorProfile


def records_map(
    urn: PrivacyProfile, *, epsilons: Numbers | None = None, deltas: tuple[float, float] = (1e-9, 1e-2)
) -> "Figure":
    """Largest number of records that an urn may release, for each epsilon and for delta between two ends.

    `urn` is the profile of a Dirichlet-multinomial, Dirichlet-process or Pitman-Yor urn; its own `records` is ignored. The line
    between two colours is the profile at that many records, so nothing is solved for and nothing interpolated.
    """
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    if not isinstance(urn, UrnProfile):
        raise ModelError(f"{type(urn).__name__} has no number of records to draw.", hint="Give the profile of an urn")
    across = np.geomspace(0.1, 4.0, 97) if epsilons is None else np.asarray(epsilons, np.float64)
    low, high = deltas

    def level(records: Any) -> NDArray[np.float64]:
        profile = replace(urn, records=records)
        return np.clip([profile.delta(float(epsilon)) for epsilon in across], low, high)

    endless = level(UNLIMITED) if isinstance(urn, PublicDomainProfile) else np.full(across.size, high)
    numbers, levels = [1], [level(1)]
    while numbers[-1] < MOST_SHOWN and np.any((following := level(10 * numbers[-1])) < 0.9 * endless):
        numbers.append(10 * numbers[-1])
        levels.append(following)
    figure, axes = blank(f"Largest number of records that may be released\n{_described(urn)}", width=7.2)
    colours = ListedColormap(colormaps["cividis"](np.linspace(0.0, 1.0, len(numbers))))
    for i, (lower, upper) in enumerate(zip(levels, [*levels[1:], endless], strict=True)):
        axes.fill_between(across, lower, upper, where=upper > lower, interpolate=True, color=colours(i), linewidth=0)
        axes.plot(across, lower, color="white", linewidth=0.8, label=f"m = {numbers[i]:,}")
    if np.any(levels[0] > low):
        axes.fill_between(across, low, levels[0], facecolor="#F2F2F2", hatch="..", edgecolor="#9A9A9A", label="not even one")
    if np.any(endless < high):
        axes.fill_between(across, endless, high, facecolor="#FFFFFF", hatch="//", edgecolor="#9A9A9A", label="unlimited")
    norm = BoundaryNorm([*numbers, 10 * numbers[-1]], colours.N)
    bar = figure.colorbar(ScalarMappable(norm, colours), ax=axes, ticks=numbers, label="records m, at least")
    bar.ax.set_yticklabels([f"{number:,}" if number < 10**7 else f"1e{len(str(number)) - 1}" for number in numbers])
    bar.ax.minorticks_off()
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="delta", xlim=(across[0], across[-1]), ylim=(low, high))
    plain_ticks(axes.xaxis)
    axes.grid(False)
    keys = [each for each in axes.collections if str(each.get_label()) in ("not even one", "unlimited")]
    if keys:
        axes.legend(handles=keys, loc="lower left", framealpha=1.0)
    return figure


def alpha_star_curves(
    *,
    deltas: Sequence[float] = (1e-4, 1e-6, 1e-8, 1e-10),
    epsilons: Numbers | None = None,
    neighbouring: Neighbouring = "replace-one",
) -> "Figure":
    """Prior records in each cell from which on any number of records may be released, whatever n and the domain."""
    solve = alpha_star if neighbouring == "replace-one" else alpha_star_add_remove
    across = np.geomspace(0.1, 8.0, 41) if epsilons is None else np.asarray(epsilons, np.float64)
    figure, axes = blank(f"alpha*: prior records in each cell for unlimited records ({neighbouring})")
    for i, delta in enumerate(deltas):
        stars = [solve(epsilon=float(epsilon), delta=delta) for epsilon in across]
        axes.plot(across, stars, **line(i), label=f"delta = {delta:g}")
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="alpha*")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    axes.legend()
    return figure


def plan_picture(*, n: int, cells: int, guarantee: Guarantee, points: int = 60) -> "Figure":
    """Effective sample size and shrinkage of a release from a public domain, against the number of released records."""
    most = 100 * n
    numbers = np.unique(np.geomspace(max(1.0, n / 1000.0), most, points).round().astype(np.int64))

    def plan(records: Any) -> UrnPlan:
        return plan_urn(n=n, cells=cells, guarantee=guarantee, records=records)

    plans = [plan(int(m)) for m in numbers]
    chosen = plan_default(n=n, cells=cells, guarantee=guarantee)
    title = (
        f"What a release is worth: n = {n:,}, {cells_text(cells)}, epsilon = {guarantee.epsilon:g}, delta = {guarantee.delta:g}"
    )
    figure, (above, below) = blank(title, rows=2, height=6.0)
    above.plot(numbers, [each.effective_sample_size for each in plans], **line(0), label="released records")
    below.plot(numbers, [100.0 * each.prior_weight for each in plans], **line(0))
    if guarantee.delta > 0.0:
        endless = plan(UNLIMITED)
        above.axhline(endless.effective_sample_size, **line(1), label="unlimited: the cell probabilities")
        below.axhline(100.0 * endless.prior_weight, **line(1))
    for axes, value in ((above, chosen.effective_sample_size), (below, 100.0 * chosen.prior_weight)):
        axes.plot([int(chosen.records)], [value], "o", color=COLOURS[2], label=f"default: {chosen.records:,} records")
        axes.axvline(n, color=GREY, linewidth=1.0, linestyle=":", label=f"n = {n:,}")
        axes.set(xscale="log", xlim=(numbers[0], most))
        axes.set_ylim(bottom=0.0)
    comfort = 100.0 * LARGEST_PRIOR_WEIGHT
    if comfort < below.get_ylim()[1]:
        below.axhline(comfort, color=GREY, linewidth=1.0)
        below.text(1.01, comfort, f"{comfort:g}%", transform=below.get_yaxis_transform(), va="center", color=GREY)
    above.set(ylabel="effective sample size")
    above.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    below.set(xlabel="released records m", ylabel="shrinkage (share of the prior, %)")
    above.legend(loc="best")
    return figure


def _described(urn: UrnProfile) -> str:
    words = [] if isinstance(urn, AddRemoveDirichletMultinomialProfile) else [f"n = {urn.n:,}"]
    if isinstance(urn, PublicDomainProfile):
        words += [cells_text(urn.cells), f"alpha = {urn.alpha:g}"]
    else:
        words.append(f"strength = {urn.strength:g}")
    if isinstance(urn, PitmanYorProfile):
        words.append(f"discount = {urn.discount:g}")
    return ", ".join([*words, urn.neighbouring])
