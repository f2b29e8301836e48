"""Which mechanisms can release a column at a given guarantee, from public quantities, and where their errors come from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privurn.domain import JointDomain
from privurn.errors import CalibrationError, DomainError, FormatError, ModelError
from privurn.mechanisms.asymptotic_pseudo_posterior import ASYMPTOTIC
from privurn.mechanisms.choice import choose
from privurn.mechanisms.mechanism import ErrorSources, Mechanism
from privurn.mechanisms.recipe import Public, Recipe
from privurn.mechanisms.registry import mechanisms, recipes
from privurn.privacy.profile import Guarantee
from privurn.releases.usual import usual


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A mechanism that meets the guarantee.

    `group`      neighbouring cells that it takes as one: 1, or an odd number g for a grid of g times the step
    `certified`  whether it meets the guarantee indeed: False for one that has no certificate and is there to be looked at
    """

    name: str
    mechanism: Mechanism
    group: int
    certified: bool = True

    @property
    def records(self) -> int | None:
        """How many it releases; None where it releases a number for each cell."""
        if self.mechanism.measures:
            return self.mechanism.n
        return None if self.mechanism.beside else self.mechanism.records

    @property
    def output(self) -> str:
        """What it releases, in words."""
        if self.records is None:
            return f"{self.mechanism.cells:,} {self.mechanism.rows_are}"
        return "1 record" if self.records == 1 else f"{self.records:,} records"

    @property
    def sources(self) -> ErrorSources:
        """What pulls its releases away from the data."""
        return self.mechanism.error_sources

    @property
    def size(self) -> str:
        """Why its number of records costs accuracy."""
        return self.sources.size or f"the number of records, {self.records or self.mechanism.records:,}"


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A mechanism that cannot meet the guarantee, and why."""

    name: str
    reason: str


def ways() -> dict[str, Mapping[str, Any]]:
    """Every way to release from a public domain: a mechanism's name, up to a comma, and what it asks for beside epsilon."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, kind in mechanisms().items():
        found |= {name: {}} if kind.ways is None else kind.ways
    return found


def usual_mechanisms() -> tuple[Recipe, ...]:
    """What is compared where nothing is asked for: every way that needs no more than the guarantee."""
    able = {way: asked for way, asked in ways().items() if ... not in asked.values()}
    return tuple(recipes()[way.partition(",")[0]](**asked) for way, asked in able.items())


NO_CERTIFICATE = "no certificate: asymptotic only"
BY_ITSELF = "it is for whole tables, and compared alone, by its name; release takes it for these columns where none is named."


def candidates(
    *,
    n: int,
    cells: int,
    guarantee: Guarantee,
    n_records: int | None = None,
    asked: Sequence[Recipe] | None = None,
    coarser: tuple[int, int] | None = None,
    domain: JointDomain | None = None,
) -> tuple[tuple[Candidate, ...], tuple[Refused, ...]]:
    """Every mechanism that can release `n` records on `cells` cells under the guarantee, and those that cannot.

    Each is chosen just as `release` would choose it; `asked` says which, all where it is left out. `coarser` = (g, number of
    cells when g neighbours are taken as one) adds some of them on wider bins.
    """
    able, refused = [], []
    for recipe in asked or ():
        if not isinstance(recipe, Recipe):
            raise FormatError(
                f"{recipe!r} is no mechanism.", hint="For example mechanisms=[privurn.Urn(), privurn.NoisyCounts()]"
            )
    named = {_name(recipe): recipe for recipe in (usual_mechanisms() if asked is None else asked)}
    for name, way, group, size in _ways(list(named), cells, coarser):
        recipe = named[way]
        try:
            public = Public(n=n, cells=size, guarantee=guarantee, domain=domain if group == 1 else None)
            if recipe.whole_tables:
                raise ModelError("it is for whole tables.", hint="Compare it alone")
            if recipe.publishes_records and recipe.records is None:
                recipe = replace(recipe, records=n_records)
            recipe.check()
            mechanism = choose(recipe, public)[0] if recipe.certifiable else recipe.calibrate(public)
        except (CalibrationError, ModelError, DomainError, FormatError) as error:
            refused.append(Refused(name=name, reason=_why_not(error)))
            continue
        able.append(Candidate(name=name, mechanism=mechanism, group=group, certified=recipe.certifiable))
    if asked is None and domain is not None and usual(domain).whole_tables:
        refused.append(Refused(name=usual(domain).alias, reason=BY_ITSELF))
    return tuple(able), tuple(refused)


def _name(recipe: Recipe) -> str:
    """What a comparison calls it: the way that it is, or its name with the fields that were given."""
    given = recipe.given
    for way, asked in {**ways(), **ASYMPTOTIC}.items():
        same = given.keys() == asked.keys() - {"records"} and recipe.alias == way.partition(",")[0]
        if same and all(value is ... or given.get(name) == value for name, value in asked.items()):
            return way
    return ", ".join([recipe.alias, *(f"{name}={value}" for name, value in given.items())])


def _ways(names: Sequence[str], cells: int, coarser: tuple[int, int] | None) -> Iterator[tuple[str, str, int, int]]:
    """What to call it, the way, and the cells to take as one and how many that leaves."""
    for way in names:
        yield way, way, 1, cells
    if coarser is not None:
        group, size = coarser
        for way, kind in mechanisms().items():
            if way in names and kind.coarser:
                yield f"{way}, {size:,} cells", way, group, size


def _why_not(error: CalibrationError | ModelError | DomainError | FormatError) -> str:
    own = [each for each in error.offered if isinstance(each.changes.get("mechanism", each.refused), type(each.refused))]
    return f"{error.message} The nearest that it offers is {own[0]}." if own else error.message  # others are here anyway
