"""The fields of a dataclass as plain data and back: the same object, or no object that states the same."""

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import pytest

from privurn.domain import Grid, JointDomain
from privurn.mechanisms.plain_data import rebuilt, stated
from privurn.mechanisms.sums.noise_law import NoiseLaw

NOISE = NoiseLaw(kind="laplace", scale=3.0, step=1.0)


@dataclass(frozen=True, kw_only=True)
class Fields:
    n: int | None
    weight: Fraction
    pairs: tuple[tuple[int, ...], ...]
    scales: tuple[float, ...] | None
    kind: Literal["a", "b"]
    noise: NoiseLaw
    domain: JointDomain


MADE = Fields(
    n=None,
    weight=Fraction(1, 3),
    pairs=((0, 1), (2,)),
    scales=(0.5,),
    kind="b",
    noise=NOISE,
    domain=JointDomain({"x": Grid(0, 2, 1)}),
)


def test_plain_data_give_the_same_object_back():
    plain = json.loads(json.dumps(stated(MADE)))
    assert plain["weight"] == "1/3"
    assert plain["pairs"] == [[0, 1], [2]]
    assert plain["noise"] == NOISE.to_json()
    again = rebuilt(Fields, plain)
    assert (again.n, again.weight, again.pairs, again.scales, again.kind) == (None, Fraction(1, 3), ((0, 1), (2,)), (0.5,), "b")
    assert again.noise == NOISE
    assert stated(again) == plain


@pytest.mark.parametrize(
    "edit",
    [
        {"n": True},
        {"n": "7"},
        {"n": 2.5},
        {"weight": 1},
        {"weight": "2/6"},
        {"pairs": ["01"]},
        {"scales": "5"},
        {"scales": [1]},
    ],
)
def test_other_types_are_refused_or_state_something_else(edit):
    """Which is what a certificate is refused for."""
    plain = {**stated(MADE), **edit}
    try:
        again = stated(rebuilt(Fields, plain))
    except (TypeError, ValueError):
        return
    assert json.dumps(again) != json.dumps(plain)
