"""What can be released for a guarantee, from public quantities alone: n, the size of the domain, epsilon and delta."""

from dataclasses import dataclass

from privurn.errors import CalibrationError, DomainError
from privurn.mechanisms.label_discovery import calibrate_discovery
from privurn.mechanisms.perturbed_histogram import MOST_CELLS, calibrate_perturbed_histogram
from privurn.mechanisms.posterior_sample import calibrate_posterior_sample
from privurn.mechanisms.smoothed_histogram import calibrate_smoothed_histogram
from privurn.mechanisms.urn_plan import UrnPlan, effective_sample_size, plan_default, plan_urn
from privurn.privacy.calibration import largest_records
from privurn.privacy.laws.noisy_counts import Noise
from privurn.privacy.laws.urn import UNLIMITED, DirichletProcessProfile, PitmanYorProfile, Unlimited
from privurn.privacy.profile import Guarantee


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
