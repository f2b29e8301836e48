"""Options of the mechanisms, one group each, from the fields of their recipes; read when a command that has them runs."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from privurn.cli.parsing import parse_model, whole_number
from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.mechanisms.recipe import Recipe

SHOWN, ASKED = "privurn.shown", "privurn.asked"


class MechanismCommand(TyperCommand):
    """A command whose options are its own and those of the mechanisms; the latter are put into the context's meta."""

    def get_params(self, ctx: Any) -> Any:
        """Each option once; on the help page once for every mechanism that has it."""
        *own, last = super().get_params(ctx)  # the last is --help
        return [*own, *(_shown() if ctx.meta.get(SHOWN) else _options()), last]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """With a group for each mechanism."""
        ctx.meta[SHOWN] = True
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Apart from the command's own options."""
        ctx.meta[ASKED] = {each.name: ctx.params.pop(each.name) for each in _options()}
        return super().invoke(ctx)


def recipe_fields(kind: Any) -> "dict[str, Field[Any]]":
    """The fields of a recipe that are options, by the option's name without dashes before it."""
    return {each.metadata["flag"] or each.name.replace("_", "-"): each for each in fields(kind) if each.metadata.get("help")}


def asked_recipe(context: typer.Context, name: str | None, *, open_labels: bool) -> "Recipe | None":
    """The mechanism asked for by name and options; None where neither is given."""
    from privurn.mechanisms.registry import RECIPES, default_recipe

    default = name in (None, "auto")
    if not default and name not in RECIPES:
        raise FormatError(f"the mechanism {name!r} is not known.", hint=", ".join(("auto", *RECIPES)))
    kind = default_recipe(open_labels=open_labels) if default else RECIPES[str(name)]
    known = recipe_fields(kind)
    given = {key.replace("_", "-"): value for key, value in context.meta[ASKED].items() if value not in (None, False)}
    for flag in given:
        if flag not in known:
            users = [alias for alias, other in RECIPES.items() if flag in recipe_fields(other)]
            raise FormatError(
                f"the mechanism {kind.alias} has no --{flag}: that is for {' and '.join(users)}.",
                hint=f"Leave it out, or name that with --mechanism; {kind.alias} has --{', --'.join(known)}",
            )
    for flag, each in known.items():
        if each.default is MISSING and flag not in given:
            raise FormatError(f"the mechanism {kind.alias} needs --{flag}.", hint=f"For example --{flag} 0.5")
    if not given and default:
        return None
    return kind(**{known[flag].name: _read(known[flag], value) for flag, value in given.items()})


def _read(each: "Field[Any]", value: Any) -> Any:
    """As the field wants it; numbers stay text, which is read without rounding."""
    from privurn.mechanisms.models import Model

    if each.type in (int, int | None):
        return whole_number(value)
    return parse_model(value) if each.type == (Model | None) else value


def _options() -> list[Any]:
    from privurn.mechanisms.registry import RECIPES

    found: dict[str, Field[Any]] = {}
    for kind in RECIPES.values():
        found = recipe_fields(kind) | found
    return _built(found, panel=None)


def _shown() -> Iterator[Any]:
    """What every mechanism has stands among the command's own options."""
    from privurn.mechanisms.recipe import Recipe
    from privurn.mechanisms.registry import RECIPES, default_recipe

    shared = recipe_fields(Recipe)
    yield from _built(shared, panel=None)
    words: Mapping[type[Recipe], str] = {
        default_recipe(open_labels=False): " (default)",
        default_recipe(open_labels=True): " (default with --open-labels)",
    }
    for alias, kind in RECIPES.items():
        own = {flag: each for flag, each in recipe_fields(kind).items() if flag not in shared}
        yield from _built(own, panel=f"--mechanism {alias}{words.get(kind, '')}")


def _built(described: "Mapping[str, Field[Any]]", *, panel: str | None) -> list[Any]:
    """Options as typer makes them from a function's parameters."""

    def nothing() -> None:
        """A function that has the options as its parameters."""

    parameters = []
    for flag, each in described.items():
        told = typer.Option(f"--{flag}", help=each.metadata["help"], rich_help_panel=panel, show_default=False)
        kind: Any = bool if each.type is bool else str | None
        default = False if each.type is bool else None
        nothing.__annotations__[flag.replace("-", "_")] = annotation = Annotated[kind, told]
        parameters.append(
            inspect.Parameter(flag.replace("-", "_"), inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    nothing.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False)
    app.command()(nothing)
    return list(typer.main.get_command(app).params)
