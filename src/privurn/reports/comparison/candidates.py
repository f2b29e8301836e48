"""Which mechanisms can release a column at a given guarantee, from public quantities, and where their errors come from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from privurn.domain import JointDomain
from privurn.errors import CalibrationError, DomainError, FormatError, ModelError
from privurn.mechanisms.asymptotic_pseudo_posterior import AsymptoticPseudoPosterior, Variant
from privurn.mechanisms.choice import choose
from privurn.mechanisms.mechanism import ErrorSources, Mechanism
from privurn.mechanisms.models import Model
from privurn.mechanisms.pseudo_posterior import only_column
from privurn.mechanisms.recipe import Public, Recipe
from privurn.mechanisms.registry import mechanisms, recipes
from privurn.privacy.profile import Guarantee


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
        return self.sources.size or f"the number of records, {self.mechanism.records:,}"


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


ASYMPTOTIC = AsymptoticPseudoPosterior.ways
"""Ways of the literature without differential privacy: only with a model, and only where they are asked for."""

NO_CERTIFICATE = "no certificate: asymptotic only"


def candidates(
    *,
    n: int,
    cells: int,
    guarantee: Guarantee,
    n_records: int | None = None,
    names: Sequence[str] | None = None,
    coarser: tuple[int, int] | None = None,
    domain: JointDomain | None = None,
    model: Model | None = None,
    reference: Model | None = None,
    asymptotic: bool = False,
) -> tuple[tuple[Candidate, ...], tuple[Refused, ...]]:
    """Every mechanism that can release `n` records on `cells` cells under the guarantee, and those that cannot.

    Each is chosen just as `release` would choose it.

    `names` restricts them, by a mechanism's name or the full name of one way to use it. `coarser` = (g, number of cells when
    g neighbours are taken as one) adds some of them on wider bins. `model` of the one column of `domain` adds the
    pseudo-posterior, `reference` another one weighted by it, and `asymptotic` those that have no certificate.
    """
    able, refused = [], []
    given = {"model": model, "reference": reference}
    offered = _offered(given, asymptotic=asymptotic)
    for name, way, group, size in _ways(_wanted(names, offered, asymptotic=asymptotic), cells, coarser):
        try:
            if way in ASYMPTOTIC:
                mechanism: Mechanism = _asymptotic(ASYMPTOTIC[way]["variant"], n, n_records, domain, model, guarantee)
            else:
                asked = {key: given[key] if value is ... else value for key, value in ways()[way].items()}
                recipe: Recipe = recipes()[_family(way)](**asked)  # type: ignore[arg-type]  # the fields are its own
                public = Public(n=n, cells=size, guarantee=guarantee, domain=domain if group == 1 else None)
                if recipe.publishes_records and "records" not in asked:
                    recipe = replace(recipe, records=n_records)
                mechanism, _ = choose(recipe, public)
        except (CalibrationError, ModelError, DomainError, FormatError) as error:
            refused.append(Refused(name=name, reason=_why_not(error)))
            continue
        able.append(Candidate(name=name, mechanism=mechanism, group=group, certified=way not in ASYMPTOTIC))
    return tuple(able), tuple(refused)


def _offered(given: Mapping[str, Any], *, asymptotic: bool) -> list[str]:
    """The ways that there is enough to try."""
    if given["model"] is None and (given["reference"] is not None or asymptotic):
        raise ModelError(
            "a mechanism with a reference, or without a certificate, needs a model of the column.",
            hint="For example model=privurn.models.Beta()",
        )
    able = [way for way, asked in ways().items() if all(given[key] is not None for key, value in asked.items() if value is ...)]
    return able + (list(ASYMPTOTIC) if asymptotic else [])


def _asymptotic(
    variant: Variant, n: int, n_records: int | None, domain: JointDomain | None, model: Model | None, guarantee: Guarantee
) -> AsymptoticPseudoPosterior:
    """With the threshold epsilon/2 of the paper, where the variant has one."""
    if domain is None or model is None:
        raise ModelError("a model of the column, and its domain, are needed.")
    threshold = guarantee.epsilon / 2.0 if variant in ("weighted-e", "censor-w") else None
    records = n if n_records is None else n_records
    return AsymptoticPseudoPosterior(
        n=n, domain=only_column(domain), model=model, records=records, variant=variant, threshold=threshold
    )


def _family(way: str) -> str:
    return way.partition(",")[0]


def _wanted(names: Sequence[str] | None, offered: Sequence[str], *, asymptotic: bool) -> list[str]:
    """Of what is offered, what is named; what has no certificate is asked for by a switch, so a name only restricts it."""
    if names is None:
        return list(offered)
    for name in names:
        if not any(name in (way, _family(way)) for way in (*ways(), *ASYMPTOTIC)):
            known = ", ".join(dict.fromkeys(map(_family, ways())))
            raise FormatError(f"the mechanism {name!r} is not known.", hint=f"One of {known}")
        if not any(name in (way, _family(way)) for way in offered):
            raise ModelError(
                f"the mechanism {name!r} needs more than its name.",
                hint="For example model='beta'; a reference for a weighted one, asymptotic=True for one without a certificate",
            )
    named = [way for way in offered if way in names or _family(way) in names]
    if asymptotic and not any(way in ASYMPTOTIC for way in named):
        named += ASYMPTOTIC
    return named


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
