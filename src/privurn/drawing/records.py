"""Pictures of what a guarantee allows: numbers of records, and priors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.drawing.figure import Numbers, blank, line, plain_ticks
from privurn.drawing.palette import EDGE, PALE, PAPER
from privurn.errors import ModelError
from privurn.privacy.calibration import alpha_star
from privurn.privacy.laws.add_remove import AddRemoveDirichletMultinomialProfile, alpha_star_add_remove
from privurn.privacy.laws.urn import (
    UNLIMITED,
    DirichletMultinomialProfile,
    DirichletProcessProfile,
    PitmanYorProfile,
)
from privurn.privacy.profile import Neighbouring, PrivacyProfile

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
        axes.plot(across, lower, color=PAPER, linewidth=0.8, label=f"m = {numbers[i]:,}")
    if np.any(levels[0] > low):
        axes.fill_between(across, low, levels[0], facecolor=PALE, hatch="..", edgecolor=EDGE, label="not even one")
    if np.any(endless < high):
        axes.fill_between(across, endless, high, facecolor=PAPER, hatch="//", edgecolor=EDGE, label="unlimited")
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


def _described(urn: UrnProfile) -> str:
    words = [] if isinstance(urn, AddRemoveDirichletMultinomialProfile) else [f"n = {urn.n:,}"]
    if isinstance(urn, PublicDomainProfile):
        words += ["1 cell" if urn.cells == 1 else f"{urn.cells:,} cells", f"alpha = {urn.alpha:g}"]
    else:
        words.append(f"strength = {urn.strength:g}")
    if isinstance(urn, PitmanYorProfile):
        words.append(f"discount = {urn.discount:g}")
    return ", ".join([*words, urn.neighbouring])
