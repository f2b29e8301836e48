"""How many records to release from an urn on a public domain, and with which prior: from public quantities alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from privurn.privacy.calibration import round_up_to_rational, smallest_alpha
from privurn.privacy.laws.add_remove import smallest_alpha_add_remove
from privurn.privacy.laws.urn import UNLIMITED, Unlimited
from privurn.privacy.profile import Guarantee

LARGEST_PRIOR_WEIGHT = 0.10
SHARE_OF_LIMIT = 0.90
MOST_TIMES_N = 10


def effective_sample_size(*, n: int, prior_total: float, records: float) -> float:
    """(n/A)^2 m (A+1)/(A+m) with A = n + prior_total; records may be infinite."""
    total = n + prior_total
    share = 1.0 if records == float("inf") else records / (total + records)
    return (n / total) ** 2 * (total + 1.0) * share


@dataclass(frozen=True, kw_only=True)
class UrnPlan:
    """A Dirichlet-multinomial release that meets a guarantee."""

    n: int
    cells: int
    records: int | Unlimited
    alpha: Fraction

    @property
    def prior_total(self) -> float:
        """Prior records in all cells."""
        return float(self.alpha) * self.cells

    @property
    def prior_weight(self) -> float:
        """Share of the prior in the released distribution."""
        return self.prior_total / (self.prior_total + self.n)

    @property
    def effective_sample_size(self) -> float:
        """Worth of the release in records of a plain sample, after debiasing."""
        records = math.inf if self.records == UNLIMITED else float(self.records)
        return effective_sample_size(n=self.n, prior_total=self.prior_total, records=records)


def plan_urn(*, n: int, cells: int, guarantee: Guarantee, records: int | Unlimited) -> UrnPlan:
    """Smallest prior for a given number of records; where n is secret it does not depend on n, a guess of which weighs it."""
    single = guarantee.per_record()
    pair = {"epsilon": single.epsilon, "delta": single.delta}
    if guarantee.neighbouring == "add-remove":
        alpha = smallest_alpha_add_remove(cells=cells, records=records, **pair)
    else:
        alpha = smallest_alpha(n=n, cells=cells, records=records, **pair)
    return UrnPlan(n=n, cells=cells, records=records, alpha=round_up_to_rational(alpha))


def plan_records(*, n: int, cells: int, guarantee: Guarantee, records: int | None) -> UrnPlan:
    """Smallest prior for the number of records asked for, or for the default one."""
    if records is None:
        return plan_default(n=n, cells=cells, guarantee=guarantee)
    return plan_urn(n=n, cells=cells, guarantee=guarantee, records=records)


def plan_default(*, n: int, cells: int, guarantee: Guarantee) -> UrnPlan:
    """N records, or, when the prior would then weigh more than a tenth, the number that makes most of the data.

    That is the smallest number whose effective sample size reaches 90% of its limit for unlimited records, at most 10 n.
    With delta = 0 there is no such limit, and the number with the largest effective sample size is taken.
    """
    plain = plan_urn(n=n, cells=cells, guarantee=guarantee, records=n)
    if plain.prior_weight <= LARGEST_PRIOR_WEIGHT:
        return plain

    def worth(records: int) -> float:
        return plan_urn(n=n, cells=cells, guarantee=guarantee, records=records).effective_sample_size

    most = MOST_TIMES_N * n
    if guarantee.delta == 0.0:
        return plan_urn(n=n, cells=cells, guarantee=guarantee, records=best_number(worth, most))
    limit = plan_urn(n=n, cells=cells, guarantee=guarantee, records=UNLIMITED).effective_sample_size
    records = _first(lambda m: worth(m) >= SHARE_OF_LIMIT * limit, most)
    return plan_urn(n=n, cells=cells, guarantee=guarantee, records=records)


def _first(reached: Callable[[int], bool], most: int) -> int:
    """Smallest m <= most with reached(m) by doubling and bisection; most where it is never reached."""
    low, high = 0, 1
    while high < most and not reached(high):
        low, high = high, min(2 * high, most)
    while high - low > max(1, high // 1000):  # a tenth of a per cent is near enough for a default
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def best_number(worth: Callable[[int], float], most: int) -> int:
    """Best m in 1..most of a function that rises and then falls, on a logarithmic grid refined twice."""
    low, high = 1.0, float(most)
    best = 1
    for _ in range(3):
        grid = sorted({max(1, min(most, round(low * (high / low) ** (i / 24)))) for i in range(25)})
        best = max(grid, key=worth)
        at = grid.index(best)
        low, high = float(grid[max(0, at - 1)]), float(grid[min(len(grid) - 1, at + 1)])
        if high - low < 3:
            break
    return best


def largest_comfortable_domain(*, n: int, guarantee: Guarantee) -> int:
    """Most cells for which n records can be released with a prior of at most a tenth; 0 where even two are too many."""
    if guarantee.delta == 0.0 and math.expm1(guarantee.per_record().epsilon) < 2 * (1 / LARGEST_PRIOR_WEIGHT - 1):
        return 0

    def comfortable(cells: int) -> bool:
        return plan_urn(n=n, cells=cells, guarantee=guarantee, records=n).prior_weight <= LARGEST_PRIOR_WEIGHT

    if not comfortable(2):
        return 0
    low, high = 2, 4
    while comfortable(high):
        low, high = high, 2 * high
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (middle, high) if comfortable(middle) else (low, middle)
    return low


def explain(chosen: UrnPlan, *, guarantee: Guarantee) -> tuple[str, ...]:
    """Public remarks on a chosen plan: why that number of records, and what a coarser domain would give."""
    if chosen.prior_weight <= LARGEST_PRIOR_WEIGHT:
        return ()
    remarks = [
        f"The prior that the guarantee needs weighs {chosen.prior_weight:.0%} of the released distribution; "
        f"{_are_worth(chosen.records)} about {about(chosen.effective_sample_size)} plain ones out of {chosen.n:,}."
    ]
    half = -(-chosen.cells // 2)
    if half >= 2:
        coarser = plan_urn(n=chosen.n, cells=half, guarantee=guarantee, records=chosen.records)
        remarks.append(
            f"With {half:,} cells in place of {chosen.cells:,} the prior would weigh {coarser.prior_weight:.0%} and as many "
            f"records would be worth about {about(coarser.effective_sample_size)}."
        )
    comfortable = largest_comfortable_domain(n=chosen.n, guarantee=guarantee)
    if 2 <= comfortable < chosen.cells:
        remarks.append(
            f"With {comfortable:,} cells or fewer, {chosen.n:,} records could be released with a prior of at most "
            f"{LARGEST_PRIOR_WEIGHT:.0%}."
        )
    return tuple(remarks)


def _are_worth(records: int | Unlimited) -> str:
    if records == UNLIMITED:
        return "unlimited records are worth"
    return "1 record is worth" if records == 1 else f"{records:,} records are worth"


def about(number: float) -> str:
    """A worth in records, to no more digits than it deserves."""
    return f"{number:,.0f}" if number >= 10.0 else f"{number:.2g}"
