"""What is made where no mechanism is named: by the domain, and by the least expected error where several can make it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from privurn.domain import JointDomain, TableDomain
from privurn.errors import PrivurnError
from privurn.mechanisms.forecast import MOST_CELLS
from privurn.mechanisms.marginals_layout import measurable
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.noisy_tree import tree_shape
from privurn.mechanisms.perturbed_histogram import MOST_CELLS as MOST_NOISY_CELLS
from privurn.mechanisms.recipe import Option, Public, Recipe
from privurn.mechanisms.registry import default_recipe

TINY = 100
"""Joint cells of several columns up to which they are counted jointly; beyond, their low-order marginals tell more."""

PLENTY, SMALL_DELTA = 1000.0, 1e-3
"""Records times epsilon from which on, and delta up to which, the noisy tree has the least expected error by a tenth or more.

Measured on one and two columns, with and without special cells, of both relations: docs/explanation/expected-errors.md."""


def usual(domain: JointDomain | TableDomain | None) -> type[Recipe]:
    """What is made of a domain where nothing is asked for; None: of labels that nobody listed."""
    if domain is None:
        return default_recipe("labels")
    if isinstance(domain, TableDomain):
        return default_recipe("table")
    if not has_order(domain) and len(domain.columns) > 1 and domain.size > TINY and measurable(TableDomain(domain.columns)):
        return default_recipe("table")
    return LeastError


def has_order(domain: JointDomain | None) -> bool:
    """Whether its cells are of one or two columns of numbers or dates, with more than one value."""
    shape = None if domain is None else tree_shape(domain)
    return shape is not None and max(shape[0]) > 1


@dataclass(frozen=True, kw_only=True, repr=False)
class LeastError(Recipe):
    """Whichever of the candidates has the least expected error: W1 of ordered cells, else the total variation distance.

    It is forecast from public quantities, as a plan shows it; the number of records asked for stands for a secret n. Nothing is
    forecast where the tree is known to be the least, or where cells in no order are too many: of those an urn, but noisy counts
    where delta is 0.
    """

    alias: ClassVar[str] = "auto"
    keeps_n_secret: ClassVar[bool] = True

    def settled(self, public: Public) -> Recipe:
        """That with the least expected error."""
        known = self.known(public)
        if known is not None:
            return known
        from privurn.releases.forecast import Forecasts  # what simulates trees loads much

        expecting = replace(public, guess=self.records) if public.n is None else public
        forecasts = Forecasts(expecting)
        rows = [row for kind in self.candidates(public.domain) for row in planned(kind(records=self.records), expecting)]
        found = least([forecasts.told(row) for row in rows if row.asked is not None], public)
        return self.unasked(public) if found is None or found.asked is None else found.asked

    def known(self, public: Public) -> Recipe | None:
        """What needs no forecast."""
        size, single = public.n or self.records, public.guarantee.per_record()
        if size is None or size < 1 or (not has_order(public.domain) and public.known_cells > MOST_CELLS):
            return self.unasked(public)
        plenty = size * single.epsilon >= PLENTY and single.delta <= SMALL_DELTA
        return self.unasked(public) if has_order(public.domain) and (plenty or public.known_cells > MOST_CELLS) else None

    def unasked(self, public: Public) -> Recipe:
        """What is made where nothing can be forecast, or where that is known to be the least."""
        kinds = self.candidates(public.domain)
        few = public.guarantee.delta == 0.0 and public.known_cells <= MOST_NOISY_CELLS
        return (kinds[0] if has_order(public.domain) or few else default_recipe("urn of cells"))(records=self.records)

    @staticmethod
    def candidates(domain: JointDomain | None = None) -> list[type[Recipe]]:
        """What is chosen from."""
        cells = [default_recipe(f"{each} cells") for each in ("noisy", "urn of", "smoothed")]
        return [default_recipe("order"), *cells] if has_order(domain) else cells

    def calibrate(self, public: Public) -> Mechanism:
        """As what is chosen does."""
        return self.settled(public).calibrate(public)


def planned(recipe: Recipe, public: Public) -> list[Option]:
    """Lines of a plan; none where the recipe cannot be had."""
    if public.n is None and not recipe.keeps_n_secret:
        return []
    try:
        return list(recipe.planned(public))
    except PrivurnError:
        return []


def least(rows: Sequence[Option], public: Public) -> Option | None:
    """The candidates' row with the least expected error that can be had, the first of equals; None where there is none."""
    kinds = [each.alias for each in LeastError.candidates(public.domain)]
    able = [
        (each.expected.distance, kinds.index(each.mechanism), place)
        for place, each in enumerate(rows)
        if each.mechanism in kinds and each.expected is not None and _has_room(each, public)
    ]
    return rows[min(able)[-1]] if able else None


def _has_room(row: Option, public: Public) -> bool:
    """Whether a release would make so many records."""
    if row.asked is None or row.made is None:
        return False
    try:
        row.asked.check_room(row.made, public)
    except PrivurnError:
        return False
    return True
