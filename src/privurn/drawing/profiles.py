"""Pictures of what a release promises: its profile, and what that means for a test."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from privurn.drawing.figure import SMALLEST_SHOWN, blank, line, log_curve, short
from privurn.drawing.palette import GREY, colour
from privurn.errors import ModelError
from privurn.privacy.laws.loss_law import largest_loss
from privurn.privacy.profile import Guarantee, PointProfile, PrivacyProfile
from privurn.privacy.trade_off import trade_off

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST_SHOWN = 50.0
"""No axis of epsilons goes further by itself: beyond, nothing is promised that anyone would call privacy."""

Profiles = PrivacyProfile | Mapping[str, PrivacyProfile]


def profile_curves(
    profiles: Profiles,
    *,
    guarantees: Mapping[str, Guarantee] | None = None,
    largest_epsilon: float | None = None,
    smallest_delta: float = SMALLEST_SHOWN,
) -> "Figure":
    """Delta against epsilon on a logarithmic axis, for one profile or several by name.

    A dot marks the promise in `guarantees` of the same name, a triangle at the edge one with delta = 0. A curve leaves the
    picture where its delta is 0.
    """
    named = _named(profiles)
    promises = guarantees or {}
    end = largest_epsilon
    if end is None:
        ends = [1.0, *(largest_loss(each, tail=smallest_delta) for each in named.values())]
        end = min(LARGEST_SHOWN, max([*ends, *(1.1 * each.epsilon for each in promises.values())]))
    figure, axes = blank("Privacy profile: the smallest delta for each epsilon")
    lowest = 1.0
    for i, (name, profile) in enumerate(named.items()):
        epsilons, deltas = log_curve(profile.delta, 0.0, min(end, profile.pure_epsilon), least=smallest_delta / 1e3)
        lowest = min(lowest, max(float(deltas.min()), smallest_delta))
        promise = promises.get(name)
        if promise is None:
            axes.plot(epsilons, deltas, **line(i), label=short(name))
            continue
        axes.plot(epsilons, deltas, **line(i), label=f"{short(name)}, promised ({promise.epsilon:g}, {promise.delta:g})")
        shown = max(promise.delta, smallest_delta)
        lowest = min(lowest, shown)
        axes.plot([promise.epsilon], [shown], "o" if promise.delta >= shown else "v", color=colour(i))
    axes.set(yscale="log", xlabel="epsilon", ylabel="delta", xlim=(0.0, end), ylim=(lowest / 1.5, 1.5))
    if len(named) > 1 or promises:
        axes.legend()
    return figure


def trade_off_curves(profiles: Profiles, *, guarantees: Iterable[Guarantee] = (), points: int = 101) -> "Figure":
    """Smallest false-negative rate of any test that tells two neighbours apart, against its false-positive rate.

    The diagonal is perfect privacy: no test beats tossing a coin. The closer a curve comes to the axes, the less is kept.
    Each of `guarantees` adds the curve that an (epsilon, delta) promise alone would give.
    """
    rates = np.linspace(0.0, 1.0, points)
    named = _named(profiles)
    figure, axes = blank("Trade-off curve: telling two neighbouring tables apart", width=5.4, height=6.2)
    axes.plot([0.0, 1.0], [1.0, 0.0], color=GREY, linewidth=1.0, label="perfect privacy: the release tells nothing")
    for i, (name, profile) in enumerate(named.items()):
        axes.plot(rates, trade_off(profile, false_positive=rates), **line(i), label=short(name))
    pairs = dict.fromkeys((promise.epsilon, promise.delta) for promise in guarantees)
    for i, (epsilon, delta) in enumerate(pairs, start=len(named)):
        alone = trade_off(PointProfile(epsilon0=epsilon, delta0=delta), false_positive=rates)
        style = {"color": colour(i), "linestyle": (0, (1, 2)), "linewidth": 1.4}
        axes.plot(rates, alone, **style, label=f"the promise ({epsilon:g}, {delta:g}) alone")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="false-positive rate", ylabel="smallest false-negative rate", aspect="equal")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), fontsize=9)
    return figure


def _named(profiles: Profiles) -> dict[str, PrivacyProfile]:
    named = {"profile": profiles} if isinstance(profiles, PrivacyProfile) else dict(profiles)
    if not named:
        raise ModelError("a picture needs at least one profile.")
    return named
