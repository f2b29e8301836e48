"""What can be had in place of a refused request, in words that end with what to type.

Every alternative ends like ": --records 120", after which the same command is accepted. Numbers are therefore rounded to the
private side, and pairs are tried before they are offered. Everything is computed from public quantities.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from itertools import islice

from privurn.errors import ModelError
from privurn.privacy.profile import LARGEST_EPSILON, SMALLEST_DELTA, Guarantee, PrivacyProfile

NUMBER = 3
"""How many a refusal offers."""

DIGITS = 5
LONGEST_WIDENING = 40

OTHER_WAYS = {
    "auto": "the Dirichlet-multinomial urn at the same guarantee",
    "perturbed-histogram": "records from noisy counts at the same guarantee",
    "smoothed-histogram": "records from the histogram mixed with the uniform, at the same guarantee",
    "posterior-sample": "cell probabilities at the same guarantee",
}


def rounded_up(value: float, *, digits: int = DIGITS) -> str:
    """A short decimal number, at least `value` also when it is read back.

    >>> rounded_up(1.23456789), rounded_up(2.0), rounded_up(1e-7)
    ('1.2346', '2', '1e-7')
    """
    return f"{Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value)).normalize():g}"


def first_three(found: Iterable[str]) -> tuple[str, ...]:
    """The nearest three."""
    return tuple(islice(found, NUMBER))


def listed(found: Iterable[str]) -> str:
    """The hint of an error that is no question of the guarantee, as a CalibrationError would write it."""
    return "What can be had:\n" + "\n".join(f"    - {each}" for each in first_three(found))


def without(options: Sequence[str]) -> str:
    """What must not be typed with it."""
    return f" (leave {', '.join(options)} out)" if options else ""


def other_ways(*, but: str, leave: Sequence[str] = (), names: Iterable[str] = OTHER_WAYS) -> Iterator[str]:
    """Other mechanisms on the same public domain; `leave` are options that they do not know."""
    for name in names:
        if name != but:
            own = [*leave, "--records"] if name == "posterior-sample" else leave  # its records are its resolution
            yield f"{OTHER_WAYS[name]}: --mechanism {name}{without(own)}"


def meets(profile: PrivacyProfile, guarantee: Guarantee) -> bool:
    """Whether a profile of one record keeps the guarantee for all that one person may own."""
    single = guarantee.per_record()
    return profile.delta(single.epsilon) <= single.delta


def epsilon_for(profile: PrivacyProfile, wanted: Guarantee) -> str | None:
    """The epsilon to type at which this profile would do at the same delta."""
    return _tried(
        _unit(profile, wanted).epsilon(wanted.delta), LARGEST_EPSILON, lambda e: meets(profile, replace(wanted, epsilon=e))
    )


def delta_for(profile: PrivacyProfile, wanted: Guarantee) -> str | None:
    """The delta to type at which this profile would do at the same epsilon."""
    start = max(SMALLEST_DELTA, _unit(profile, wanted).delta(wanted.epsilon))
    return _tried(start, 0.999, lambda d: meets(profile, replace(wanted, delta=d)))


def _unit(profile: PrivacyProfile, wanted: Guarantee) -> PrivacyProfile:
    return profile.group(wanted.contributions)


def _tried(start: float, most: float, accepted: Callable[[float], bool]) -> str | None:
    """From `start` upwards the first number that is accepted; None where that would be beyond `most`."""
    value = start
    for _ in range(LONGEST_WIDENING):  # shares of one person are rounded down on the way, so start may be a hair short
        if not 0.0 < value <= most:
            return None
        text = rounded_up(value)
        try:
            if accepted(float(text)):
                return text
        except ModelError:
            return None
        value = float(text) * (1.0 + 1e-4)
    return None
