"""What is said about the parameters of a statistic's `calibrated`: the command line makes its options of them.

A parameter without a note is an option under its own name, read as its type says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from privurn.exact_numbers import Number
from privurn.tables.numeric import Missing as MissingNumbers


@dataclass(frozen=True, kw_only=True)
class Told:
    """A note on a parameter: what help says, the option's name where that is another, and how what is typed is read."""

    help: str
    flag: str | None = None
    reads: Literal["text", "texts", "number", "bounds", "largest count"] = "text"
    needed: bool = False
    """Whether it must be typed although Python has a default."""


Response = Annotated[str, Told(help="The response; logistic: 0 or 1.", flag="y")]
Column = Annotated[str, Told(help="The column: of 0 and 1, or of counts.", flag="y")]
Covariates = Annotated[tuple[str, ...] | list[str], Told(help="A covariate; repeatable.", flag="x", reads="texts")]
ColumnBounds = Annotated[
    Mapping[str, tuple[Number, Number]] | tuple[Number, Number],
    Told(
        help="Public bounds, chosen without looking at the data: COLUMN=LOW:HIGH, repeatable; LOW:HIGH alone for all columns.",
        reads="bounds",
    ),
]
Upper = Annotated[
    int,
    Told(
        help="0:LARGEST or COLUMN=0:LARGEST, a public number chosen without looking at the data.",
        flag="bounds",
        reads="largest count",
        needed=True,
    ),
]
Squares = Annotated[
    Literal["plain", "complement"],
    Told(help="plain (default), or complement (less noise; needs epsilon-n of epsilon/10 or more)."),
]
Parts = Annotated[
    tuple[str, ...] | list[str], Told(help="Part of a composition; two or more times.", flag="part", reads="texts")
]
Floor = Annotated[
    float, Told(help="Smallest share, a public number chosen without looking at the data: 0.001.", reads="number")
]
Missing = Annotated[
    MissingNumbers,
    Told(help="Missing numbers: error (declared absent, default) or unreadable (the middle of the bounds, or 0)."),
]
