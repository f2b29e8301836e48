"""From a recipe and public quantities to a mechanism that meets the guarantee, or a refusal with what can be had instead."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from privurn.errors import Alternative, CalibrationError, FormatError, ModelError, PrivurnError
from privurn.mechanisms.alternatives import meets, wider
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.recipe import EXAMPLE_RECORDS, Public, Recipe
from privurn.mechanisms.registry import recipes


def choose(recipe: Recipe, public: Public) -> tuple[Mechanism, tuple[str, ...]]:
    """The mechanism that the recipe asks for, calibrated, and remarks on it."""
    recipe = settle(recipe, public)
    with offering(recipe, public):
        mechanism = recipe.calibrate(public)
        recipe.check_room(mechanism, public)
        if not meets(mechanism.profile, public.guarantee):
            found = (*recipe.nearby(mechanism, public), *wider(mechanism.profile, public.guarantee))
            raise CalibrationError(recipe.too_costly(mechanism), alternatives=found)
    return mechanism, recipe.remarks(mechanism, public)


def check_recipe(recipe: object) -> None:
    """What can be refused before anything public is known."""
    if not isinstance(recipe, Recipe):
        raise FormatError("the mechanism is not one that can be asked for.", hint="For example mechanism=privurn.Urn()")
    recipe.check()


def settle(recipe: Recipe, public: Public) -> Recipe:
    """What is asked for, once it may be: of a choice between others the chosen one."""
    with offering(recipe, public):
        check_recipe(recipe)
        _check_domain(recipe, public)
        _check_secret_size(recipe, public)
    return recipe.settled(public)


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
