"""What can be released for a guarantee, from public quantities alone: n, the size of the domain, epsilon and delta.

Where n is secret (add-remove neighbours), the number of records asked for is the public guess of it.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

from privurn.domain import JointDomain, TableDomain
from privurn.errors import DomainError, ModelError, PrivurnError
from privurn.mechanisms.recipe import Option, Public, Recipe
from privurn.mechanisms.registry import recipes
from privurn.privacy.profile import Guarantee
from privurn.releases.forecast import Forecasts
from privurn.releases.usual import LeastError, least, usual

GIVEN: Mapping[str, Any] = {"strength": 1.0, "discount": 0.5}
"""What recipes need that has no default, and what is planned for unless it is given."""

IN_PARTS = "only of a table on Spark, in parts: one computer's memory does not hold so many records"


def options(
    *,
    n: int | None = None,
    cells: int | None,
    guarantee: Guarantee,
    domain: JointDomain | TableDomain | None = None,
    records: int | None = None,
    **given: Any,
) -> list[Option]:
    """Every way to release under the guarantee, the usual one first, with its expected errors.

    `n` confidential records; under add-remove neighbours, where that is secret, `records` that are asked for, a guess of it.
    `cells` is None for open labels.

    What is usual is known of a domain, and of a number of cells alone it is not. Columns that are too many to be taken jointly
    are a `TableDomain`. `given` are fields of recipes, such as `strength` and `discount`: each recipe takes those that it has.
    """
    public = public_of(n=n, cells=cells, guarantee=guarantee, domain=domain, records=records)
    if n == 1:
        raise DomainError("of one record nothing can be released: nothing can hide it.", hint="Plan for at least two records")
    beside, forecasts = _side_by_side(public, domain), Forecasts(public)
    found: list[Option] = []
    for kind in recipes().values():
        about = beside if kind.whole_tables else None if isinstance(domain, TableDomain) else public
        if about is None or (cells is None and kind.needs_domain):
            continue
        if public.n is None and not kind.keeps_n_secret:
            if kind.needs_domain or not kind.discovers:
                found.append(_not_had(kind, "it needs a public number of confidential records."))
            continue
        own = {each.name for each in fields(kind)}
        recipe = kind(**{name: value for name, value in {**GIVEN, **given}.items() if name in own})
        if records is not None and recipe.publishes_records:
            recipe = recipe.sized(records)
        try:
            found += [_with_room(forecasts.told(each), about) for each in recipe.planned(about)]
        except PrivurnError as error:
            if any(name in own and value != GIVEN.get(name) for name, value in given.items()):  # what was given is wrong
                raise
            found.append(_not_had(kind, error.message))
    return _usual_first(found, public, domain)


def public_of(
    *,
    n: int | None,
    cells: int | None,
    guarantee: Guarantee,
    domain: JointDomain | TableDomain | None = None,
    records: int | None = None,
) -> Public:
    """What a plan looks at; refused where the number of records is missing, or said twice."""
    joint = domain if isinstance(domain, JointDomain) else None
    if guarantee.neighbouring == "replace-one":
        if records is not None:
            raise ModelError(
                "the number of records to release stands for n where that is secret, and here it is public.",
                hint="Leave records out: each row says how many; or ask for neighbouring='add-remove', and leave n out",
            )
        if n is None:
            raise ModelError(
                "a plan needs the number of confidential records.",
                hint="For example n=50000; where it is secret, neighbouring='add-remove' and records=50000",
            )
        if n < 1:
            raise ModelError(
                "n must be a positive whole number.", hint="The number of confidential records, for example n=10000"
            )
        return Public(n=n, cells=cells, guarantee=guarantee, domain=joint)
    if n is not None:
        raise ModelError(
            "with add-remove neighbours n is secret: a plan is for the number of records asked for, a public guess of n.",
            hint=f"Leave n out, and give records={n if records is None else records}",
        )
    if records is None or records < 1:
        raise ModelError(
            "with add-remove neighbours a plan needs the number of records to release, a public guess of the secret n.",
            hint="For example records=50000",
        )
    if cells is None:
        raise ModelError(
            "open labels need a public number of records.", hint="List the categories, or use replace-one neighbours"
        )
    LeastError(records=records).check()
    return Public(n=None, cells=cells, guarantee=guarantee, domain=joint, guess=records)


def remarks(
    *,
    n: int | None = None,
    cells: int | None,
    guarantee: Guarantee,
    domain: JointDomain | TableDomain | None = None,
    records: int | None = None,
    found: list[Option] | None = None,
) -> tuple[str, ...]:
    """What a release would remark where no mechanism is asked for, and what noise does to pairs of several columns.

    `found` are the options of the same plan, where they are at hand.
    """
    public, kind = public_of(n=n, cells=cells, guarantee=guarantee, domain=domain, records=records), _usual(cells, domain)
    beside = _side_by_side(public, domain)
    words: tuple[str, ...] = ()
    if not kind.whole_tables:
        first = found[0].asked if found else None
        recipe = first or kind(records=records).settled(replace(public, guess=None))
        with suppress(PrivurnError):
            words = tuple(recipe.remarks(recipe.calibrate(public), public))
    return words if beside is None else (*words, *_pairs_in_words(beside))


def _usual_first(found: list[Option], public: Public, domain: JointDomain | TableDomain | None) -> list[Option]:
    """What a release makes where nothing is asked for before all else, and after it other rows of the same mechanism."""
    kind = _usual(public.cells, domain)
    if kind is LeastError:
        asked = LeastError(records=public.guess).known(replace(public, guess=None))
        rows = [each for each in found if each.asked == asked] if asked else [least(found, public)]
    else:
        rows = [each for each in found if each.mechanism == kind.alias]
    first = next((each for each in rows if each is not None), None)
    if first is None:
        return found
    others = sorted((each for each in found if each is not first), key=lambda each: each.mechanism != first.mechanism)
    named = public.cells is None or domain is not None  # of a mere number of cells no release is made
    return [replace(first, remark=f"the default: {first.remark}") if named else first, *others]


def _with_room(row: Option, public: Public) -> Option:
    """What a row's remark says of more records than the memory of one computer holds, if it asks for as many."""
    if row.asked is None or row.made is None:
        return row
    try:
        row.asked.check_room(row.made, public)
    except PrivurnError as error:
        try:
            row.asked.check_room(row.made, replace(public, in_parts=True))
        except PrivurnError:
            return _not_had(type(row.asked), error.message)
        return replace(row, remark=f"{row.remark}; {IN_PARTS}")
    return row


def _not_had(kind: type[Recipe], why: str) -> Option:
    """A row that says why nothing is released."""
    return Option(mechanism=kind.alias, records=0, remark=f"cannot be had: {why.removesuffix('.')}")


def _pairs_in_words(beside: Public) -> tuple[str, ...]:
    """What noise does to pairs of columns side by side, which columns are too fine, and what coarser ones would buy."""
    from privurn.mechanisms.marginals_plan import planned_words

    return planned_words(beside)


def _usual(cells: int | None, domain: JointDomain | TableDomain | None) -> type[Recipe]:
    """What is made where nothing is asked for; of a mere number of cells, as of cells in no order."""
    return LeastError if cells is not None and domain is None else usual(domain)


def _side_by_side(public: Public, domain: JointDomain | TableDomain | None) -> Public | None:
    """What is public about columns side by side; None where there are not several."""
    if domain is None or len(domain.columns) < 2:
        return None
    table = TableDomain(domain.columns)
    return replace(public, cells=table.size, domain=None, table=table)
