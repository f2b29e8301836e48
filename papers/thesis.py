"""The thesis's figures, exactly: theorem 4.1 (at discount 0 corollary 4.1) and proposition 4.2.

Like theorem 1 they look at releases of x only, never of its neighbours; what that leaves out:
docs/what-the-papers-guarantee.md. Enumeration: tests/exact/test_instance.py.
"""

import numpy as np
from numpy.typing import NDArray

from privurn.privacy.instance.multiplicities import Multiplicities, threshold
from privurn.privacy.laws.divergences import SMALLEST, rounded_up

Vector = NDArray[np.float64]


def proposition_4_2(table: Multiplicities, *, epsilon: float, records: int, strength: float, discount: float) -> float | None:
    """1 - P(S_i <= (e^epsilon - 1)(n_i - 1 - discount) for all i); None when a value occurs once, which it excludes."""
    if table.has(1):
        return None
    boxes = _Boxes(table, records=records, strength=strength, discount=discount)
    outer = boxes.highs(threshold(epsilon))
    _, _, outside = boxes.law(inner=outer, outer=outer)
    return rounded_up(float(outside.sum()), steps=table.distinct + 1000.0)


LARGEST_NEW = 400
"""Most released records on new values for which the joint law of number, smallest and largest block is tabulated."""


def theorem_4_1(
    table: Multiplicities,
    *,
    epsilon: float,
    records: int,
    strength: float,
    discount: float,
    density_bounds: tuple[float, float] = (1.0, 1.0),
) -> float | None:
    """1 - P(all four families of events of the thesis's theorem 4.1), interval read the right way round.

    With M_i = 1 + S_i/(n_i - 1 - discount), theta' = theta + j discount, and new values seen s_1, ..., s_K times, a
    release is good when max M <= E, 1 + K discount/theta' <= E min M and every s lies in
    [discount + theta' C2 max M / E, discount + theta' C1 E min M], where C1 <= density of H <= C2 are `density_bounds`.
    At discount 0 this is corollary 4.1. None when a value occurs once (the theorem excludes it) or when so many new
    values may be released that the exact sum would take too long.
    """
    if table.has(1):
        return None
    boxes = _Boxes(table, records=records, strength=strength, discount=discount)
    outer = boxes.highs(threshold(epsilon))
    inside, _, outside = boxes.law(inner=outer, outer=outer)  # by the number of records on new values
    for negligible in (1e-30, 1e-60, 1e-120, 0.0):
        most = int(np.max(np.nonzero(inside > negligible)[0], initial=0))
        if most > LARGEST_NEW:
            return None
        bad = float(outside.sum()) + _bad_new_blocks(boxes, inside[: most + 1], outer, threshold(epsilon), density_bounds)
        beyond = float(inside[most + 1 :].sum())
        if beyond <= 1e-14 * bad:
            break
    return rounded_up(bad + beyond, steps=table.distinct + 1000.0)


def _bad_new_blocks(boxes: "_Boxes", inside: Vector, outer: Vector, E: float, density_bounds: tuple[float, float]) -> float:
    """P(every M_i <= E, but some other event fails), for at most len(inside) - 1 records on new values.

    The new values ask for min M >= x (by their number and the largest count) and max M <= y (by the smallest count);
    both requests take few values that matter, and for each pair one box gives the probability of not meeting them.
    """
    from papers.boxes import block_extremes

    lower, upper = density_bounds
    most, sigma, new_mass = inside.size - 1, boxes.discount, boxes.new_mass
    sizes = np.arange(most + 1, dtype=float)
    y = E * (sizes - sigma) / (new_mass * upper)
    y[0] = E  # no new value, no request
    x = np.maximum(
        (1.0 + sizes[:, None] * sigma / new_mass) / E,  # number of new values
        (sizes[None, :] - sigma) / (new_mass * lower * E),  # largest count
    )
    above, below = np.nextafter(E, np.inf), np.nextafter(1.0, 0.0)  # requests that cannot be met
    x_levels, x_class = np.unique(np.clip(x, 1.0, above), return_inverse=True)
    y_levels, y_class = np.unique(np.clip(y, below, E), return_inverse=True)
    law = block_extremes(most, new_mass, sigma, x_class.reshape(x.shape), y_class, x_levels.size, y_levels.size)
    bad, open_classes = 0.0, []
    for p, low in enumerate(x_levels):
        for q, high in enumerate(y_levels):
            weight = float((law[p, q] * inside).sum())
            if low == above or high == below:
                bad += weight
            elif (low > 1.0 or high < E) and weight > 0.0:
                open_classes.append((weight, low, high, law[p, q]))
    for weight, low, high, by_new in sorted(open_classes, key=lambda each: -each[0]):
        if weight <= 1e-16 * bad:  # too rare to matter: counted as bad
            bad += weight
            continue
        _, between, _ = boxes.law(lows=boxes.lows(low), inner=boxes.highs(high), outer=outer)
        bad += float((by_new * between[: most + 1]).sum())
    return bad


class _Boxes:
    """Joint law of all old counts: independent negative binomials given their sum, so a box is one convolution a value."""

    def __init__(self, table: Multiplicities, *, records: int, strength: float, discount: float) -> None:
        sizes = table.expand().astype(float)
        self.shares = sizes - 1.0 - discount
        self.masses = sizes - discount
        self.discount = discount
        self.new_mass = strength + table.distinct * discount
        self.total = strength + table.n
        self.records = records

    def highs(self, y: float) -> Vector:
        """Largest S_i with M_i <= y."""
        return np.floor(self.shares * (y - 1.0))

    def lows(self, x: float) -> Vector:
        """Smallest S_i with M_i >= x."""
        return np.ceil(self.shares * (x - 1.0))

    def law(self, *, inner: Vector, outer: Vector, lows: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        """P(in the inner box), P(in the outer box only), P(in neither), each by the number of records on new values."""
        from papers.boxes import box_law

        least = np.zeros_like(self.masses) if lows is None else lows
        possible = (True, lows is not None or bool((inner < outer).any()), bool((outer < self.records).any()))
        for keep in (1e-40, 1e-300):  # the second pass only for what is deep in the tail
            found = box_law(self.masses, least, inner, outer, self.new_mass, self.total, self.records, keep)
            if all(part.sum() > 1e-25 or not can for part, can in zip(found, possible, strict=True)):
                break
        inside, between, outside = found
        if possible[2] and not outside.any():
            outside[0] = SMALLEST
        return inside, between, outside
