"""From a recipe and public quantities to a mechanism that meets the guarantee, or a refusal with what can be had instead."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

from privurn.domain import JointDomain, TableDomain
from privurn.errors import Alternative, CalibrationError, FormatError, ModelError, PrivurnError
from privurn.mechanisms.alternatives import meets, wider
from privurn.mechanisms.forecast import MOST_CELLS, Whole, expected_errors, unordered_tables
from privurn.mechanisms.marginals_layout import measurable
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.noisy_tree import tree_shape
from privurn.mechanisms.perturbed_histogram import MOST_CELLS as MOST_NOISY_CELLS
from privurn.mechanisms.recipe import EXAMPLE_RECORDS, Public, Recipe
from privurn.mechanisms.registry import default_recipe, recipes

TINY = 100
"""Joint cells of several columns up to which they are counted jointly; beyond, their low-order marginals tell more."""


def choose(recipe: Recipe, public: Public) -> tuple[Mechanism, tuple[str, ...]]:
    """The mechanism that the recipe asks for, calibrated, and remarks on it."""
    with offering(recipe, public):
        check_recipe(recipe)
        _check_domain(recipe, public)
        _check_secret_size(recipe, public)
    recipe = recipe.settled(public)
    with offering(recipe, public):
        mechanism = recipe.calibrate(public)
        recipe.check_room(mechanism, public)
        if not meets(mechanism.profile, public.guarantee):
            found = (*recipe.nearby(mechanism, public), *wider(mechanism.profile, public.guarantee))
            raise CalibrationError(recipe.too_costly(mechanism), alternatives=found)
    return mechanism, recipe.remarks(mechanism, public)


def usual(domain: JointDomain | TableDomain | None) -> type[Recipe]:
    """What is made of a domain where nothing is asked for; None: of labels that nobody listed."""
    if domain is None:
        return default_recipe("labels")
    if isinstance(domain, TableDomain):
        return default_recipe("table")
    shape = tree_shape(domain)
    if shape is not None and max(shape[0]) > 1:
        return default_recipe("order")
    if len(domain.columns) > 1 and domain.size > TINY and measurable(TableDomain(domain.columns)):
        return default_recipe("table")
    return LeastError


@dataclass(frozen=True, kw_only=True, repr=False)
class LeastError(Recipe):
    """Of cells in no order: records from noisy counts, an urn or a smoothed histogram, whichever has the least expected error.

    The error is the total variation distance from the data, forecast from public quantities (`mechanisms.forecast`); the number
    of records asked for stands for a secret n. Of more cells than are forecast: an urn, but noisy counts where delta is 0.
    """

    alias: ClassVar[str] = "auto"
    keeps_n_secret: ClassVar[bool] = True

    def settled(self, public: Public) -> Recipe:
        """That with the least expected error."""
        cells, size = public.known_cells, public.n or self.records or 0
        found = [kind(records=self.records) for kind in self.candidates()]
        if cells <= MOST_CELLS and size > 0:
            tables = unordered_tables(n=size, cells=cells)
            return min(found, key=lambda each: _expected_distance(each, public, tables))
        noisy, urn, _ = found
        return noisy if public.guarantee.delta == 0.0 and cells <= MOST_NOISY_CELLS else urn

    @staticmethod
    def candidates() -> list[type[Recipe]]:
        """What is chosen from."""
        return [default_recipe(f"{each} cells") for each in ("noisy", "urn of", "smoothed")]

    def calibrate(self, public: Public) -> Mechanism:
        """As what is chosen does."""
        return self.settled(public).calibrate(public)


def _expected_distance(recipe: Recipe, public: Public, tables: list[Whole]) -> float:
    """Infinite where it cannot be had."""
    try:
        made = recipe.calibrate(public)
        recipe.check_room(made, public)
    except PrivurnError:
        return float("inf")
    return expected_errors(lambda counts, rng: made.simulated_weights(counts, rng=rng), tables).distance


def check_recipe(recipe: object) -> None:
    """What can be refused before anything public is known."""
    if not isinstance(recipe, Recipe):
        raise FormatError("the mechanism is not one that can be asked for.", hint="For example mechanism=privurn.Urn()")
    recipe.check()


@contextmanager
def offering(recipe: Recipe, public: Public) -> Iterator[None]:
    """Complete the alternatives of a refusal with other mechanisms, where it asks for alternatives at all."""
    try:
        yield
    except PrivurnError as error:
        if error.alternatives is not None:
            near = [each for each in error.alternatives if not each.weak]
            weak = [each for each in error.alternatives if each.weak]
            error.alternatives = tuple(replace(each, refused=recipe) for each in _three(near, recipe, public, weak))
        raise


def _three(near: list[Alternative], recipe: Recipe, public: Public, weak: list[Alternative]) -> Iterable[Alternative]:
    """Others are only tried where there are not enough."""
    found = list(near)
    for kind in recipes().values():
        if len(found) >= 3:
            break
        if kind is not type(recipe):
            found += kind.offers(public, recipe)
    return [*found, *weak][:3]


def _check_domain(recipe: Recipe, public: Public) -> None:
    if public.cells is None and recipe.needs_domain:
        raise ModelError(f"the {recipe.alias} mechanism needs a public domain.", alternatives=())


def _check_secret_size(recipe: Recipe, public: Public) -> None:
    """With add/remove neighbours nothing may fall back on n."""
    if public.n is not None:
        return
    if public.cells is None:
        raise ModelError(
            "open labels need a public number of records.", hint="List the categories, or use replace-one neighbours"
        )
    if recipe.keeps_n_secret and recipe.has_size:
        return
    found = []
    if recipe.keeps_n_secret:
        own = recipe.sized(EXAMPLE_RECORDS).settled(public)
        words = "a public guess of their number" if own.records is None else "a number of records to release"
        found.append(Alternative(words=words, changes={"mechanism": own}))
    found.append(Alternative(words="the number of confidential records public", changes={"neighbouring": "replace-one"}))
    raise ModelError("with add/remove neighbours the number of confidential records is secret.", alternatives=found)
