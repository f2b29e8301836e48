"""Where the SQL of engines differs. Queries are otherwise spelled in words that all of them know.

Both engines read more as numbers than people write, and not the same: DuckDB `1_000`, Spark `1d` and `0x1p3`. One pattern
stands in front of both, so what counts as a number does not depend on where it is counted. Casts never fail, and round once:
decimals too long for that are cast from their text.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

from privurn.errors import DomainError

NUMBER = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN]"
"""Text that is a number: ASCII digits with a point and an exponent, infinities, NaN."""

MOMENT = (
    "[0-9]{4}(-[0-9]{1,2}-|/[0-9]{1,2}/)[0-9]{1,2}"
    "([ T]([01]?[0-9]|2[0-3]):[0-5]?[0-9](:[0-5]?[0-9]([.][0-9]+)?)?"
    "(Z| UTC|[+-](0[0-9]|1[0-5])([0-5][0-9]|:[0-5][0-9](:[0-5][0-9])?)?)?)?"
)
"""Text that may be a date, perhaps with a time of day, which may have an offset; whether there is such a day, a cast says."""

WITH_OFFSET = ".*:.*(Z|UTC|[+-][0-9:]+)"
"""Among those."""

LONGEST_EXACT = 15
"""Digits of decimals that are whole numbers of 53 bits, divided by a power of ten that is exact."""

DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")

NOT_COMPARED = re.compile(r"BLOB|BIT|INTERVAL|VARIANT|GEOMETRY|.*\]|(STRUCT|MAP|UNION)\(.*", re.DOTALL)
"""Of DuckDB's types: binary, nested and interval ones, whose text is another in other engines."""

