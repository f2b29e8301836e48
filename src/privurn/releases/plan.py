"""What can be released for a guarantee, from public quantities alone: n, the size of the domain, epsilon and delta."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from privurn.errors import CalibrationError, DomainError
from privurn.mechanisms.dirichlet_multinomial import effective_sample_size
from privurn.mechanisms.label_discovery import calibrate_discovery
from privurn.mechanisms.perturbed_histogram import MOST_CELLS, PerturbedHistogram, calibrate_perturbed_histogram
from privurn.mechanisms.posterior_sample import PosteriorSample, calibrate_posterior_sample
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram, calibrate_smoothed_histogram
from privurn.privacy.calibration import largest_records, round_up_to_rational, smallest_alpha
from privurn.privacy.laws.noisy_counts import Noise
from privurn.privacy.laws.urn import UNLIMITED, DirichletProcessProfile, PitmanYorProfile, Unlimited
from privurn.privacy.profile import Guarantee

LARGEST_PRIOR_WEIGHT = 0.10
SHARE_OF_LIMIT = 0.90
MOST_TIMES_N = 10
NEARLY_UNIFORM = 0.99

HistogramMechanism = PerturbedHistogram | SmoothedHistogram | PosteriorSample


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
    """Smallest prior for a given number of records."""
    single = guarantee.per_record()
    alpha = smallest_alpha(n=n, cells=cells, records=records, epsilon=single.epsilon, delta=single.delta)
    return UrnPlan(n=n, cells=cells, records=records, alpha=round_up_to_rational(alpha))


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
        return plan_urn(n=n, cells=cells, guarantee=guarantee, records=_argmax(worth, most))
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


def _argmax(worth: Callable[[int], float], most: int) -> int:
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
        f"{_are_worth(chosen.records)} about {_about(chosen.effective_sample_size)} plain ones out of {chosen.n:,}."
    ]
    half = -(-chosen.cells // 2)
    if half >= 2:
        coarser = plan_urn(n=chosen.n, cells=half, guarantee=guarantee, records=chosen.records)
        remarks.append(
            f"With {half:,} cells in place of {chosen.cells:,} the prior would weigh {coarser.prior_weight:.0%} and as many "
            f"records would be worth about {_about(coarser.effective_sample_size)}."
        )
    comfortable = largest_comfortable_domain(n=chosen.n, guarantee=guarantee)
    if 2 <= comfortable < chosen.cells:
        remarks.append(
            f"With {comfortable:,} cells or fewer, {chosen.n:,} records could be released with a prior of at most "
            f"{LARGEST_PRIOR_WEIGHT:.0%}."
        )
    return tuple(remarks)


def explain_histogram(chosen: HistogramMechanism, *, guarantee: Guarantee) -> tuple[str, ...]:
    """Public remarks on a histogram release; none where the number of confidential records is secret."""
    if chosen.n is None:
        return ()
    remarks = []
    if chosen.cells > chosen.n:
        remarks.append(
            f"There are more cells ({chosen.cells:,}) than confidential records ({chosen.n:,}): most of them are empty."
        )
    if isinstance(chosen, PerturbedHistogram):
        if chosen.publish == "records" and chosen.noise_share > LARGEST_PRIOR_WEIGHT:
            remarks.append(
                f"Where most cells are empty, noise in them makes up to about {chosen.noise_share:.0%} of the released records."
            )
    elif isinstance(chosen, SmoothedHistogram):
        remarks += _explain_smoothing(chosen, guarantee)
    elif chosen.prior_weight > LARGEST_PRIOR_WEIGHT:
        remarks.append(
            f"The prior that the guarantee needs weighs {chosen.prior_weight:.0%} of the released probabilities, which are "
            f"worth about {chosen.effective_sample_size:,.0f} plain records."
        )
    return tuple(remarks)


def _are_worth(records: int | Unlimited) -> str:
    if records == UNLIMITED:
        return "unlimited records are worth"
    return "1 record is worth" if records == 1 else f"{records:,} records are worth"


def _about(number: float) -> str:
    return f"{number:,.0f}" if number >= 10.0 else f"{number:.2g}"


def _explain_smoothing(chosen: SmoothedHistogram, guarantee: Guarantee) -> list[str]:
    weight = float(chosen.weight)
    if weight <= LARGEST_PRIOR_WEIGHT:
        return []
    tells = f"The uniform has weight {weight:.6g}"
    if weight >= NEARLY_UNIFORM:
        tells = f"The release is nearly uniform noise: the uniform has weight {weight:.10g}"
    copies = float(chosen.records * (1 - chosen.weight))
    remarks = [
        f"{tells}; about {_about(copies)} of the {chosen.records:,} released records come from the data, and the release is "
        f"worth about {_about(chosen.effective_sample_size)} plain records."
    ]

    def worth(records: int) -> float:
        fewer = calibrate_smoothed_histogram(n=chosen.n, cells=chosen.cells, guarantee=guarantee, records=records)
        return fewer.effective_sample_size

    if chosen.cells > 2 and chosen.records > 1:  # two cells are slow to calibrate
        best = _argmax(worth, chosen.records)
        if best < chosen.records and worth(best) > 1.1 * chosen.effective_sample_size:
            remarks.append(
                f"{'1 record needs' if best == 1 else f'{best:,} records need'} less of it and would be worth about "
                f"{_about(worth(best))} (--records {best})."
            )
    return remarks


@dataclass(frozen=True, kw_only=True)
class Option:
    """One line of `privurn plan`: a way to release, and what it would be worth."""

    mechanism: str
    records: int | Unlimited
    alpha: float | None
    prior_weight: float | None
    effective_sample_size: float | None
    remark: str


def options(*, n: int, cells: int | None, guarantee: Guarantee, strength: float = 1.0, discount: float = 0.5) -> list[Option]:
    """Every way this project can release n records under the guarantee; `cells` is None for open labels."""
    if n == 1:
        raise DomainError("of one record nothing can be released: nothing can hide it.", hint="Plan for at least two records")
    found: list[Option] = []
    if cells is not None:
        plans: dict[str, UrnPlan] = {}
        plans["n records"] = plan_urn(n=n, cells=cells, guarantee=guarantee, records=n)
        default = plan_default(n=n, cells=cells, guarantee=guarantee)
        if default.records != n:
            plans["default: most of the data"] = default
        if guarantee.delta > 0.0:
            plans["unlimited: the cell probabilities"] = plan_urn(n=n, cells=cells, guarantee=guarantee, records=UNLIMITED)
        for remark, plan in plans.items():
            mark = "default: n records" if plan is default or (plan.records == default.records) else remark
            found.append(
                Option(
                    mechanism="dirichlet-multinomial",
                    records=plan.records,
                    alpha=float(plan.alpha),
                    prior_weight=plan.prior_weight,
                    effective_sample_size=plan.effective_sample_size,
                    remark=mark if plan.records == n else remark,
                )
            )
        found += _histogram_options(n=n, cells=cells, guarantee=guarantee)
    found += _open_domain_options(n=n, guarantee=guarantee, strength=strength, discount=discount)
    if cells is None:
        found.insert(0, _discovery_option(n=n, guarantee=guarantee))
    return found


def _histogram_options(*, n: int, cells: int, guarantee: Guarantee) -> list[Option]:
    """Perturbed and smoothed histograms of n records, and one posterior sample; a noisy count has no effective sample size."""
    noises: tuple[Noise, ...] = ("discrete-laplace",) if guarantee.delta == 0.0 else ("discrete-laplace", "discrete-gaussian")
    found = []
    for noise in noises if cells <= MOST_CELLS else ():
        perturbed = calibrate_perturbed_histogram(n=n, cells=cells, guarantee=guarantee, noise=noise)
        found.append(
            Option(
                mechanism=perturbed.name,
                records=n,
                alpha=None,
                prior_weight=None,
                effective_sample_size=None,
                remark=f"{noise} noise, standard deviation {perturbed.noise_deviation:.4g} on each count",
            )
        )
    smoothed = calibrate_smoothed_histogram(n=n, cells=cells, guarantee=guarantee)
    found.append(
        Option(
            mechanism=smoothed.name,
            records=n,
            alpha=None,
            prior_weight=float(smoothed.weight),
            effective_sample_size=smoothed.effective_sample_size,
            remark="n records",
        )
    )
    if guarantee.delta > 0.0:
        sample = calibrate_posterior_sample(n=n, cells=cells, guarantee=guarantee)
        found.append(
            Option(
                mechanism=sample.name,
                records=sample.records,
                alpha=float(sample.urn.prior_total) / cells,
                prior_weight=sample.prior_weight,
                effective_sample_size=sample.effective_sample_size,
                remark="the cell probabilities, as frequencies of so many urn draws",
            )
        )
    return found


def _open_domain_options(*, n: int, guarantee: Guarantee, strength: float, discount: float) -> list[Option]:
    single = guarantee.per_record()
    urns = {
        "dirichlet-process": DirichletProcessProfile(n=n, records=1, strength=strength),
        "pitman-yor": PitmanYorProfile(n=n, records=1, strength=strength, discount=discount),
    }
    found = []
    for name, profile in urns.items():
        records = largest_records(profile, epsilon=single.epsilon, delta=single.delta)
        shape = f"strength {strength:g}" + (f", discount {discount:g}" if name == "pitman-yor" else "")
        impossible = records == 0
        worth = None if impossible else effective_sample_size(n=n, prior_total=max(strength, 0.0), records=float(records))
        found.append(
            Option(
                mechanism=name,
                records=records,
                alpha=None,
                prior_weight=None if impossible else strength / (strength + n),
                effective_sample_size=worth,
                remark=f"{shape}; delta is below what one record costs" if impossible else f"{shape}; the most records",
            )
        )
    return found


def _discovery_option(*, n: int, guarantee: Guarantee) -> Option:
    epsilon, delta, k = guarantee.epsilon / 2, guarantee.delta / 2, guarantee.contributions
    try:
        threshold = calibrate_discovery(epsilon=epsilon, delta=delta, contributions=k).threshold
        remark = f"labels need about {threshold:,} records to be named; half of the budget each"
    except CalibrationError:
        remark = "needs a positive delta" if delta == 0.0 else "needs a larger epsilon"
    return Option(
        mechanism="label-discovery",
        records=n,
        alpha=None,
        prior_weight=None,
        effective_sample_size=None,
        remark=remark,
    )
