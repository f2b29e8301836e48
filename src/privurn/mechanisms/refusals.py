"""Refuse a mechanism that does not meet a guarantee, and say which three things nearby do: what to type is in each of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from privurn.errors import CalibrationError
from privurn.exact_numbers import decimal_text
from privurn.mechanisms.alternatives import (
    OTHER_WAYS,
    delta_for,
    epsilon_for,
    first_three,
    meets,
    other_ways,
    rounded_up,
)
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import FreshLabels, PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample, calibrate_posterior_sample
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram, calibrate_smoothed_histogram
from privurn.privacy.calibration import largest_records, smallest_alpha
from privurn.privacy.histogram_calibration import largest_smoothed_records
from privurn.privacy.laws.add_remove import (
    AddRemoveDirichletMultinomialProfile,
    largest_records_add_remove,
    smallest_alpha_add_remove,
)
from privurn.privacy.laws.urn import Unlimited
from privurn.privacy.profile import Guarantee

Urn = DirichletMultinomial | PitmanYor
Insisted = Urn | PerturbedHistogram | SmoothedHistogram | PosteriorSample

EXAMPLE_DELTA = "1e-6"
WEAK_EPSILON, WEAK_DELTA = 10.0, 0.1
"""A guarantee beyond these is hardly one: offered only where there is nothing else."""


def insist(chosen: Insisted, wanted: Guarantee, *, given: Sequence[str] = ()) -> None:
    """Refuse what does not meet the guarantee; `given` are the options typed that another mechanism would not know."""
    if meets(chosen.profile, wanted):
        return
    if isinstance(chosen, DirichletMultinomial):
        message, found = f"{_records(chosen.records)} with this alpha would cost more than the guarantee.", _urn(chosen, wanted)
    elif isinstance(chosen, PitmanYor):
        message = (
            f"for {_records(chosen.records)} the {chosen.name} urn needs a larger delta: with that probability it copies a "
            "record that nobody shares."
        )
        found = _open_domain_urn(chosen, wanted)
    elif isinstance(chosen, SmoothedHistogram):
        message = f"{_records(chosen.records)} from the histogram with this smoothing would cost more than the guarantee."
        found = _smoothed(chosen, wanted)
    elif isinstance(chosen, PosteriorSample):
        sample = "a posterior sample" if chosen.draws == 1 else f"{chosen.draws:,} posterior samples"
        message, found = f"{sample} with this alpha would cost more than the guarantee.", _posterior_sample(chosen, wanted)
    else:
        message, found = "the noise does not meet the guarantee.", iter(())
    raise CalibrationError(message, alternatives=first_three(_and_others(found, chosen, wanted, given)))


def _and_others(found: Iterator[str], chosen: Insisted, wanted: Guarantee, given: Sequence[str]) -> Iterator[str]:
    """The mechanism's own, other mechanisms, and at last guarantees that are hardly any."""
    yield from found
    yield from _wider(chosen, wanted)
    if isinstance(chosen, PitmanYor):
        yield from _after_urn(chosen, wanted)
    else:
        names = [name for name in OTHER_WAYS if chosen.n is not None or name != "smoothed-histogram"]
        yield from other_ways(but=chosen.name, leave=given, names=names)
    yield from _wider(chosen, wanted, weak=True)


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number:,} records"


def _fewer(most: int | Unlimited, words: str) -> Iterator[str]:
    if isinstance(most, int) and most > 0:
        yield f"at most {_records(most)} {words}: --records {most}"


def _wider(chosen: Insisted, wanted: Guarantee, *, weak: bool = False) -> Iterator[str]:
    """The same release under a weaker guarantee, or, with `weak`, under one that hardly is one."""
    epsilon = epsilon_for(chosen.profile, wanted)
    if epsilon is not None and (float(epsilon) > WEAK_EPSILON) == weak:
        yield f"the same release at a larger epsilon: --epsilon {epsilon}"
    delta = delta_for(chosen.profile, wanted)
    if delta is not None and (float(delta) > WEAK_DELTA) == weak:
        yield f"the same release at a larger delta: --delta {delta}"


def _urn(urn: DirichletMultinomial, wanted: Guarantee) -> Iterator[str]:
    single = wanted.per_record()
    yield from _fewer(_most_records(urn, single), "with this alpha")
    alpha = rounded_up(_least_alpha(urn, single))
    yield f"a prior of at least {alpha} in every cell for {_records(urn.records)}: --alpha {alpha}"


def _open_domain_urn(urn: PitmanYor, wanted: Guarantee) -> Iterator[str]:
    yield from _fewer(_most_records(urn, wanted.per_record()), "at the same guarantee")
    if not isinstance(urn.base, FreshLabels):
        yield "the Dirichlet-multinomial urn, any number of records at this guarantee: --mechanism auto"
        return
    delta = "" if wanted.delta > 0.0 else f" --delta {EXAMPLE_DELTA}"
    yield f"labels named by noisy counts, the rare ones as other, any number of records: --mechanism auto{delta}"


def _after_urn(urn: PitmanYor, wanted: Guarantee) -> Iterator[str]:
    """Fewer records at a larger delta; other mechanisms on a public domain, which open labels do not have."""
    if urn.records > 1 and (delta := delta_for(replace(urn, records=1).profile, wanted)) is not None:
        yield f"one single record at a larger delta: --records 1 --delta {delta}"
    if not isinstance(urn.base, FreshLabels):
        yield from other_ways(but=urn.name, names=["perturbed-histogram", "smoothed-histogram"])
        return
    larger = f"{max(1e-5, 10.0 * wanted.delta):.1g}"
    if float(larger) <= WEAK_DELTA:
        yield f"labels named by noisy counts, fewer of them as other: --mechanism auto --delta {larger}"


def _smoothed(chosen: SmoothedHistogram, wanted: Guarantee) -> Iterator[str]:
    single = wanted.per_record()
    most = largest_smoothed_records(
        n=chosen.n, bins=chosen.cells, weight=chosen.profile.weight, epsilon=single.epsilon, delta=single.delta
    )
    yield from _fewer(most, "with this smoothing")
    least = calibrate_smoothed_histogram(n=chosen.n, cells=chosen.cells, guarantee=wanted, records=chosen.records).weight
    weight = decimal_text(least)
    yield f"a weight of at least {weight} for {_records(chosen.records)}: --smoothing {weight}"


def _posterior_sample(chosen: PosteriorSample, wanted: Guarantee) -> Iterator[str]:
    least = calibrate_posterior_sample(
        n=chosen.n, cells=chosen.cells, guarantee=wanted, records=chosen.records, draws=chosen.draws
    ).urn.prior_total
    alpha = rounded_up(float(least / chosen.cells), digits=8)
    yield f"a prior of at least {alpha} in every cell: --alpha {alpha}"


def _most_records(urn: Urn, single: Guarantee) -> int | Unlimited:
    profile, pair = urn.profile, {"epsilon": single.epsilon, "delta": single.delta}
    if isinstance(profile, AddRemoveDirichletMultinomialProfile):
        return largest_records_add_remove(cells=profile.cells, alpha=profile.alpha, prior_total=profile.prior_total, **pair)
    return largest_records(profile, **pair)


def _least_alpha(urn: DirichletMultinomial, single: Guarantee) -> float:
    pair = {"epsilon": single.epsilon, "delta": single.delta}
    if urn.n is None:
        return smallest_alpha_add_remove(cells=urn.cells, records=urn.records, **pair)
    return smallest_alpha(n=urn.n, cells=urn.cells, records=urn.records, **pair)
