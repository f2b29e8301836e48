"""What a user asks for: a mechanism with some of its parameters left open, which calibration fills in.

A recipe stands beside its mechanism. Its fields are all that it understands, here and on the command line, where each of them
is an option.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

from privurn.counts import MOST_PUBLISHED
from privurn.domain import JointDomain, TableDomain
from privurn.errors import Alternative, ModelError, PrivurnError
from privurn.mechanisms.alternatives import meets
from privurn.mechanisms.forecast import Expected
from privurn.mechanisms.mechanism import Mechanism
from privurn.privacy.laws.urn import Unlimited
from privurn.privacy.profile import Guarantee

MOST_RECORDS = 2 * 10**8
"""Records that are drawn in memory, a few bytes each; more, where no cluster writes them, are refused before payment."""
EXAMPLE_RECORDS = 1000
EXAMPLE_DELTA = 1e-6


@dataclass(frozen=True, kw_only=True)
class Public:
    """All that calibration may look at."""

    n: int | None
    """Number of confidential records; None where that is secret."""
    cells: int | None
    """Cells of the public domain; None for labels that nobody listed."""
    guarantee: Guarantee
    domain: JointDomain | None = None
    """The domain itself, for mechanisms that look at more than its size."""
    table: TableDomain | None = None
    """Columns side by side, for mechanisms on whole tables; `cells` are then those of all columns, one after the other."""
    in_parts: bool = False
    """Whether a cluster may write what is released, so that it need not fit in memory."""
    guess: int | None = None
    """A public guess of a secret n, by which a plan tells what to expect; no calibration looks at it."""

    def __post_init__(self) -> None:
        if (self.n is None) != (self.guarantee.neighbouring == "add-remove"):
            raise ModelError("the number of records is public with replace-one neighbours, and with them only.")

    @property
    def about_n(self) -> int:
        """Number of records, or the guess of it."""
        return self.known_n if self.guess is None else self.guess

    @property
    def known_n(self) -> int:
        """Number of records, where it is public."""
        if self.n is None:
            raise ModelError("this needs the number of confidential records, which is secret here.")
        return self.n

    @property
    def known_cells(self) -> int:
        """Cells, where the domain is public."""
        if self.cells is None:
            raise ModelError("this needs a public domain.")
        return self.cells


@dataclass(frozen=True, kw_only=True)
class Option:
    """One line of a plan: a way to release, and what it would be worth.

    `effective_sample_size` is only told of a number of records that does not follow epsilon: among equal numbers it falls when
    epsilon falls. `expected`: errors of the published records, under a prior. `made`: the mechanism, for that forecast.
    `asked`: what to ask a release for; None where no release makes records of it.
    """

    mechanism: str
    records: int | Unlimited
    alpha: float | None = None
    prior_weight: float | None = None
    effective_sample_size: float | None = None
    expected: Expected | None = None
    remark: str
    made: Mechanism | None = field(default=None, repr=False, compare=False)
    asked: "Recipe | None" = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        found = {each.name: getattr(self, each.name) for each in fields(self) if each.compare}
        return {**found, "expected": None if self.expected is None else asdict(self.expected)}


def option(words: str, *, default: Any = None, flag: str | None = None) -> Any:
    """A field that is an option of the command line as well: what its help says, and its name where that is another."""
    return field(default=default, metadata={"help": words, "flag": flag})


@dataclass(frozen=True, kw_only=True, repr=False)
class Asked:
    """Something asked for by name and fields; shown with the fields that were given."""

    alias: ClassVar[str]
    """What the command line calls it."""
    reads: ClassVar[str] = "cells"
    """What it needs of the data: counts of "cells", single "records", or "sums" over them."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"

    @property
    def given(self) -> Mapping[str, Any]:
        """The fields that were given, with their values."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name)) != each.default}


@dataclass(frozen=True, kw_only=True, repr=False)
class Recipe(Asked, ABC):
    """A mechanism as it is asked for. The constructor only stores; `check` and `calibrate` refuse.

    How to add one: a frozen dataclass beside the mechanism with the class variables and methods below, and an entry in
    `registry.py`. Fields made by `option` are options of the command line.
    """

    offered: ClassVar[str | None] = None
    """How it is offered in place of a mechanism that is refused; None: it is not."""
    keeps_n_secret: ClassVar[bool] = False
    """Whether it can keep the number of confidential records secret."""
    needs_domain: ClassVar[bool] = True
    """Whether it needs a public domain; else open labels will do."""
    discovers: ClassVar[bool] = False
    """Whether it first decides, for part of the budget (`split`), which open labels may be named (`then`)."""
    certifiable: ClassVar[bool] = True
    """Whether what it makes has a certificate; else it can be compared and not released."""
    whole_tables: ClassVar[bool] = False
    """Whether it is for tables with their columns side by side (`TableDomain`); else for cells taken jointly."""

    records: int | None = option("How many records to release. Default: chosen from public quantities.")

    @property
    def publishes_records(self) -> bool:
        """Whether records are published; else a number for each cell."""
        return True

    @property
    def has_size(self) -> bool:
        """Whether all is said that a release needs where the number of confidential records is secret."""
        return self.records is not None or not self.publishes_records

    def sized(self, records: int) -> "Recipe":
        """With a public number where the confidential one is secret."""
        return replace(self, records=records)

    def check(self) -> None:
        """What can be refused before anything public is known."""
        if self.records is None:
            return
        if not math.isfinite(self.records) or int(self.records) != self.records:
            raise ModelError("the number of released records must be a whole number.", hint="For example records=1000")
        if self.records < 1:
            raise ModelError("the number of released records must be at least 1.", hint="Leave it out for a sensible default")
        check_records(self.records, in_parts=True)  # where they are made is not known yet

    def makes_parts(self, mechanism: Mechanism, public: Public) -> bool:
        """Whether records need not be in memory at once where a cluster writes them."""
        return mechanism.draws_blocks

    def check_room(self, mechanism: Mechanism, public: Public) -> None:
        """As many records as can be released, before anything is paid; those made of measurements afterwards too."""
        in_parts = public.in_parts and self.makes_parts(mechanism, public)
        check_records(mechanism.records, in_parts=in_parts)
        if mechanism.makes_records:
            each = self.records or public.n or getattr(self, "guess", None) or 0
            check_records(getattr(self, "copies", 1) * each, in_parts=in_parts)

    @abstractmethod
    def calibrate(self, public: Public) -> Mechanism:
        """The mechanism with the open parameters filled in, for the guarantee. Given ones stay, whether they meet it or not."""

    def settled(self, public: Public) -> "Recipe":
        """What is asked for once the public quantities are known; itself, unless it is a choice between others."""
        return self

    def planned(self, public: Public) -> Iterator[Option]:
        """Lines of a plan: ways to use it under the guarantee. By default the one that calibration gives, where it can."""
        try:
            made = self.calibrate(public)
        except PrivurnError:
            return
        if not meets(made.profile, public.guarantee):
            return
        if made.measures:  # records are made from the measurements, as many as there are or as were asked for
            records = self.records or public.about_n
            yield Option(mechanism=self.alias, records=records, remark=f"made from {made.in_words}", made=made, asked=self)
        else:
            yield Option(mechanism=self.alias, records=made.records, remark=made.in_words, made=made, asked=self)

    def too_costly(self, mechanism: Mechanism) -> str:
        """Why the mechanism does not meet the guarantee."""
        return f"the {self.alias} mechanism does not meet the guarantee with these parameters."

    def nearby(self, mechanism: Any, public: Public) -> Iterator[Alternative]:
        """What the same mechanism can do at the guarantee, nearest first."""
        yield from ()

    def remarks(self, mechanism: Any, public: Public) -> tuple[str, ...]:
        """What to know of a mechanism that was calibrated, from public quantities."""
        return ()

    @classmethod
    def offers(cls, public: Public, asked: "Recipe") -> Iterator[Alternative]:
        """Itself in place of what was asked for, if it can be had."""
        if (public.table is not None) != cls.whole_tables:
            return
        if cls.offered is None or (public.cells is None and cls.needs_domain) or (public.n is None and not cls.keeps_n_secret):
            return
        records = asked.records if asked.publishes_records else None
        if public.n is None and records is None:
            records = EXAMPLE_RECORDS
        own = cls(records=records if cls(records=records).publishes_records else None)
        try:
            made = own.calibrate(public)
            own.check_room(made, public)
            if not meets(made.profile, public.guarantee):
                return
        except PrivurnError:
            return
        yield Alternative(words=cls.offered, changes={"mechanism": own})


def check_copies(copies: int, records: int | None, *, most: int, guessed: bool = False) -> None:
    """Copies of a synthetic table, which are draws of the confidential one, and have its size; it may have to be `guessed`."""
    if not math.isfinite(copies) or int(copies) != copies or copies < 1:
        raise ModelError("copies must be a positive whole number.", hint="For example copies=20")
    if copies > most:
        raise ModelError(f"at most {most:,} copies are made.", hint=f"copies={most}, or fewer")
    if copies > 1 and records is not None:
        about = "; where the confidential number is secret, guess=1000 says about how many" * guessed
        raise ModelError(
            "copies have as many records as the confidential table.", hint=f"Leave the number of records out{about}"
        )


def most_records(*, in_parts: bool) -> int:
    """As many as are released at once; `in_parts`: a cluster writes them."""
    return MOST_PUBLISHED if in_parts else MOST_RECORDS


def check_records(records: int, *, in_parts: bool = False) -> None:
    """Records that were asked for or chosen, before anything is paid."""
    if records <= (most := most_records(in_parts=in_parts)):
        return
    words, hint = "", "Ask for fewer records"
    if not in_parts:
        words = " from the memory of one computer"
        hint += "; of a table on Spark an Urn, Discover, NoisyTree or Marginals is written in parts"
    raise ModelError(f"at most {most:,} records can be released at once{words}.", hint=hint)
