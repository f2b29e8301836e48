"""A mechanism is known by name in few places: its own file, the registry, the public namespace."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from privurn.mechanisms.local.channel import Channel
from privurn.mechanisms.local.local_release import LocalRelease
from privurn.mechanisms.local.recipe import ChannelRecipe
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.recipe import Recipe
from privurn.mechanisms.registry import REGISTRY, channel_recipes, channels, recipes, registered
from privurn.mechanisms.sums.recipe import Sums
from privurn.releases.usual import LeastError
from sources import FILES, nodes, place, tree

MOST_FILES = 4


@cache
def words_of(path: Path) -> tuple[set[str], list[str]]:
    """Names, and texts outside docstrings and what is said under a constant."""
    skipped = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    names, texts = set(), []
    for node in nodes(path):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names |= {node.name, node.asname or node.name}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            texts.append(node.value)
    return names, texts


def files_with(word: str) -> list[str]:
    """Where a class or an alias stands; an alias that is a plain English word only where it is the whole text or an option."""
    pattern = rf"(?<![\w-]){re.escape(word)}(?![\w-])"
    if "-" not in word:
        pattern = rf"\A{re.escape(word)}\Z|--mechanism {pattern}|:{re.escape(word)}\Z"
    words = {place(path): words_of(path) for path in FILES}
    return [file for file, (names, texts) in words.items() if word in names or any(re.search(pattern, text) for text in texts)]


def test_a_word_is_found_where_it_stands():
    assert set(files_with("PitmanYor")) == {"mechanisms/registry.py", "mechanisms/pitman_yor.py"}
    assert "mechanisms/registry.py" in files_with("perturbed-histogram")
    assert "mechanisms/mechanism.py" not in files_with("LocalRelease")  # named in a docstring alone


def test_aliases_and_classes_stand_in_few_files():
    words = {word for name in REGISTRY for word in (name, registered(name).__name__)}
    found = {word: files_with(word) for word in words}
    assert {word: files for word, files in found.items() if len(files) > MOST_FILES} == {}


assert issubclass(LocalRelease, Mechanism)  # imported, so that it is found
assert issubclass(LeastError, Recipe)


def below(kind: type) -> set[str]:
    return {kind.__name__} | {name for each in kind.__subclasses__() for name in below(each)}


def named_in(node: ast.AST) -> set[str]:
    """Names, attributes and texts below a node."""
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    found |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    return found | {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def asks(node: ast.AST) -> set[str] | None:
    """What a node compares the kind of something with; None where it does not ask for a kind."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
        return named_in(node.args[1])
    if isinstance(node, ast.MatchClass):
        return named_in(node.cls)
    if isinstance(node, ast.Compare):
        named = named_in(node)
        return named if {"type", "__name__", "__class__", "alias"} & named else None
    return None


def asked_kinds(tree: ast.Module, kinds: set[str]) -> list[str]:
    """Questions of what something is that name one of the kinds, or a tuple of them, that the file does not define."""
    own = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    own |= {  # kernels have records of the same names
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("privurn._kernels")
        for alias in node.names
    }
    tuples = {
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Tuple)
        and {each.id for each in node.value.elts if isinstance(each, ast.Name)} & kinds
    }
    return [ast.unparse(node) for node in ast.walk(tree) if (asks(node) or set()) & ((kinds | tuples) - own)]


def all_kinds() -> set[str]:
    """Classes of mechanisms, channels and what asks for them, and the names that users know those by."""
    _ = channels(), [registered(name) for name in REGISTRY]
    asked = {**recipes(), **channel_recipes()}
    found = {each for base in (Mechanism, Channel, Recipe, ChannelRecipe, Sums) for each in below(base)}
    return (found | set(asked)) - {"Recipe", "ChannelRecipe"}  # whether it is a recipe may be asked


def test_nobody_asks_what_a_mechanism_is():
    kinds = all_kinds()
    assert {"LaplaceChannel", "GlobalChannel", "PitmanYor", "PoissonStatistic", "LocalRelease"} <= kinds
    assert {"NoisyCounts", "Urn", "NumberRecipe", "Laplace", "laplace", "noisy-tree", "Sums", "LeastError"} <= kinds
    found = {place(path): asked_kinds(tree(path), kinds) for path in FILES}
    assert {file: calls for file, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    "question",
    [
        "isinstance(x, BOTH)",
        "isinstance(y, local.PitmanYor)",
        "isinstance(recipe, NoisyCounts)",
        "type(recipe).__name__ == 'Urn'",
        "type(recipe) is Urn",
        "recipe.__class__ in (Urn, Smoothed)",
        "recipe.alias == 'noisy-tree'",
    ],
)
def test_such_a_question_would_be_noticed(question):
    text = f"BOTH = (LaplaceChannel, GaussianChannel)\n{question}"
    assert asked_kinds(ast.parse(text), all_kinds()) == [question]


def test_other_questions_are_none_of_these():
    assert asked_kinds(ast.parse("isinstance(x, int)\nname == 'noisy-tree'\ntype(x) is dict"), all_kinds()) == []


def test_a_match_over_recipes_would_be_noticed_and_a_files_own_class_is_its_own():
    assert asked_kinds(ast.parse("match recipe:\n    case Urn():\n        pass"), all_kinds()) == ["Urn()"]
    assert asked_kinds(ast.parse("class Urn: ...\nisinstance(x, Urn)"), all_kinds()) == []


@pytest.mark.parametrize("folder", ["certificates", "audits", "inference", "releases", "reports"])
def test_who_certifies_audits_infers_and_reports_knows_no_registered_name(folder):
    words = {word for name in REGISTRY for word in (name, registered(name).__name__)}
    named = {
        word: [file for file in files_with(word) if file.startswith(f"{folder}/") and not file.endswith("__init__.py")]
        for word in words
    }
    assert {word: files for word, files in named.items() if files} == {}
