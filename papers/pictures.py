"""Pictures of simulations: density ratios of made-up data, and Monte Carlo beside the exact instance-level figures."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from papers.monte_carlo import DensityRatios, Estimate, MonteCarloReport
from privurn.drawing.figure import CONFIDENTIAL, SMALLEST_SHOWN, blank, line, plain_ticks
from privurn.drawing.palette import GREY, INK, STYLES, colour
from privurn.errors import ModelError
from privurn.privacy.instance.cost import InstanceReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLAIN_DECADES = 3.0
"""A logarithmic axis shorter than this is labelled with plain numbers."""


def density_ratio_picture(
    ratios: DensityRatios, *, epsilons: Sequence[float] = (1.0, 2.0), title: str | None = None, most_points: int = 20_000
) -> "Figure":
    """Simulated density ratios in both directions, in the order of simulation, with the levels e^epsilon.

    Of very many an even share is drawn; the shares in the legends count all. Crosses are releases that one of the two urns
    cannot make at all: their true ratio is 0 or infinite, whatever the density shown says.
    """
    size = ratios.log_ratio.size
    step = max(1, -(-size // most_points))
    at = np.arange(0, size, step)
    singular = ratios.singular.ravel()[at]
    figure, both = blank(title or "Density ratios of simulated releases, both directions", columns=2, width=10.0)
    shares = [ratios.share_above(epsilon) for epsilon in epsilons]
    for side, (axes, logs, what) in enumerate(
        zip(both, (ratios.log_ratio, ratios.log_inverse), ("q(z | x) / q(z | y)", "q(z | y) / q(z | x)"), strict=True)
    ):
        shown = np.exp(np.clip(logs.ravel()[at], -600.0, 600.0))
        axes.plot(at[~singular], shown[~singular], ".", markersize=3, color=colour(0), alpha=0.5, rasterized=True)
        if singular.any():
            cross = {"markersize": 4, "color": colour(1), "alpha": 0.7, "rasterized": True}
            axes.plot(
                at[singular], shown[singular], "x", **cross, label=f"impossible for one urn ({ratios.singular.mean():.1%})"
            )
        for i, epsilon in enumerate(epsilons):
            label = f"e^{epsilon:g}: {shares[i][side]:.2%} above, impossible ones included"
            axes.axhline(math.exp(epsilon), color=INK, linestyle=STYLES[1 + i % 3], linewidth=1.2, label=label)
        axes.set(yscale="log", xlabel="comparison", ylabel=what, xlim=(0, size))
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), fontsize=8)
        if np.ptp(np.log10(shown)) < PLAIN_DECADES:
            plain_ticks(axes.yaxis)
    return figure


def instance_curves(reports: Sequence[InstanceReport], *, estimates: Sequence[MonteCarloReport] = ()) -> "Figure":
    """Exact instance-level figures against epsilon, with Monte Carlo estimates (two standard errors) beside them.

    Confidential, like the reports. An estimate of 0 is drawn as an arrow from 3/simulations: no more is known.
    """
    if not reports:
        raise ModelError("a curve needs at least one report.", hint="instance_delta(counts, epsilon=e, ...) for several e")
    figure, axes = blank(f"{CONFIDENTIAL}: instance-level delta of these data", width=7.0)
    ordered = sorted(reports, key=lambda each: each.epsilon)
    for i, (field, label) in enumerate(
        (
            ("delta", "two-sided, tight"),
            ("delta_forward", "forward, as in the papers (delta#)"),
            ("delta_forward_tight", "forward, tight"),
        )
    ):
        epsilons = [each.epsilon for each in ordered]
        exact = np.array([getattr(each, field) for each in ordered])
        axes.plot(epsilons, np.where(exact > 0.0, exact, np.nan), **line(i), label=label)
        found = [(each.epsilon, getattr(each, field)) for each in estimates]
        _error_bars(axes, [each for each in found if each[1].value > 0.0], i)
        for epsilon, estimate in found:
            if estimate.value == 0.0:
                bound = 3.0 / estimate.simulations
                axes.errorbar([epsilon], [bound], yerr=[0.6 * bound], uplims=True, fmt="none", ecolor=colour(i), capsize=3)
    if estimates:
        axes.plot([], [], "o", color=GREY, label="Monte Carlo, two standard errors")
    axes.set(yscale="log", xlabel="epsilon", ylabel="delta")
    axes.set_ylim(bottom=max(axes.get_ylim()[0], SMALLEST_SHOWN), top=2.0)
    axes.legend(fontsize=8)
    return figure


def _error_bars(axes: Any, found: list[tuple[float, Estimate]], i: int) -> None:
    if found:
        values = np.array([estimate.value for _, estimate in found])
        spread = 2.0 * np.array([estimate.standard_error for _, estimate in found])
        below = np.minimum(spread, 0.999 * values)  # a logarithmic axis has no room for 0
        where = [epsilon for epsilon, _ in found]
        axes.errorbar(where, values, yerr=[below, spread], fmt="o", color=colour(i), markersize=4, capsize=3)
