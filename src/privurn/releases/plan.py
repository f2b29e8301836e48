"""What can be released for a guarantee, from public quantities alone: n, the size of the domain, epsilon and delta."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

from privurn.domain import JointDomain, TableDomain
from privurn.errors import DomainError, PrivurnError
from privurn.mechanisms.choice import LeastError, usual
from privurn.mechanisms.recipe import Option, Public, Recipe
from privurn.mechanisms.registry import recipes
from privurn.privacy.profile import Guarantee
from privurn.releases.forecast import Forecasts

GIVEN: Mapping[str, Any] = {"strength": 1.0, "discount": 0.5}
"""What recipes need that has no default, and what is planned for unless it is given."""


def options(
    *, n: int, cells: int | None, guarantee: Guarantee, domain: JointDomain | TableDomain | None = None, **given: Any
) -> list[Option]:
    """Every way to release n records under the guarantee, the usual one first, with its expected errors.

    `cells` is None for open labels.

    What is usual is known of a domain, and of a number of cells alone it is not. Columns that are too many to be taken jointly
    are a `TableDomain`. `given` are fields of recipes, such as `strength` and `discount`: each recipe takes those that it has.
    """
    if n == 1:
        raise DomainError("of one record nothing can be released: nothing can hide it.", hint="Plan for at least two records")
    joint = domain if isinstance(domain, JointDomain) else None
    public = Public(n=n, cells=cells, guarantee=guarantee, domain=joint)
    beside = _side_by_side(n, guarantee, domain)
    known, first = recipes(), type(_usual(cells, domain)().settled(public))
    forecasts = Forecasts(public)
    found: list[Option] = []
    for kind in (first, *(each for each in known.values() if each is not first)):
        about = beside if kind.whole_tables else None if isinstance(domain, TableDomain) else public
        if about is None or (cells is None and kind.needs_domain):
            continue
        own = {each.name for each in fields(kind)}
        recipe = kind(**{name: value for name, value in {**GIVEN, **given}.items() if name in own})
        found += [forecasts.told(each) for each in recipe.planned(about)]
    usual_one = found and found[0].mechanism == first.alias and (cells is None or domain is not None)
    return [replace(found[0], remark=f"the default: {found[0].remark}"), *found[1:]] if usual_one else found


def remarks(
    *, n: int, cells: int | None, guarantee: Guarantee, domain: JointDomain | TableDomain | None = None
) -> tuple[str, ...]:
    """What a release would remark where no mechanism is asked for, and what noise does to pairs of several columns."""
    kind, beside = _usual(cells, domain), _side_by_side(n, guarantee, domain)
    joint = domain if isinstance(domain, JointDomain) else None
    public = beside if kind.whole_tables else Public(n=n, cells=cells, guarantee=guarantee, domain=joint)
    found: tuple[str, ...] = ()
    if public is not None and not kind.whole_tables:
        recipe = kind().settled(public)
        with suppress(PrivurnError):
            found = tuple(recipe.remarks(recipe.calibrate(public), public))
    return found if beside is None else (*found, *_pairs_in_words(beside))


def _pairs_in_words(beside: Public) -> tuple[str, ...]:
    """What noise does to pairs of columns side by side, which columns are too fine, and what coarser ones would buy."""
    from privurn.mechanisms.marginals_plan import planned_words

    return planned_words(beside)


def _usual(cells: int | None, domain: JointDomain | TableDomain | None) -> type[Recipe]:
    """What is made where nothing is asked for; of a mere number of cells, as of cells in no order."""
    return LeastError if cells is not None and domain is None else usual(domain)


def _side_by_side(n: int, guarantee: Guarantee, domain: JointDomain | TableDomain | None) -> Public | None:
    """What is public about columns side by side; None where there are not several."""
    if domain is None or len(domain.columns) < 2:
        return None
    table = TableDomain(domain.columns)
    return Public(n=n, cells=table.size, guarantee=guarantee, table=table)
