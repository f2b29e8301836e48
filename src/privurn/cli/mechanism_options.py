"""Options of mechanisms, channels and sums, one group each, from the fields of their recipes; read when a command runs."""

import inspect
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_origin

import typer
from typer.core import TyperCommand

from privurn.cli.parsing import number, parse_model, whole_number
from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.mechanisms.recipe import Recipe

SHOWN, ASKED = "privurn.shown", "privurn.asked"


class RecipeCommand(TyperCommand):
    """A command whose options are its own and those of its recipes; the latter are put into the context's meta."""

    word: ClassVar[str]
    """The option that names a recipe."""
    others: ClassVar[tuple[str, ...]] = ("auto",)
    """What may be named beside the recipes."""

    @classmethod
    def panel(cls, alias: str) -> str:
        """What names a recipe; the heading of its own options."""
        return f"--{cls.word} {alias}"

    @classmethod
    @abstractmethod
    def recipes(cls) -> Mapping[str, Any]:
        """What can be asked for, by name."""

    @classmethod
    def defaults(cls) -> Mapping[Any, str]:
        """What is made where nothing is asked for, and when."""
        return {}

    def get_params(self, ctx: Any) -> Any:
        """Each option once; on the help page once for every recipe that has it."""
        *own, last = super().get_params(ctx)  # the last is --help
        return [*own, *(self._shown() if ctx.meta.get(SHOWN) else self._options()), last]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """With a group for each recipe."""
        ctx.meta[SHOWN] = True
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Apart from the command's own options."""
        ctx.meta[ASKED] = {each.name: ctx.params.pop(each.name) for each in self._options()}
        return super().invoke(ctx)

    @classmethod
    def given(cls, context: typer.Context) -> dict[str, Any]:
        """Options of recipes that were given, by their names without dashes before them."""
        asked = context.meta[ASKED].items()
        return {key.replace("_", "-"): value for key, value in asked if value not in (None, False, [], ())}

    @classmethod
    def asked(cls, context: typer.Context, kind: Any) -> Any:
        """The recipe with the options that were given."""
        known, given = recipe_fields(kind), cls.given(context)
        for flag in given:
            if flag not in known:
                users = [alias for alias, other in cls.recipes().items() if flag in recipe_fields(other)]
                has = f"{kind.alias} has --{', --'.join(known)}" if known else f"{kind.alias} has no options"
                raise FormatError(
                    f"the {cls.word} {kind.alias} has no --{flag}: that is for {', '.join(users)}.",
                    hint=f"Leave it out, or name that with {cls.panel('NAME')}; {has}",
                )
        for flag, each in known.items():
            if each.default is MISSING and flag not in given:
                raise FormatError(f"the {cls.word} {kind.alias} needs --{flag}.", hint=each.metadata["help"])
        return kind(**{known[flag].name: _read(known[flag], value) for flag, value in given.items()})

    @classmethod
    def named(cls, name: str) -> Any:
        """The recipe of that name."""
        known = cls.recipes()
        if name not in known:
            raise FormatError(
                f"the {cls.word} {name!r} is not known.", hint=f"--{cls.word} and one of {', '.join((*cls.others, *known))}"
            )
        return known[name]

    @classmethod
    def _options(cls) -> list[Any]:
        found: dict[str, Field[Any]] = {}
        for kind in cls.recipes().values():
            found = recipe_fields(kind) | found
        return _built(found, panel=None)

    @classmethod
    def _shown(cls) -> Iterator[Any]:
        """What every recipe has stands among the command's own options."""
        every = [recipe_fields(kind) for kind in cls.recipes().values()]
        shared = {flag: each for flag, each in every[0].items() if all(flag in other for other in every)}
        yield from _built(shared, panel=None)
        usual = cls.defaults()
        for alias, kind in cls.recipes().items():
            own = {flag: each for flag, each in recipe_fields(kind).items() if flag not in shared}
            yield from _built(own, panel=f"{cls.panel(alias)}{usual.get(kind, '')}")


class MechanismCommand(RecipeCommand):
    """For `privurn release`. With a channel or a model of sums it is the command that is short for that."""

    word: ClassVar[str] = "mechanism"

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """That of the other command, where its recipe is named: the same options, but for the word that names it."""
        for at, word in enumerate(args):
            flag, equals, value = word.partition("=")
            named = value if equals else args[at + 1] if at + 1 < len(args) else ""
            for name, kind in SHORT.items() if flag == f"--{self.word}" else ():
                if named in kind.recipes():
                    changed = [*args[:at], f"--{kind.word}", named, *args[at + (1 if equals else 2) :]]
                    command = parent.command.get_command(parent, name)
                    return command.make_context(name, changed, parent=parent, **extra)
        return super().make_context(info_name, args, parent=parent, **extra)

    @classmethod
    def named(cls, name: str) -> Any:
        """The recipe of that name."""
        if name not in cls.recipes():
            known = (*cls.others, *cls.recipes(), *(alias for kind in SHORT.values() for alias in kind.recipes()))
            raise FormatError(f"the {cls.word} {name!r} is not known.", hint=f"--{cls.word} and one of {', '.join(known)}")
        return cls.recipes()[name]

    @classmethod
    def recipes(cls) -> Mapping[str, Any]:
        """All mechanisms."""
        from privurn.mechanisms.registry import recipes

        return recipes()

    @classmethod
    def defaults(cls) -> Mapping[Any, str]:
        """One for each kind of domain."""
        from privurn.mechanisms.registry import default_recipe
        from privurn.releases.usual import LeastError

        return {
            **dict.fromkeys(LeastError.candidates(), " (default where its expected error is the least)"),
            default_recipe("order"): " (default for one or two columns of numbers or dates, but where another's error is less)",
            default_recipe("table"): " (default for several other columns with many joint cells)",
            default_recipe("labels"): " (default with --open-labels)",
        }


