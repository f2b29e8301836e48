"""The fields of a frozen dataclass as plain data, which certificates state, and back."""

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from privurn.domain import JointDomain, domain_from_json
from privurn.exact_numbers import rational

T = TypeVar("T")


def stated(made: Any) -> dict[str, Any]:
    """Every field, in order: numbers and text as they are, fractions as text, the rest as it states itself."""
    return {each.name: _plain(getattr(made, each.name)) for each in fields(made)}


def rebuilt(kind: type[T], data: Mapping[str, Any]) -> T:
    """Inverse of `stated`; what is wrong in it ends in an error of any kind, or in an object that states something else."""
    kinds = get_type_hints(kind)
    return kind(**{each.name: _read(kinds[each.name], data[each.name]) for each in fields(kind)})  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    tell = getattr(value, "to_json", None) or getattr(value, "parameters", None)
    return value if tell is None else tell()


def _read(kind: Any, data: Any) -> Any:
    """A value of that type from plain data; what has been read already is left as it is."""
    if kind in (int, float, str, bool):
        return kind(data)
    if kind is Fraction:
        return rational(data)
    if kind is JointDomain:
        return domain_from_json(data)
    if get_origin(kind) in (Union, UnionType):
        first, *others = [each for each in get_args(kind) if each is not NoneType]
        read_already = data is None or (others and isinstance(data, (first, *others)))
        return data if read_already else _read(first, data)
    if get_origin(kind) is tuple:
        return tuple(_read(get_args(kind)[0], each) for each in data)
    return data if get_origin(kind) is Literal or isinstance(data, kind) else kind.from_json(data)
