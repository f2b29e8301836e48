"""What can be asked of a distribution, and how it is written.

    mean, variance, sd, median, q0.9     of the only column; mean(age), q0.9(age) where there are several
    cdf(0.3), cdf(age, 0.3)              share of the numbers at or below 0.3
    P(x>0.75), P(18<=age<65), P(sex=f)   share of all records; x is the only column; a comma or "and" joins conditions
    P(day>=2024-03-01)                   dates count as days since 1970, in means and quantiles too
    log_odds_ratio                       of two columns with two values each, "other" and missing values left out
    discovery                            probability that the next record is a value not seen before (open labels only)

Mean, variance, quantiles and cdf speak about the records that are numbers; P about all of them, so that a missing value
fulfils no inequality. `P(x=missing)` and `P(x=other)` name the two special cells where the domain has them.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.domain.dates import days_since_1970
from privurn.errors import FormatError, ModelError

Kind = Literal["mean", "variance", "sd", "quantile", "cdf", "event", "function", "discovery", "log_odds_ratio"]

End = Literal["least", "most"]

EXAMPLES = "mean, variance, sd, median, q0.9, cdf(0.3), P(x>0.75), P(18<=age<65), P(sex=f), mean(age)"
QUOTING = """Text with signs or commas in it is quoted: ask="P(income='>50K')"; for example """

_WORD = r"""'[^']*'|"[^"]*"|[^'",()<>=!]+"""
_SIMPLE = re.compile(rf"^\s*(mean|variance|sd|median|q(?P<level>[0-9.eE+-]+))\s*(?:\(\s*(?P<column>{_WORD})\s*\))?\s*$")
_CDF = re.compile(rf"^\s*cdf\s*\(\s*(?:(?P<column>{_WORD}),)?(?P<at>[^,()]+)\)\s*$")
_EVENT = re.compile(r"^\s*P\s*\((?P<inner>.*)\)\s*$", re.DOTALL)
_TOKEN = re.compile(r"""\s*('[^']*'|"[^"]*"|<=|>=|==|!=|<|>|=|,|(?<=\s)and(?=\s))""")
_OPERATORS = ("<=", ">=", "==", "!=", "<", ">", "=")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Condition:
    """column `operator` value: a number for <, <=, >, >=, and text for = and !=."""

    column: str | None
    operator: str
    value: str | float


@dataclass(frozen=True, kw_only=True)
class Functional:
    """One number of a distribution. `name` is how it was written, and what results call it.

    `end`: the least, or the most, that it can be wherever in their bins the records lie.
    """

    name: str
    kind: Kind
    column: str | None = None
    at: float = math.nan
    conditions: tuple[Condition, ...] = ()
    function: Callable[[Any], Any] | None = None
    end: End | None = None


Asked = str | Callable[[Any], Any] | Functional


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}($|[ T])")


def parse_functionals(asked: Sequence[Asked] | Mapping[str, Asked] | Asked) -> tuple[Functional, ...]:
    """All that was asked for; a mapping gives names to functions.

    >>> [each.kind for each in parse_functionals(["mean", "q0.5", "P(x>0.75)"])]
    ['mean', 'quantile', 'event']
    """
    if isinstance(asked, (str, Functional)) or callable(asked):
        asked = [asked]
    if isinstance(asked, Mapping):
        pairs: list[tuple[str | None, Asked]] = [(str(name), each) for name, each in asked.items()]
    elif isinstance(asked, Iterable):
        pairs = [(None, each) for each in asked]
    else:
        pairs = [(None, asked)]  # refused below
    found = tuple(_parse(each, name) for name, each in pairs)
    if not found:
        raise FormatError("no functional was asked for.", hint=f"For example {EXAMPLES}")
    names = [each.name for each in found]
    if len(set(names)) != len(names):
        raise FormatError("the same functional was asked for twice.", hint="Functions are told apart by name: {'name': f, ...}")
    return found


def _parse(asked: Asked, name: str | None) -> Functional:
    if isinstance(asked, Functional):
        return asked
    if callable(asked):
        called = name or str(getattr(asked, "__name__", "function"))
        return Functional(name=called, kind="function", function=_numeric(asked, called))
    if not isinstance(asked, str):
        raise FormatError(f"an object of type {type(asked).__name__} is no functional.", hint=f"For example {EXAMPLES}")
    text = asked.strip()
    called = name or text
    if text == "discovery":
        return Functional(name=called, kind="discovery")
    if text == "log_odds_ratio":
        return Functional(name=called, kind="log_odds_ratio")
    if simple := _SIMPLE.match(text):
        return _simple(simple, called)
    if cdf := _CDF.match(text):
        return Functional(name=called, kind="cdf", column=_bare(cdf["column"]), at=_number(cdf["at"], text))
    if event := _EVENT.match(text):
        return Functional(name=called, kind="event", conditions=_conditions(event["inner"], text))
    raise _unknown(text)


