"""The layout of a certificate with its types: strict, and nothing that is not named here.

A number is a JSON number, never text or true; whole numbers are whole; nothing is infinite. What the fields mean and how each
of them is checked stands in docs/reference/certificate.md. This module knows the shape alone: whether what is stated is true is
for `privurn.certificates.verify`.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from privurn.counts import MOST_PUBLISHED

LARGEST_N = 2**53
LONGEST_TEXT = 10_000

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Version = Annotated[str, Field(pattern=r"^[0-9][0-9A-Za-z.+!_-]{0,63}$")]
Uuid = Annotated[str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Epsilon = Annotated[float, Field(gt=0.0, le=600.0)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Nonnegative = Annotated[float, Field(ge=0.0)]


def _utc(text: str) -> str:
    """A moment in UTC to the second, as 2026-01-31T23:59:59+00:00."""
    if len(text) != 25 or datetime.fromisoformat(text).isoformat(timespec="seconds") != text or not text.endswith("+00:00"):
        raise ValueError("not a moment in UTC, such as 2026-01-31T23:59:59+00:00")
    return text


def _paid(used: bool) -> bool:
    """A Literal would take 1 for true."""
    if not used:
        raise ValueError("a ledger and an entry are named, which is for payments only")
    return used


def _unpaid(used: bool) -> bool:
    if used:
        raise ValueError("the ledger and the entry that paid are not named")
    return used


class Strict(BaseModel):
    """What all parts share."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class StatedMechanism(Strict):
    """Name and parameters; the parameters are checked by rebuilding the mechanism from them."""

    name: Text
    parameters: dict[str, Any]


class Policy(Strict):
    """What every column's domain says of values outside and of missing ones."""

    outside: Literal["clamp", "other", "null", "error"]
    nulls: Literal["cell", "error"]


class GridDomain(Policy):
    """Numbers as decimal text."""

    kind: Literal["grid"]
    low: Text
    high: Text
    step: Text


class BinsDomain(Policy):
    """Edges as decimal text."""

    kind: Literal["bins"]
    edges: list[Text]
    within: Literal["uniform", "interval"] = "uniform"
    """Left out: records are the bins' midpoints."""


class DatesDomain(Policy):
    """ISO text, and a step."""

    kind: Literal["dates"]
    start: Text
    end: Text
    step: Text


class CategoriesDomain(Policy):
    """A list of values."""

    kind: Literal["categories"]
    values: list[bool | int | float | str]
    ignore_case: Literal[True] = True
    """Left out: the case of letters counts."""


ColumnDomain = Annotated[GridDomain | BinsDomain | DatesDomain | CategoriesDomain, Field(discriminator="kind")]


class Joint(Strict):
    """Public domains of the columns, in order."""

    kind: Literal["joint"]
    columns: dict[str, ColumnDomain]


class KnownMarginal(Strict):
    """Public shares of all cells of a column, or of two: a row for each cell of the first."""

    columns: Annotated[list[str], Field(min_length=1, max_length=2)]
    shares: list[Nonnegative] | list[list[Nonnegative]]


class TableColumns(Strict):
    """Public domains of the columns of a whole table, side by side and in order, and what else is publicly known of it."""

    kind: Literal["table"]
    columns: dict[str, ColumnDomain]
    zeros: list[dict[str, bool | int | float | str | None]] = []
    """Values that no record has together. Left out: none are known."""
    known: list[KnownMarginal] = []
    """Left out: none are known."""


class Open(Strict):
    """Labels nobody listed; those that label discovery named are part of the output."""

    kind: Literal["open-labels"]
    column: str
    labels: list[str | None] = []
    other: str = ""


class Bounds(Strict):
    """Of the numbers that a local channel was given."""

    kind: Literal["bounds"]
    column: str
    lower: float
    upper: float
    nulls: Literal["error", "lower"]


class Statistics(Strict):
    """What noisy statistics were computed from: checked against the mechanism, field by field."""

    model_config = ConfigDict(extra="allow")
    kind: Literal["statistics"]


class PrivacyUnit(Strict):
    """Whose records are protected together."""

    unit: Text
    contributions: Annotated[int, Field(ge=1, le=10**6)]


class Target(Strict):
    """What was asked for and paid."""

    epsilon: Epsilon
    delta: Annotated[float, Field(ge=0.0, lt=1.0)]


class Achieved(Strict):
    """What the mechanism gives at the target; null: infinite."""

    epsilon: Nonnegative | None
    delta: Probability


class Point(Strict):
    """One point of the profile."""

    epsilon: Annotated[float, Field(ge=0.0, le=600.0)]
    delta: Probability


class Software(Strict):
    """Versions."""

    python: Version
    privurn: Version
    numpy: Version
    numba: Version
    scipy: Version
    duckdb: Version
    pyarrow: Version
    opendp: Version


class DataFile(Strict):
    """The file that a certificate is about, or the manifest of its parts."""

    file: Literal["data.csv", "data.parquet", "measurements.csv", "measurements.parquet", "manifest.json"]
    rows: Annotated[int, Field(ge=0, le=MOST_PUBLISHED)]
    sha256: Hash


class Synthetic(Strict):
    """Records that were made from the published measurements alone, with a public seed that says nothing of the noise."""

    file: Literal["data.csv", "data.parquet", "manifest.json"]
    rows: Annotated[int, Field(ge=0, le=MOST_PUBLISHED)]
    sha256: Hash
    copies: Annotated[int, Field(ge=1, le=MOST_PUBLISHED)]
    seed: Annotated[int, Field(ge=0, lt=2**53)]


class Unpaid(Strict):
    """No ledger; `declined`: one stood beside the data, and was not to be used."""

    used: Annotated[bool, AfterValidator(_unpaid)]
    declined: Annotated[bool, AfterValidator(_paid)] = False


class Paid(Strict):
    """Which ledger paid, and its entry with the entry's own hash: it shows later that the ledger still holds it."""

    used: Annotated[bool, AfterValidator(_paid)]
    ledger: Uuid
    entry: Annotated[int, Field(ge=1, le=LARGEST_N)]
    hash: Hash


class CertificateFields(Strict):
    """All fields."""

    schema_: Annotated[Literal["privurn-certificate/2"], Field(alias="schema")]
    created: Annotated[str, AfterValidator(_utc)]
    mechanism: StatedMechanism
    domain: Annotated[Joint | TableColumns | Open | Bounds | Statistics, Field(discriminator="kind")]
    columns: list[str]
    neighbouring: Literal["replace-one", "add-remove"]
    privacy_unit: PrivacyUnit
    n: Annotated[int, Field(ge=1, le=LARGEST_N)] | None
    records: Annotated[int, Field(ge=0, le=MOST_PUBLISHED)]
    target: Target
    achieved: Achieved
    rho: Nonnegative | None
    profile: Annotated[list[Point], Field(min_length=1, max_length=100)]
    assumptions: Annotated[list[Text], Field(max_length=100)]
    randomness: Text
    private: bool
    software: Software
    output: DataFile | None
    synthetic: Synthetic | None
    ledger: Unpaid | Paid
    sha256: Hash


def problems(model: type[Strict], data: Any) -> list[str]:
    """What keeps data from having the layout: where, and what was expected. The text of the data is not quoted."""
    try:
        model.model_validate(data)
    except ValidationError as error:
        found = [(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors(include_input=False)[:10]]
        return [f"{place if place.isprintable() else ascii(place)}: {what}"[:200] for place, what in found]
    return []
