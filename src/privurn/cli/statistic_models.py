"""Models whose sums `privurn statistics` publishes: their options are the parameters of each statistic's `calibrated`."""

import inspect
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, make_dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

from privurn.cli.domain_options import DomainOptions
from privurn.cli.parsing import whole_number
from privurn.errors import DomainError, FormatError
from privurn.mechanisms import registry
from privurn.mechanisms.perturbed_histogram import NoisyCounts
from privurn.mechanisms.recipe import Asked, option
from privurn.mechanisms.sums.recipe import Sums
from privurn.mechanisms.sums.told import Told
from privurn.privacy.profile import Guarantee

if TYPE_CHECKING:
    from privurn.certificates.release import Release

Texts = tuple[str, ...]
TYPED: dict[str, Any] = {"text": str, "texts": Texts, "number": float, "bounds": Texts, "largest count": Texts}
"""How what is typed is read, as the type of an option's field."""


@dataclass(frozen=True, kw_only=True, repr=False)
class SumModel(Asked):
    """What was typed about a model; its fields are added by `asked_with`."""

    statistic: ClassVar[Any]
    """The class of what is published."""
    told: ClassVar[dict[str, Told]]

    def own(self) -> dict[str, Any]:
        """What its statistic is calibrated with, beside the budget."""
        found = dict(self.given)
        for name, value in self.given.items():
            if self.told[name].reads == "bounds":
                found[name] = parse_bounds(value)
            elif self.told[name].reads == "largest count":
                found[name] = parse_largest(value, column=found["column"])
        return found

    def release(self, data: Any, guarantee: Guarantee, *, epsilon_n: float | None, noise: Any, **paid: Any) -> "Release":
        """With the least noise."""
        from privurn.releases.statistics import release_statistics

        budget = Sums(self.alias, epsilon_n=epsilon_n, noise=noise).budget(guarantee)
        return release_statistics(data, mechanism=self.statistic.calibrated(budget=budget, **self.own()), budget=budget, **paid)


@cache
def asked_with(statistic: Any) -> type[SumModel]:
    """The options of a statistic: the parameters of its `calibrated`, but for the budget and those that are fixed."""
    hints = get_type_hints(statistic.calibrated, include_extras=True)
    told: dict[str, Told] = {}
    options = []
    for name, each in inspect.signature(statistic.calibrated).parameters.items():
        if name == "budget" or name in statistic.fixed:
            continue
        hint = hints.get(name, str)
        kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        note = next((note for note in notes if isinstance(note, Told)), None)
        told[name] = note or Told(help=f"The model's {name.replace('_', ' ')}.")
        typed = TYPED[note.reads] if note else _plain(kind)
        default = MISSING if each.default is inspect.Parameter.empty or told[name].needed else each.default
        options.append((name, typed, option(told[name].help, default=default, flag=told[name].flag)))
    known = {"alias": statistic.model, "statistic": statistic, "told": told}
    return make_dataclass(
        statistic.__name__, options, bases=(SumModel,), namespace=known, frozen=True, kw_only=True, repr=False
    )


def _plain(kind: Any) -> Any:
    """The type of an option without a note: a number, a yes or no, several texts, or a text."""
    if kind in (bool, int, int | None, float):
        return kind
    return Texts if (get_origin(kind) or kind) in (tuple, list) else str


@dataclass(frozen=True, kw_only=True, repr=False)
class Table(SumModel):
    """Counts of the joint cells of public domains: short for noisy counts, whose sum is a noisy n."""

    alias: ClassVar[str] = "table"
    categories: Texts = option("COLUMN=LIST of explicit values, comma-separated; repeatable.", default=())
    grid: Texts = option("COLUMN=LO:HI:STEP: numbers on a public grid; repeatable.", default=())
    bins: Texts = option("COLUMN=EDGES: numbers in bins, comma-separated; repeatable.", default=())
    nulls: str = option("Missing values: error (declared absent, default) or cell (a cell of their own).", default="error")
    outside: str | None = option(
        "Values outside the domain: clamp (numbers' default), error (categories' default: declared absent), other or null."
    )
    ignore_case: bool = option("Categories: capitals A-Z and small letters are the same.", default=False)

    def own(self) -> dict[str, Any]:
        """A domain for each column."""
        domain = DomainOptions(
            categories=list(self.categories),
            grid=list(self.grid),
            bins=list(self.bins),
            nulls=self.nulls,
            outside=self.outside,
            ignore_case=self.ignore_case,
        ).declared()
        if not isinstance(domain, dict):
            raise FormatError("a table needs a name before each domain.", hint="For example --categories sex=f,m")
        return {"domain": domain}

    def release(self, data: Any, guarantee: Guarantee, *, epsilon_n: float | None, noise: Any, **paid: Any) -> "Release":
        """Like any other release of noisy counts."""
        from privurn.releases.release import release

        domain = self.own()["domain"]
        if epsilon_n is not None:
            raise FormatError("noisy counts add up to a noisy n: a table has no --epsilon-n.", hint="Leave it out")
        asked = NoisyCounts(publish="counts") if noise is None else NoisyCounts(publish="counts", noise=noise)
        return release(data, asked, domain=domain, **asdict(guarantee), **paid)


def models() -> dict[str, type[SumModel]]:
    """One for every statistic of the registry, and tables."""
    found = {each.model: asked_with(each) for each in registry.statistics().values()}
    return {**found, Table.alias: Table}


def parse_bounds(texts: Sequence[str]) -> dict[str, tuple[str, str]] | tuple[str, str]:
    """COLUMN=LOW:HIGH for each column, or one LOW:HIGH for all."""
    found: dict[str, tuple[str, str]] = {}
    for text in texts:
        name, separator, rest = text.rpartition("=")
        low, colon, high = rest.partition(":")
        if not colon or not low or not high or (separator and (not name or name in found)):
            raise FormatError(f"the bounds {text!r} are not understood.", hint="Give COLUMN=LOW:HIGH, for example age=0:120")
        if not separator:
            if len(texts) > 1:
                raise FormatError("several bounds need a column before each.", hint="--bounds age=0:120 --bounds pay=0:200000")
            return low, high
        found[name] = (low, high)
    return found


def parse_largest(texts: Sequence[str], *, column: str) -> int:
    """0:LARGEST or COLUMN=0:LARGEST of a column of counts."""
    bounds = parse_bounds(texts)
    if isinstance(bounds, dict):
        if set(bounds) != {column}:
            raise DomainError(f"there are no public bounds for {column!r}.", hint=f"--bounds {column}=0:20")
        bounds = bounds[column]
    if whole_number(bounds[0]) != 0:
        raise DomainError("counts start at 0.", hint=f"--bounds {column}=0:20")
    return whole_number(bounds[1])