def _numeric(function: Callable[[Any], Any], name: str) -> Callable[[Any], NDArray[np.float64]]:
    """The same function, whose answer must be numbers."""

    @wraps(function, updated=())
    def numbers(values: Any) -> NDArray[np.float64]:
        answer = function(values)
        try:
            found = np.asarray(answer)
            if found.dtype.kind in "biufO":
                return found.astype(np.float64)
        except (TypeError, ValueError):  # text among objects, lists of different lengths
            pass
        raise ModelError(
            f"the function {name!r} must return numbers, one for each value that it is given.",
            hint="For example lambda x: x > 3",
        )

    return numbers


def _simple(match: "re.Match[str]", name: str) -> Functional:
    word, column = match[1], _bare(match["column"])
    if word == "median":
        return Functional(name=name, kind="quantile", column=column, at=0.5)
    if word in ("mean", "variance", "sd"):
        kind: Kind = "mean" if word == "mean" else "variance" if word == "variance" else "sd"
        return Functional(name=name, kind=kind, column=column)
    level = _number(match["level"], name)
    if not 0.0 < level < 1.0:
        raise FormatError(f"the quantile {name!r} is not between 0 and 1.", hint="For example q0.5 for the median")
    return Functional(name=name, kind="quantile", column=column, at=level)


def _conditions(inner: str, text: str) -> tuple[Condition, ...]:
    found: list[Condition] = []
    for part in _split(inner, text):
        words, signs = part[0::2], part[1::2]
        if not all(words) or not signs:
            raise _unknown(text)
        if len(signs) == 2:  # low < x < high
            if not all(sign in ("<", "<=") for sign in signs):
                raise FormatError(f"the range in {text!r} is not understood.", hint="For example P(18<=age<65)")
            column = _bare(words[1])
            found.append(Condition(column, _MIRRORED[signs[0]], _number(words[0], text)))
            found.append(Condition(column, signs[1], _number(words[2], text)))
        elif len(signs) == 1:
            found.append(_one_condition(words[0], signs[0], words[1], text))
        else:
            raise _unknown(text)
    return tuple(found)


def _one_condition(left: str, sign: str, right: str, text: str) -> Condition:
    if sign in ("=", "=="):
        return Condition(_bare(left), "=", _bare(right) or "")
    if sign == "!=":
        return Condition(_bare(left), "!=", _bare(right) or "")
    if _is_number(left) and not _is_number(right):
        return Condition(_bare(right), _MIRRORED[sign], _number(left, text))
    return Condition(_bare(left), sign, _number(right, text))


def _split(inner: str, text: str) -> list[list[str]]:
    """Conditions, each as word, operator, word, ..."""
    parts: list[list[str]] = [[""]]
    position = 0
    while position < len(inner):
        token = _TOKEN.match(inner, position)
        if token is None:
            parts[-1][-1] += inner[position]
            position += 1
            continue
        word = token[1]
        if word in (",", "and"):
            parts.append([""])
        elif word in _OPERATORS:
            parts[-1] += [word, ""]
        else:
            if parts[-1][-1].strip():
                raise _unknown(text)
            parts[-1][-1] = word
        position = token.end()
    return [[word.strip() for word in part] for part in parts]


def _bare(word: str | None) -> str | None:
    if word is None:
        return None
    word = word.strip()
    return word[1:-1] if len(word) >= 2 and word[0] == word[-1] and word[0] in "'\"" else word


def _as_number(word: str) -> float:
    """A number, or a date as days since 1970, as they stand in conditions; NaN where it is neither."""
    bare = _bare(word) or ""
    try:
        return days_since_1970(bare) if _DATE.match(bare) else float(word)
    except ValueError:
        return math.nan


def _is_number(word: str) -> bool:
    return math.isfinite(_as_number(word))


def _number(word: str, text: str) -> float:
    if not _is_number(word):
        raise FormatError(f"{word.strip()!r} in {text!r} is not a number.", hint=QUOTING + EXAMPLES)
    return _as_number(word)


def _unknown(text: str) -> FormatError:
    example = QUOTING if "(" in text else "For example "
    return FormatError(f"the functional {text!r} is not understood.", hint=f"{example}{EXAMPLES}")
