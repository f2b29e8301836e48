"""Messages of the library speak Python, name=value; here they become what to type on the command line."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from privurn.cli.mechanism_options import recipe_fields

if TYPE_CHECKING:
    from privurn.errors import Alternative, PrivurnError
    from privurn.mechanisms.recipe import Recipe

RENAMED = {
    "parts": "part",
    "covariates": "x",
    "response": "y",
    "share": "discovery-share",
    "file_format": "format",
    "certificates": "certificate",
}
"""Names that are others on the command line."""
REPEATED = ("part", "x")
"""Options that are given once for each of several values."""
CALLS = {"Ledger.create": "privurn ledger init", "check_ledger": "privurn ledger check", "Run": ""}
VALUE = r"'[^']*'|\"[^\"]*\"|\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|[A-Za-z_.]+\([^()]*\)|[^\s,;:()]*[^\s,;:().]"
KEPT = r"(?<!\w)'[^'\n]*'(?!\w)|(?<!\w)\"[^\"\n]*\"|(?<!\w)--[a-z][\w-]*(?: \S+)?|\b[A-Za-z][\w.]*\([^()]*\)"
"""What nobody may reword: quoted text, flags with what is typed behind them, formulas and other calls."""


def error_text(error: PrivurnError, names: Iterable[str]) -> str:
    """What the command line prints of an error; `names` are those of the options of the command that was called."""
    known = set(names)
    shown = [translated(error.message, known)]
    if error.hint is not None:
        shown.append(f"  {translated(error.hint, known)}")
    if error.offered:
        shown += ["  What can be had:", *(f"    - {each.words}: {typed(each)}" for each in error.offered)]
    return "\n".join(shown)


def typed(alternative: Alternative) -> str:
    """What to type for an alternative, and what to leave out."""
    parts: list[str] = []
    leave: list[str] = []
    for name, value in alternative.changes.items():
        if name == "mechanism":
            _diff(alternative.refused, value, parts, leave)
        elif name == "domain":
            parts.append("--categories LIST")
            leave.append("--open-labels")
        else:
            parts += _flags(name, value)
    return " ".join(parts) + (f" (leave {', '.join(leave)} out)" if leave else "")


def _diff(old: Recipe, new: Recipe, parts: list[str], leave: list[str]) -> None:
    """The options in which two recipes differ."""
    if type(old) is not type(new):
        parts.append(f"--mechanism {new.alias}")
    before = {flag: getattr(old, each.name) for flag, each in recipe_fields(type(old)).items() if each.name in old.given}
    after = {flag: getattr(new, each.name) for flag, each in recipe_fields(type(new)).items()}
    for flag, value in after.items():
        named = flag in before or recipe_fields(type(new))[flag].name in new.given
        if named and value is not None and before.get(flag) != value:
            parts += _flags(flag, value)
    leave += [f"--{flag}" for flag in before if after.get(flag) is None]


def translated(text: str, names: set[str]) -> str:
    """The text with name=value of known options as flags, names of two words alone too, and grids as they are typed.

    What is quoted, what is typed as a flag already and what a formula asks, P(sex=f), stay as they are.
    """
    known = {each for each in {*names, *RENAMED} if RENAMED.get(each, each) in names}
    known |= {"domain"} if "column" in names else set()
    words = [each for each in names if "_" in each]
    parts = {
        "called": rf"\b(?P<call>{_any(CALLS)})\((?P<arguments>[^()]*)\)",
        "grid": r"\bGrid\((?P<ends>[^()]+)\)",
        "given": rf"(?<![\w-])(?P<name>{_any(known)})=(?P<value>{VALUE})",
        "kept": KEPT,
        "word": rf"(?<![\w'\"./-])(?:{_any(words)})(?![\w'\"=(])",
    }
    return re.sub("|".join(f"(?P<{part}>{pattern})" for part, pattern in parts.items()), _as_typed, text)


def _any(words: Iterable[str]) -> str:
    """A pattern of any of these words, the longest first; of nothing where there are none."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True))) or r"(?!)"


def _as_typed(found: re.Match[str]) -> str:
    """One part of a message as it is typed."""
    if found["called"]:
        return f"{CALLS[found['call']]} {_arguments(found['arguments'])}".lstrip()
    if found["grid"]:
        return f"--grid {found['ends'].replace(', ', ':').replace(chr(39), '')}"
    if found["given"]:
        return " ".join(_spoken(found["name"], found["value"]))
    return found[0] if found["kept"] else f"--{found[0].replace('_', '-')}"


def _arguments(text: str) -> str:
    """Arguments of a call as they are typed."""
    whole = f"f({text})"
    call = ast.parse(whole, mode="eval").body
    assert isinstance(call, ast.Call)
    places = [shlex.quote(str(_value(_written(whole, each)))) for each in call.args]
    return " ".join(
        [*places, *(part for each in call.keywords for part in _spoken(str(each.arg), _written(whole, each.value)))]
    )


def _written(text: str, node: ast.expr) -> str:
    """A part of an expression as it is written: 1e-6, not 1e-06."""
    return str(ast.get_source_segment(text, node))


def _spoken(name: str, text: str) -> Iterator[str]:
    """A keyword and Python text of its value as flags."""
    if name == "ledger" and text == "False":
        yield "--no-ledger"
    elif name == "domain":
        yield from _domain(text)
    elif name == "mechanism":
        yield from _named(text)
    else:
        yield from _flags(name, _value(text))


def _value(text: str) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return text if isinstance(value, (int, float)) and not isinstance(value, bool) else value  # as it is written


def _named(text: str) -> Iterator[str]:
    """privurn.Urn(alpha=1) as a name and options."""
    from privurn.mechanisms.registry import recipes

    call = ast.parse(text, mode="eval").body
    name = ast.unparse(call.func if isinstance(call, ast.Call) else call).rpartition(".")[2]
    yield "--mechanism"
    yield next((alias for alias, kind in recipes().items() if kind.__name__ == name), name)
    for each in call.keywords if isinstance(call, ast.Call) else ():
        yield from _spoken(str(each.arg), _written(text, each.value))


def _domain(text: str) -> Iterator[str]:
    """A mapping from a column names that column; how its domain is declared is for the help page."""
    named = re.match(r"\{'([^']*)'", text)
    yield f"--column {shlex.quote(named[1])}" if named else "--grid, --bins or --categories"


def _flags(name: str, value: Any) -> list[str]:
    """One option with its value, or one for each of several."""
    flag = RENAMED.get(name, name).replace("_", "-")
    if value is True:
        return [f"--{flag}"]
    if isinstance(value, Mapping):
        return [f"--{flag} {key}={_text(each)}" for key, each in value.items()]
    if isinstance(value, list) and flag in REPEATED:
        return [f"--{flag} {_text(each)}" for each in value]
    return [f"--{flag} {_text(value)}"]


def _text(value: Any) -> str:
    """A value as it is typed."""
    if hasattr(value, "to_json"):  # a model, by its name where its defaults do
        usual = {each.name: each.default for each in fields(value)}
        own = {name: each for name, each in value.to_json().items() if getattr(value, name) != usual.get(name, MISSING)}
        return _quoted(json.dumps({"kind": value.kind} | own)) if own.keys() - {"kind"} else str(value.kind)
    if isinstance(value, tuple):
        return ":".join(map(_text, value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(_text, value))
    return _quoted(str(value))


def _quoted(text: str) -> str:
    """One word for the shell, as a person would quote it."""
    return f'"{text}"' if "'" in text and not set(text) & set('"$`\\!') else shlex.quote(text)
