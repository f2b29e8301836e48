"""Domains of dates and times: equal steps of the calendar or of the clock, in order."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, ClassVar

from privurn.domain.column import ColumnDomain, Nulls, Outside
from privurn.errors import DomainError

Moment = date | datetime | str

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
MONTHS = {"month": 1, "year": 12}
STEP = re.compile(rf"([0-9]{{1,9}})?\s*({'|'.join((*SECONDS, *MONTHS))})s?")
LAST_DAY_OF_ALL_MONTHS = 28
MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1)
LAST_MOMENT = 2**62
"""Microseconds since 1970: sums and differences of earlier moments have 64 bits."""

EXAMPLE = "For example Dates('2020-01-01', '2023-12-31', 'month')"


@dataclass(frozen=True)
class Dates(ColumnDomain):
    """Dates or times from `start` in steps, up to the last that is not after `end`; a moment belongs to the step it lies in.

    `step` is a number, or none for one, and a unit: seconds, minutes, hours, days, weeks, months or years ("day", "2 weeks", "6
    hours"). Released is the beginning of a step: a date where start and end are dates and steps are of whole days, else a time.
    There is no time zone; columns that have one are read in UTC. Dates cannot write "other": `outside` is "clamp", "null" or
    "error".

    >>> Dates("2024-01-01", "2024-12-31", "month").size, Dates("2024-01-01 06:00", "2024-01-01 18:00", "6 hours").size
    (12, 3)
    """

    start: Moment
    end: Moment
    step: str = "day"
    outside: Outside = "clamp"
    nulls: Nulls = "error"
    kind: ClassVar[str] = "dates"

    def __post_init__(self) -> None:
        found = STEP.fullmatch(str(self.step).strip())
        number, unit = (int(found[1] or 1), found[2]) if found else (0, "")
        if number < 1:
            raise DomainError(f"the step {str(self.step)!r} is not understood.", hint="For example day, 2 weeks or 6 hours")
        ends = [_moment(each) for each in (self.start, self.end)]
        if unit in ("second", "minute", "hour") or any(isinstance(each, datetime) for each in ends):
            ends = [each if isinstance(each, datetime) else datetime.combine(each, time()) for each in ends]
        object.__setattr__(self, "step", unit if number == 1 else f"{number} {unit}s")
        object.__setattr__(self, "start", ends[0])
        object.__setattr__(self, "end", ends[1])
        if ends[1] <= ends[0]:
            raise DomainError("the last date must lie after the first.", hint=EXAMPLE)
        if self.months and ends[0].day > LAST_DAY_OF_ALL_MONTHS:
            raise DomainError(
                f"steps of months start on one of the first {LAST_DAY_OF_ALL_MONTHS} days, which every month has.", hint=EXAMPLE
            )
        if self.outside == "other":
            raise DomainError("dates have no way to write 'other'.", hint="Use outside='clamp', 'null' or 'error'")
        super().__post_init__()
        if self.months and self.month_of(self.n_values) >= 12 * datetime.max.year:
            raise DomainError("the last step ends after the year 9999.", hint="Use an earlier end")
        if self.begins(self.n_values) >= LAST_MOMENT:
            raise DomainError("the last step ends after all times that 64 bits hold.", hint="Use a shorter step")

    @property
    def days_only(self) -> bool:
        """Whether dates are released; else times."""
        return not isinstance(self.start, datetime)

    @property
    def months(self) -> int:
        """Months of a step; 0 where steps are of equal length."""
        number, unit = self._parts
        return number * MONTHS.get(unit, 0)

    @property
    def width(self) -> int:
        """Microseconds of a step; 0 for months."""
        number, unit = self._parts
        return number * SECONDS.get(unit, 0) * 1_000_000

    @property
    def _parts(self) -> tuple[int, str]:
        found = STEP.fullmatch(self.step)
        assert found is not None  # checked when it was made
        return int(found[1] or 1), found[2]

    @property
    def n_values(self) -> int:
        """Steps."""
        if not self.months:
            return (_microseconds(self.end) - _microseconds(self.start)) // self.width + 1
        shifted = _datetime(self.end) - self.into_month
        return (12 * shifted.year + shifted.month - 1 - self.month_of(0)) // self.months + 1

    @property
    def into_month(self) -> timedelta:
        """How far into its month a step begins."""
        start = _datetime(self.start)
        return start - start.replace(day=1, hour=0, minute=0, second=0, microsecond=0)

    def month_of(self, cell: int) -> int:
        """In which month, counted from the year 0, a step of months begins."""
        start = _datetime(self.start)
        return 12 * start.year + start.month - 1 + cell * self.months

    def cell_of(self, value: Moment) -> int | None:
        """The step that a moment lies in; None for one outside.

        >>> Dates("2024-01-01", "2024-12-31", "month").cell_of("2024-03-31")
        2
        """
        moment = _microseconds(_moment(value))
        inside = self.begins(0) <= moment < self.begins(self.n_values)
        return bisect_right(range(self.n_values), moment, key=self.begins) - 1 if inside else None

    def begins(self, cell: int) -> int:
        """Microseconds from 1970 to the beginning of a step; of the one after the last, to the end."""
        if not self.months:
            return _microseconds(self.start) + cell * self.width
        year, month = divmod(self.month_of(cell), 12)
        return _microseconds(datetime(year, month + 1, 1) + self.into_month)

    def label(self, cell: int) -> str:
        """The beginning of a step as text."""
        moment = EPOCH + self.begins(cell) * MICROSECOND
        return moment.date().isoformat() if self.days_only else moment.isoformat(sep=" ")

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind, "start": str(self.start), "end": str(self.end), "step": self.step, **self._policy()}

    def describe(self) -> str:
        """One line for people."""
        return f"dates from {self.start} to {self.end} in steps of {self.step}, {self._edges()}"


def _moment(value: object) -> date | datetime:
    """A date or a time without a zone, of an object or of ISO text."""
    if isinstance(value, str):
        text = value.strip()
        try:  # Python takes any character before the time, and so 2024-01-01+01:00 for one in the morning
            value = (datetime if text[len("2024-01-01") :].startswith((" ", "T")) else date).fromisoformat(text)
        except ValueError:
            raise DomainError(f"{text!r} is no date.", hint="Write it as 2024-01-31, or 2024-01-31 18:00 with a time") from None
    if not isinstance(value, date):
        raise DomainError("dates begin and end with a date.", hint=EXAMPLE)
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise DomainError("dates have no time zone.", hint="Leave it out; columns that have one are read in UTC")
        return datetime(*value.timetuple()[:6], value.microsecond)
    return value


def _datetime(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time())


def _microseconds(value: Any) -> int:
    return (_datetime(value) - EPOCH) // MICROSECOND


def days_since_1970(text: str) -> float:
    """A date, or a time, as days since the beginning of 1970, as inference counts them.

    >>> days_since_1970("1970-01-02"), days_since_1970("1970-01-01 12:00")
    (1.0, 0.5)
    """
    moment = datetime.fromisoformat(text)
    return (moment.replace(tzinfo=UTC) - EPOCH.replace(tzinfo=UTC)) / timedelta(days=1)
