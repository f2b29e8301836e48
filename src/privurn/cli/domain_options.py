"""What values the columns may hold: options that every command has which is given a domain, and what they declare."""

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.domain import AnyDomain, ColumnDomain, TableDomain

Texts = list[str] | None


@dataclass(frozen=True, kw_only=True)
class DomainOptions:
    """One domain for one column, or COLUMN=DOMAIN pairs for several taken jointly."""

    column: Annotated[Texts, typer.Option("--column", help="The confidential column.", show_default=False)] = None
    grid: Annotated[
        Texts, typer.Option("--grid", metavar="LO:HI:STEP", help="Numbers on a public grid; COLUMN=LO:HI:STEP for several.")
    ] = None
    bins: Annotated[Texts, typer.Option("--bins", metavar="EDGES", help="Numbers in bins: edges, comma-separated.")] = None
    dates: Annotated[
        Texts,
        typer.Option(
            "--dates",
            metavar="START,END,STEP",
            help="Dates or times in steps such as day, 2 weeks, month, hour; COLUMN=... for several.",
        ),
    ] = None
    categories: Annotated[
        Texts,
        typer.Option(
            "--categories",
            metavar="LIST",
            help="Explicit values, comma-separated; COLUMN=LIST for several, or where a value holds a = sign.",
        ),
    ] = None
    open_labels: Annotated[bool, typer.Option("--open-labels", help="Labels nobody listed: naming them is paid for.")] = False
    domain: Annotated[str | None, typer.Option("--domain", metavar="FILE", help="Domain from a YAML or JSON file.")] = None
    outside: Annotated[
        str | None,
        typer.Option(
            help="Values outside the domain: clamp (numbers' default), error (categories' default: declared absent), other or "
            "null (a cell of their own, or that of missing values)."
        ),
    ] = None
    nulls: Annotated[
        str, typer.Option(help="Missing values, NaN too: error (declared absent) or cell (a cell of their own).")
    ] = "error"
    within: Annotated[
        str, typer.Option(help="Records in bins become the bin's midpoint, uniform in it, or the bin itself: interval.")
    ] = "midpoint"
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", help="Categories: capitals A-Z and small letters are the same.")
    ] = False

    @property
    def given(self) -> bool:
        """Whether a domain is declared at all."""
        return bool(self.grid or self.bins or self.dates or self.categories or self.open_labels or self.domain)

    def declared(self) -> "AnyDomain | TableDomain | dict[str, ColumnDomain]":
        """What the options say, with errors that say what to type instead."""
        from privurn.domain import JointDomain, OpenLabels, TableDomain, domain_from_file

        if self.within != "midpoint" and not self.bins:
            raise FormatError("--within is for bins.", hint="Declare --bins, or leave --within out")
        described: list[tuple[Callable[..., ColumnDomain], str]] = [
            *((_grid, text) for text in self.grid or ()),
            *((partial(_bins, within=self.within), text) for text in self.bins or ()),
            *((_dates, text) for text in self.dates or ()),
            *((partial(_categories, ignore_case=self.ignore_case), text) for text in self.categories or ()),
        ]
        if self.ignore_case and not self.categories and self.domain is None:
            raise FormatError(
                "only categories have capitals to ignore.", hint="Declare --categories, or leave --ignore-case out"
            )
        if (self.domain is not None) + self.open_labels + bool(described) != 1:
            raise FormatError(
                "say what values the column may hold, in one way.",
                hint="--grid LO:HI:STEP, --bins EDGES, --dates START,END,STEP, --categories LIST, --open-labels or "
                "--domain FILE",
            )
        if not described and (self.outside is not None or self.nulls != "error" or self.ignore_case):
            raise FormatError(
                "--outside, --nulls and --ignore-case are for domains given by options.",
                hint="In a file write outside: other, nulls: cell, ignore_case: true in each domain; open labels need none",
            )
        if self.domain is not None:
            found = domain_from_file(self.domain)
            self._check_names(found.columns if isinstance(found, (JointDomain, TableDomain)) else None)
            return found
        if self.open_labels:
            self._check_names(None)
            return OpenLabels()
        policy: dict[str, Any] = {"nulls": self.nulls}
        if self.outside is not None:
            policy["outside"] = self.outside
        columns = self.column or ()
        if len(described) == 1 and len(columns) <= 1 and "=" not in described[0][1]:
            build, text = described[0]
            return build(text, **policy)  # type: ignore[return-value]
        joint: dict[str, ColumnDomain] = {}
        for build, text in described:
            name, separator, rest = text.partition("=")
            if not separator or name in joint:
                raise _unnamed()
            joint[name] = build(rest, **policy)
        self._check_names(joint)
        return joint

    def _check_names(self, named: Mapping[str, Any] | None) -> None:
        """Columns that are asked for are those that have a domain: nothing else is paid for. None: a domain without a name."""
        if named is None and len(self.column or ()) > 1:
            raise _unnamed()
        if named is not None and self.column and set(self.column) != set(named):
            slip = (
                ""
                if self.domain
                else "; what stands before the first = is a name: with = in a value --categories 'pay=<=50K,>50K'"
            )
            raise FormatError(
                "the columns and the named domains do not match.",
                hint=f"Leave --column out, or name {', '.join(map(repr, named))}{slip}",
            )

    def named(self, domain: Any) -> Any:
        """A single domain under the name of its column, where that is given."""
        if self.column and len(self.column) == 1 and not isinstance(domain, Mapping) and domain.kind != "joint":
            return {self.column[0]: domain}
        return domain


def _unnamed() -> FormatError:
    return FormatError(
        "several columns need a name before each domain.", hint="For example --grid age=0:100:1 --categories sex=f,m"
    )


def _grid(text: str, **policy: Any) -> "ColumnDomain":
    from privurn.domain import Grid

    parts = text.split(":")
    if re.match(r"\d{4}-\d\d-\d\d", text):
        raise FormatError("a grid is of numbers.", hint="For dates give START,END,STEP: --dates 2020-01-01,2023-12-31,month")
    if len(parts) != 3:
        raise FormatError(f"the grid {text!r} is not understood.", hint="Give LO:HI:STEP, for example --grid 0:200000:500")
    low, high, step = parts
    return Grid(low, high, step, **policy)


def _bins(text: str, **policy: Any) -> "ColumnDomain":
    from privurn.domain import Bins

    if ":" in text:
        raise FormatError(f"the bins {text!r} are not understood.", hint="Give all edges, for example --bins 0,18,65,120")
    return Bins(text.split(","), **policy)


def _dates(text: str, **policy: Any) -> "ColumnDomain":
    from privurn.domain import Dates

    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (2, 3):
        raise FormatError(
            f"the dates {text!r} are not understood.",
            hint="Give START,END,STEP, for example --dates 2020-01-01,2023-12-31,month",
        )
    start, end, step = (*parts, "day")[:3]
    return Dates(start, end, step, **policy)


def _categories(text: str, **policy: Any) -> "ColumnDomain":
    from privurn.domain import Categories

    labels = [label.strip() for label in next(csv.reader([text], skipinitialspace=True))]  # "a,b",c are two
    if not labels or not all(labels):
        raise FormatError("an empty category was given.", hint="For example --categories north,south,east,west")
    if policy.get("outside") == "clamp":
        raise FormatError("categories cannot be clamped.", hint="Use --outside other, --outside null or --outside error")
    if all(label.lstrip("-").isdigit() and str(int(label)) == label for label in labels):
        return Categories([int(label) for label in labels], **policy)  # 1,2,3 are numbers; 01,02 are codes
    return Categories(labels, **policy)