WRITTEN_ALIKE = ("BOOLEAN", "BIGINT", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
"""Types whose values Spark can be made to write as DuckDB does, apart from decimals."""

DAY = "CAST(86400000000 AS BIGINT)"
"""In microseconds."""

FIRST_WRITTEN, LAST = -106_751_991 * 86_400_000_000, 2**63 - 1
"""In microseconds: the first moment that DuckDB can write, and what it takes, with either sign, for an infinity."""

LAST_DAY, DAYS = 2**31 - 1, 106_751_991
"""The same infinity among dates, and how many days from 1970 a date can be a moment."""

NAN = "CAST('nan' AS DOUBLE)"


def not_compared() -> DomainError:
    """The same in all engines, whatever they call the type."""
    return DomainError(
        "columns of binary, nested and interval types are not compared with categories.", hint="Cast the column to text first"
    )


def double(number: float) -> str:
    """A constant, from its text: a plain literal would be a decimal, and might be rounded twice."""
    return f"CAST('{number!r}' AS DOUBLE)"


class Dialect(ABC):
    """How an engine spells what is spelled differently. Types are called what DuckDB calls them, in every engine."""

    @abstractmethod
    def matches(self, text: str, pattern: str) -> str:
        """Condition: the whole text matches the pattern."""

    @abstractmethod
    def one_each(self, numbers: Sequence[str]) -> str:
        """In a SELECT: a row for each of the numbers of a record."""

    @abstractmethod
    def together(self, values: Sequence[str]) -> str:
        """Several values as one."""

    @abstractmethod
    def moment(self, value: str, stored: str) -> str:
        """A date or time as microseconds since 1970; NULL where it is none."""

    @abstractmethod
    def day(self, moment: str) -> str:
        """A day of the calendar, from microseconds since 1970."""

    @abstractmethod
    def quotient(self, number: str, by: int) -> str:
        """A whole number that is not negative, divided and rounded down."""

    @abstractmethod
    def nearest(self, number: str) -> str:
        """A double rounded to the nearest whole one, halves to the even."""

    @abstractmethod
    def place(self) -> str:
        """A number for each record of `t`, ascending in the table's order."""

    @abstractmethod
    def text(self, value: str, stored: str) -> str:
        """A value of a stored type as text, the same in all engines."""

    def label(self, value: str, stored: str) -> str:
        """What distinct labels are counted by: text, or values that become text once they are counted."""
        return self.text(value, stored)

    @abstractmethod
    def converted(self, value: str, stored: str, wanted: str) -> str:
        """A value of a stored type as one of a type that holds all of them."""

    def number(self, value: str, stored: str) -> str:
        """A value of a stored type as a double; NULL where it is none."""
        cast = f"TRY_CAST({value} AS DOUBLE)"
        if stored == "VARCHAR":
            return f"CASE WHEN {self.matches(value, NUMBER)} THEN {cast} END"
        decimal = DECIMAL.fullmatch(stored)
        if decimal and int(decimal[1]) > LONGEST_EXACT:
            return f"TRY_CAST({self.text(value, stored)} AS DOUBLE)"
        return cast


class DuckDB(Dialect):
    """The engine of this computer."""

    def matches(self, text: str, pattern: str) -> str:
        """By RE2."""
        return f"regexp_full_match({text}, '{pattern}')"

    def one_each(self, numbers: Sequence[str]) -> str:
        """From a list."""
        return f"unnest([{', '.join(numbers)}])"

    def together(self, values: Sequence[str]) -> str:
        """A row."""
        return f"row({', '.join(values)})"

    def moment(self, value: str, stored: str) -> str:
        """Text and local times as if they were UTC, where text states no offset; nanoseconds never round up, as in Spark."""
        if stored in ("TIMESTAMP_NS", "TIMESTAMPTZ_NS"):
            return f"(epoch_ns({value}) // 1000 - CAST(epoch_ns({value}) % 1000 < 0 AS BIGINT))"
        if stored == "VARCHAR":
            return f"CASE WHEN {self.matches(value, MOMENT)} THEN epoch_us(TRY_CAST({value} AS TIMESTAMP WITH TIME ZONE)) END"
        return f"epoch_us({value if stored == 'TIMESTAMP WITH TIME ZONE' else f'TRY_CAST({value} AS TIMESTAMP)'})"

    def day(self, moment: str) -> str:
        """With the time of day."""
        return f"make_timestamp({moment})"

    def quotient(self, number: str, by: int) -> str:
        """With an operator of its own."""
        return f"CAST(({number}) // {by} AS BIGINT)"

    def nearest(self, number: str) -> str:
        """Bankers' rounding."""
        return f"round_even({number}, 0)"

    def place(self) -> str:
        """In the order of the file or frame."""
        return "row_number() OVER ()"

    def text(self, value: str, stored: str) -> str:
        """What the cast says is the rule for all engines. Infinite moments, and those that DuckDB fails on, have no text."""
        if stored == "VARCHAR":
            return value
        if stored == "DATE":
            value = f"CASE WHEN isfinite({value}) THEN {value} END"
        elif stored.startswith("TIMESTAMP") and not stored.endswith("_NS"):  # within the cast: it looks at all distinct values
            value = f"CASE WHEN {self.moment(value, stored)} >= {FIRST_WRITTEN} THEN {value} END"
        return f"CAST({value} AS VARCHAR)"

    def label(self, value: str, stored: str) -> str:
        """Minus zero is zero, as in Spark."""
        zero = f"CASE WHEN {value} = 0 THEN abs({value}) ELSE {value} END"
        return self.text(zero if stored in ("FLOAT", "DOUBLE") else value, stored)

    def converted(self, value: str, stored: str, wanted: str) -> str:
        """Types have the names that are used here."""
        if NOT_COMPARED.fullmatch(stored):
            raise not_compared()
        return self.text(value, stored) if wanted == "VARCHAR" else f"CAST({value} AS {wanted})"


class Spark(Dialect):
    """Apache Spark. Casts are tried ones: what fails in Spark is quoted in its logs."""

    def matches(self, text: str, pattern: str) -> str:
        """By Java, whose `$` would let a line break follow; no backslashes, which a setting gives another meaning."""
        return f"{text} RLIKE '(?s)^(?:{pattern})(?!.)'"

    def one_each(self, numbers: Sequence[str]) -> str:
        """From an array."""
        return f"explode(array({', '.join(numbers)}))"

    def together(self, values: Sequence[str]) -> str:
        """A structure."""
        return f"struct({', '.join(values)})"

    def moment(self, value: str, stored: str) -> str:
        """From parts of local times, which a time zone would move; text is completed first, with seconds and an offset."""
        if stored == "VARCHAR":
            full = f"regexp_replace(translate({value}, '/', '-'), '([ T][0-9]+:[0-9]+)(?![0-9:])', '$1:00')"
            zone = f"CASE WHEN {self.matches(value, WITH_OFFSET)} THEN '' ELSE 'Z' END"
            rest = f"CASE WHEN {value} LIKE '%:%' THEN {zone} ELSE 'T00:00:00Z' END"
            instant = f"TRY_CAST(concat({full}, {rest}) AS TIMESTAMP_LTZ)"
            return f"CASE WHEN {self.matches(value, MOMENT)} THEN unix_micros({instant}) END"
        days = f"unix_date(TRY_CAST({value} AS DATE))"
        if stored == "DATE":
            return f"CASE WHEN {days} BETWEEN -{DAYS} AND {DAYS} THEN {days} * {DAY} END"
        micros = f"unix_micros({value})"
        if stored == "TIMESTAMP":
            seconds = f"3600 * hour({value}) + 60 * minute({value}) + extract(SECOND FROM {value})"
            rest = f"TRY_CAST(1000000 * ({seconds}) AS BIGINT)"
            later = f"({days} + 1) * {DAY} + ({rest} - {DAY})"  # of the first day the beginning is beyond 64 bits
            micros = f"CASE WHEN {days} < 0 THEN {later} ELSE {days} * {DAY} + {rest} END"
        return f"nullif(nullif({micros}, {LAST}), -{LAST})"

    def day(self, moment: str) -> str:
        """By days since 1970, because Spark's instants have the session's time zone."""
        return f"date_from_unix_date(TRY_CAST((({moment}) DIV {DAY}) - IF(({moment}) % {DAY} < 0, 1, 0) AS INT))"

    def quotient(self, number: str, by: int) -> str:
        """With an operator of its own."""
        return f"(({number}) DIV {by})"

    def nearest(self, number: str) -> str:
        """Java's."""
        return f"rint({number})"

    def place(self) -> str:
        """Partition by partition; Spark promises no order of frames in general."""
        return "monotonically_increasing_id()"

    def text(self, value: str, stored: str) -> str:
        """As DuckDB writes it: no plus before years of five digits, (BC) behind older days, instants in UTC and marked so."""
        if stored == "VARCHAR":
            return value
        if stored not in WRITTEN_ALIKE and not DECIMAL.fullmatch(stored):
            raise not_compared()
        plain = f"TRY_CAST({value} AS STRING)"
        if stored == "DATE":
            return f"CASE WHEN unix_date({value}) NOT IN ({LAST_DAY}, -{LAST_DAY}) THEN {self._day_text(value)} END"
        if stored not in ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"):
            return plain
        local = f"concat({self._day_text(f'TRY_CAST({value} AS DATE)')}, ' ', substring_index({plain}, ' ', -1))"
        written = local if stored == "TIMESTAMP" else f"concat({self._instant(value)}, '+00')"
        return f"CASE WHEN {self.moment(value, stored)} >= {FIRST_WRITTEN} THEN {written} END"

    def label(self, value: str, stored: str) -> str:
        """The value: Spark and DuckDB write floats differently, and of distinct ones there are few enough to write here.

        Times of day are written there, because Spark Connect sends none.
        """
        return self.text(value, stored) if stored == "TIME" else value

    def _day_text(self, day: str) -> str:
        """A date; the year before 1 is 1 BC."""
        year = f"TRY_CAST(1 - year({day}) AS STRING)"
        before = f"concat(lpad({year}, greatest(4, length({year})), '0'), right(TRY_CAST({day} AS STRING), 6), ' (BC)')"
        return f"CASE WHEN year({day}) < 1 THEN {before} ELSE ltrim('+', TRY_CAST({day} AS STRING)) END"

    def _instant(self, value: str) -> str:
        """An instant in UTC, whatever time zone the session has."""
        micros = f"unix_micros({value})"
        rest = f"pmod({micros}, {DAY})"
        day = self._day_text(self.day(micros))
        seconds = f"({rest} DIV 1000000)"
        clock = ", ':', ".join(
            f"lpad(TRY_CAST({part} AS STRING), 2, '0')"
            for part in (f"{seconds} DIV 3600", f"({seconds} DIV 60) % 60", f"{seconds} % 60")
        )
        fraction = f"rtrim('.', rtrim('0', concat('.', lpad(TRY_CAST({rest} % 1000000 AS STRING), 6, '0'))))"
        return f"concat({day}, ' ', {clock}, {fraction})"

    def converted(self, value: str, stored: str, wanted: str) -> str:
        """Spark has no VARCHAR of any length."""
        return self.text(value, stored) if wanted == "VARCHAR" else f"TRY_CAST({value} AS {wanted})"


DUCKDB, SPARK = DuckDB(), Spark()