class AuditCommand(RecipeCommand):
    """For `privurn audit`, whose first word names a mechanism."""

    word: ClassVar[str] = "mechanism"

    @classmethod
    def panel(cls, alias: str) -> str:
        """As it is typed."""
        return f"audit {alias}"

    @classmethod
    def named(cls, name: str) -> Any:
        """The recipe of that name."""
        if name not in cls.recipes():
            raise FormatError(f"the mechanism {name!r} is not known.", hint=f"{', '.join(cls.recipes())}; or --certificate DIR")
        return cls.recipes()[name]

    @classmethod
    def recipes(cls) -> Mapping[str, Any]:
        """All mechanisms."""
        return MechanismCommand.recipes()


class ChannelCommand(RecipeCommand):
    """For `privurn privatise`."""

    word: ClassVar[str] = "channel"

    @classmethod
    def recipes(cls) -> Mapping[str, Any]:
        """All channels."""
        from privurn.mechanisms.registry import channel_recipes

        return channel_recipes()


class StatisticsCommand(RecipeCommand):
    """For `privurn statistics`."""

    word: ClassVar[str] = "model"
    others: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def recipes(cls) -> Mapping[str, Any]:
        """All models."""
        from privurn.cli.statistic_models import models

        return models()


SHORT: dict[str, type[RecipeCommand]] = {"privatise": ChannelCommand, "statistics": StatisticsCommand}
"""Commands that are short for `privurn release --mechanism NAME`, by whose recipes NAME may be."""


def recipe_fields(kind: Any) -> "dict[str, Field[Any]]":
    """The fields of a recipe that are options, by the option's name without dashes before it."""
    return {each.metadata["flag"] or each.name.replace("_", "-"): each for each in fields(kind) if each.metadata.get("help")}


def asked_mechanism(context: typer.Context, name: str, *, domain: Any) -> "Recipe | None":
    """The mechanism asked for by name and options; None where neither is given."""
    from privurn.domain import JointDomain, OpenLabels, TableDomain, several_columns
    from privurn.mechanisms.registry import default_recipe
    from privurn.releases.usual import LeastError, has_order, usual

    if name == "auto":
        if isinstance(domain, Mapping):
            domain = several_columns(domain)
        elif not isinstance(domain, (JointDomain, OpenLabels, TableDomain)):
            domain = JointDomain({"": domain})
        kind = usual(None if isinstance(domain, OpenLabels) else domain)
        flags = set(MechanismCommand.given(context))
        if kind is LeastError and not flags <= set(recipe_fields(kind)):  # what only one of them has is a choice
            able = (each for each in LeastError.candidates() if flags <= set(recipe_fields(each)))
            kind = default_recipe("order") if has_order(domain) else next(able, kind)
    else:
        kind = MechanismCommand.named(name)
    made: Recipe = MechanismCommand.asked(context, kind)
    return None if name == "auto" and made == kind() else made


def _read(each: "Field[Any]", value: Any) -> Any:
    """As the field wants it; numbers stay text, which is read without rounding."""
    from privurn.mechanisms.models import Model

    if each.type in (int, int | None):
        return whole_number(value)
    if each.type is float:
        return number(value)
    if get_origin(each.type) is tuple:
        return tuple(value)
    return parse_model(value) if each.type == (Model | None) else value


def _built(described: "Mapping[str, Field[Any]]", *, panel: str | None) -> list[Any]:
    """Options as typer makes them from a function's parameters."""

    def nothing() -> None:
        """A function that has the options as its parameters."""

    parameters = []
    for flag, each in described.items():
        told = typer.Option(f"--{flag}", help=each.metadata["help"], rich_help_panel=panel, show_default=False)
        kind: Any = bool if each.type is bool else list[str] | None if get_origin(each.type) is tuple else str | None
        default = False if each.type is bool else None
        nothing.__annotations__[flag.replace("-", "_")] = annotation = Annotated[kind, told]
        parameters.append(
            inspect.Parameter(flag.replace("-", "_"), inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    nothing.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False)
    app.command()(nothing)
    return list(typer.main.get_command(app).params)
