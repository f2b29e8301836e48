"""What can be released for a guarantee, from public quantities alone: n, the size of the domain, epsilon and delta."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from privurn.domain import JointDomain
from privurn.errors import DomainError, PrivurnError
from privurn.mechanisms.choice import usual, usual_of_cells
from privurn.mechanisms.recipe import Option, Public, Recipe
from privurn.mechanisms.registry import recipes
from privurn.privacy.profile import Guarantee

GIVEN: Mapping[str, Any] = {"strength": 1.0, "discount": 0.5}
"""What recipes need that has no default, and what is planned for unless it is given."""


def options(
    *, n: int, cells: int | None, guarantee: Guarantee, domain: JointDomain | None = None, **given: Any
) -> list[Option]:
    """Every way to release n records under the guarantee, the usual one first; `cells` is None for open labels.

    `given` are fields of recipes, such as `strength` and `discount`: each recipe takes those that it has.
    """
    if n == 1:
        raise DomainError("of one record nothing can be released: nothing can hide it.", hint="Plan for at least two records")
    public = Public(n=n, cells=cells, guarantee=guarantee, domain=domain)
    known, first = recipes(), _usual(public)
    found: list[Option] = []
    for kind in (first, *(each for each in known.values() if each is not first)):
        if kind.whole_tables or (cells is None and kind.needs_domain):
            continue
        own = {each.name for each in fields(kind)}
        found += kind(**{name: value for name, value in {**GIVEN, **given}.items() if name in own}).planned(public)
    return found


def remarks(*, n: int, cells: int | None, guarantee: Guarantee, domain: JointDomain | None = None) -> tuple[str, ...]:
    """What a release would remark where no mechanism is asked for."""
    public = Public(n=n, cells=cells, guarantee=guarantee, domain=domain)
    recipe = _usual(public)()
    try:
        return recipe.remarks(recipe.calibrate(public), public)
    except PrivurnError:
        return ()


def _usual(public: Public) -> type[Recipe]:
    """What is made where nothing is asked for; of a mere number of cells, as of cells in no order."""
    delta = public.guarantee.delta
    if public.cells is not None and public.domain is None:
        return usual_of_cells(public.cells, delta=delta)
    return usual(public.domain, delta=delta)
