"""What several commands share is declared once, and is the same in all of them."""

import typer

from privurn.cli.domain_options import DomainOptions
from privurn.cli.main import app
from privurn.cli.options import Making, grouped

COMMANDS = typer.main.get_command(app).commands


def options(command):
    return {each.name: (each.opts, each.help, each.default) for each in COMMANDS[command].params}


def test_a_domain_is_declared_by_the_same_options_everywhere():
    names = set(DomainOptions.__dataclass_fields__)
    first, *others = ({name: options(command)[name] for name in names} for command in ("release", "plan", "check", "compare"))
    assert all(each == first for each in others)


def test_all_that_make_a_release_are_told_the_same():
    names = set(Making.__dataclass_fields__)
    first, *others = ({name: options(command)[name] for name in names} for command in ("release", "privatise", "statistics"))
    assert all(each == first for each in others)


def test_a_group_is_made_from_its_options():
    found = []

    @grouped
    def command(file: str, *, making: Making, json: bool = False) -> None:
        found.append((file, making, json))

    command(file="x", json=True, **{**Making().__dict__, "seed": 3})
    assert found == [("x", Making(seed=3), True)]
