"""What must be known before a posterior is used, in the same words whatever was released.

Four things are said of a posterior: that chains have not mixed; that the release tells little, which is measured against the
prior on what was asked for; that the prior decides, because the posterior is further from the unbiased estimate than chance
explains or because one weight is the prior of many cells; and that many records seem to lie at the bounds. Of a maximum of the
likelihood it is said that it was not found. `say` gives them as Python warnings; the command line prints the same sentences.
"""

import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from privurn.errors import InferenceWarning, MuchClamped, NoMaximum, NotMixed, PriorDecides, TellsLittle
from privurn.inference.draws import Summary


class Cautious(Protocol):
    """What has something to say before it is used."""

    def cautions(self) -> tuple[InferenceWarning, ...]:
        """Its warnings."""


P = TypeVar("P", bound=Cautious)

WIDE = 0.5
"""A release tells little where the posterior's interval is wider than this part of the prior's."""

FALSE_ALARM = 0.01
"""Of an analysis whose prior is right: how often it is said that the prior decides, at most about."""

CLAMPED = 0.05
"""Share of the records at a bound, or beyond it, that is said."""

PRIOR_DRAWS = 400

NAMED = 3


def not_mixed(problems: Sequence[str], *, draws: int) -> tuple[NotMixed, ...]:
    """Where there are problems of mixing."""
    if not problems:
        return ()
    return (NotMixed(f"the chains have NOT mixed after {draws:,} draws each: {_few(problems)} Do not trust these figures."),)


def tells_little(rows: Sequence[Summary], prior: Mapping[str, NDArray[Any]]) -> tuple[TellsLittle, ...]:
    """Where an interval is nearly as wide as the prior's, which holds the posterior mean. `prior`: draws by name."""
    wide = {}
    for row in rows:
        drawn = prior.get(row.name, np.empty(0))
        drawn = drawn[np.isfinite(drawn)]
        if not len(drawn):
            continue
        lower, upper = np.quantile(drawn, [0.5 - row.level / 2.0, 0.5 + row.level / 2.0])
        if lower <= row.mean <= upper and row.upper - row.lower > WIDE * (upper - lower):
            wide[row.name] = (row.upper - row.lower) / (upper - lower) if upper > lower else 1.0
    if not wide:
        return ()
    told = _listed([f"{name} ({ratio:.0%} of the prior's)" for name, ratio in wide.items()])
    return (
        TellsLittle(
            f"the release tells little: intervals are more than half as wide as before it was seen, of {told}. More records, a "
            "larger epsilon or a coarser question would show more."
        ),
    )


def prior_decides(rows: Sequence[Summary]) -> tuple[PriorDecides, ...]:
    """Where posterior and unbiased estimate are further apart than chance explains.

    Where the prior is right, their difference has the variance of the unbiased estimate less the posterior's; it counts as no
    less than a quarter of the former. Noise may have Laplace tails, and so has the bound.
    """
    known = [row for row in rows if row.unbiased is not None and row.unbiased_error is not None and row.unbiased_error > 0.0]
    if not known:
        return ()
    most = math.log(len(known) / FALSE_ALARM) / math.sqrt(2.0)
    apart = []
    for row in known:
        unbiased, error = row.unbiased or 0.0, row.unbiased_error or 0.0
        spread = math.sqrt(max(error**2 - row.deviation**2, 0.25 * error**2))
        if abs(row.mean - unbiased) > most * spread + 3.0 * row.standard_error:
            apart.append(f"{row.name} ({row.mean:.5g}; without a prior {unbiased:.5g} +- {error:.2g})")
    if not apart:
        return ()
    return (
        PriorDecides(
            f"posterior and unbiased estimate disagree by more than chance: {_listed(apart)}. The prior decides these figures; "
            "report both, or try another prior."
        ),
    )


def one_weight(cells: int) -> tuple[PriorDecides, ...]:
    """Where one weight is the prior of all of so many cells, for want of a better one."""
    return (
        PriorDecides(
            f"one prior weight stands for all {cells:,} cells: it keeps noise on empty cells as records, and means and tails "
            "may be too large by more than the intervals say. One release of noisy counts or of a noisy tree, or of an urn "
            "with a public number of records, has a better prior."
        ),
    )


def much_clamped(shares: Mapping[str, float]) -> tuple[MuchClamped, ...]:
    """Where much of a column seems to lie at a bound or beyond it. `shares`: by column, or by where in it."""
    told = [f"{share:.0%} of {name}" for name, share in shares.items() if share > CLAMPED]
    if not told:
        return ()
    return (
        MuchClamped(
            f"much seems to have been clamped: about {_listed(told)}. Means and tails know nothing of how far beyond the "
            "bounds those values lay; wider bounds would show it."
        ),
    )


def no_maximum(problems: Sequence[str]) -> tuple[NoMaximum, ...]:
    """Where there are problems of a maximum."""
    return (NoMaximum(f"the maximum of the likelihood is NOT to be trusted: {_few(problems)}"),) if problems else ()


def say(found: P, *, only: type[InferenceWarning] = InferenceWarning) -> P:
    """Give the warnings of a result, at the line outside this package that asked for it; the result is given back."""
    for each in found.cautions():
        if isinstance(each, only):
            warnings.warn(each, stacklevel=_outside())
    return found


@contextmanager
def unsaid() -> Iterator[None]:
    """No warnings of inferences meanwhile: whoever asked says them in a way of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        yield


def _outside() -> int:
    """How many frames above the caller the first one outside this package is."""
    frame, level = sys._getframe(1), 0
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "privurn":
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    return level + 1


def _few(sentences: Sequence[str]) -> str:
    return " ".join(sentences[:NAMED]) + (f" And {len(sentences) - NAMED} more." if len(sentences) > NAMED else "")


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:NAMED]) + (f" and {len(words) - NAMED:,} more" if len(words) > NAMED else "")
