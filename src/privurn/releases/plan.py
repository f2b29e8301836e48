"""What can be released for a guarantee, from public quantities alone: n, the size of the domain, epsilon and delta."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from privurn.domain import JointDomain, TableDomain
from privurn.errors import DomainError
from privurn.mechanisms.choice import usual
from privurn.mechanisms.recipe import Option, Public
from privurn.mechanisms.registry import default_recipe, recipes
from privurn.privacy.profile import Guarantee

GIVEN: Mapping[str, Any] = {"strength": 1.0, "discount": 0.5}
"""What recipes need that has no default, and what is planned for unless it is given."""


def options(
    *, n: int, cells: int | None, guarantee: Guarantee, domain: JointDomain | TableDomain | None = None, **given: Any
) -> list[Option]:
    """Every way to release n records under the guarantee, the usual one first; `cells` is None for open labels.

    Columns that are too many to be taken jointly are a `TableDomain`. `given` are fields of recipes, such as `strength` and
    `discount`: each recipe takes those that it has.
    """
    if n == 1:
        raise DomainError("of one record nothing can be released: nothing can hide it.", hint="Plan for at least two records")
    joint = domain if isinstance(domain, JointDomain) else None
    public = Public(n=n, cells=cells, guarantee=guarantee, domain=joint)
    beside = _side_by_side(n, guarantee, domain)
    known, first = recipes(), default_recipe("cells") if cells is not None and domain is None else usual(domain)
    found: list[Option] = []
    for kind in (first, *(each for each in known.values() if each is not first)):
        about = beside if kind.whole_tables else None if isinstance(domain, TableDomain) else public
        if about is None or (cells is None and kind.needs_domain):
            continue
        own = {each.name for each in fields(kind)}
        found += kind(**{name: value for name, value in {**GIVEN, **given}.items() if name in own}).planned(about)
    return found


def _side_by_side(n: int, guarantee: Guarantee, domain: JointDomain | TableDomain | None) -> Public | None:
    """What is public about columns side by side; None where there are not several."""
    if domain is None or len(domain.columns) < 2:
        return None
    table = TableDomain(domain.columns)
    return Public(n=n, cells=table.size, guarantee=guarantee, table=table)


def table_remarks(*, n: int, guarantee: Guarantee, domain: JointDomain | TableDomain) -> tuple[str, ...]:
    """What noise does to pairs of columns side by side, which columns are too fine, and what coarser ones would buy."""
    from privurn.mechanisms.marginals_plan import planned_words

    public = _side_by_side(n, guarantee, domain)
    return () if public is None else planned_words(public)
