import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privurn.domain import Bins, Categories, Grid, JointDomain, OpenLabels, domain_from_file, domain_from_json
from privurn.errors import DomainError, FormatError


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Grid(10, 0, 1), "reversed"),
        (lambda: Grid(0, 0, 1), "reversed"),
        (lambda: Grid(0, 10, 3), "does not divide"),
        (lambda: Grid(0, 10, 0), "positive"),
        (lambda: Grid(0, 10, -1), "positive"),
        (lambda: Grid(0, math.inf, 1), "finite"),
        (lambda: Grid("a", 1, 1), "finite"),
        (lambda: Grid(0, 10**12, 1), "cells"),
        (lambda: Grid(0, 1, 1, outside="drop"), "outside"),
        (lambda: Grid(0, 1, 1, nulls="drop"), "nulls"),
        (lambda: Bins([1]), "two edges"),
        (lambda: Bins("059"), "not one text"),
        (lambda: Bins([0, 1, 1]), "increasing"),
        (lambda: Categories([]), "at least one"),
        (lambda: Categories(["a", "b", "a"]), "twice"),
        (lambda: Categories([1, "1"]), "twice"),
        (lambda: Categories(["a", None]), "null"),
        (lambda: Categories(["a"], outside="clamp"), "clamped"),
        (lambda: JointDomain({"a": Grid(0, 10**6, 1), "b": Grid(0, 10**6, 1)}), "1,000,001 x 1,000,001"),
        (lambda: JointDomain({"a": OpenLabels()}), "jointly"),
        (lambda: JointDomain({}), "at least one"),
    ],
)
def test_impossible_domains_are_refused(build, words):
    with pytest.raises(DomainError, match=words):
        build()


def test_the_hint_for_a_step_that_does_not_divide_can_be_typed():
    for ends, size in (((0, 10, 3), 4), ((0, 1, "3/7"), 3), (("0.1", 1, "0.5"), 2)):
        with pytest.raises(DomainError) as caught:
            Grid(*ends)
        assert eval(caught.value.hint.removeprefix("Try ")).size == size


def test_decimal_steps_are_exact():
    assert Grid(0, 1, 0.1).size == 11
    assert Grid("0", "0.3", "0.1").size == 4


@pytest.mark.parametrize(
    ("outside", "nulls", "extra", "unreadable"),
    [
        ("clamp", "error", 0, None),
        ("clamp", "cell", 1, 3),
        ("other", "error", 1, 3),
        ("other", "cell", 2, 3),
        ("null", "error", 1, 3),
        ("error", "error", 0, None),
        ("error", "cell", 1, None),
    ],
)
def test_policy_cells(outside, nulls, extra, unreadable):
    domain = Grid(0, 2, 1, outside=outside, nulls=nulls)
    assert domain.size == 3 + extra
    assert domain.unreadable_cell == unreadable


domains = st.one_of(
    st.builds(
        lambda low, steps, step, outside, nulls: Grid(low, low + steps * step, step, outside=outside, nulls=nulls),
        st.integers(-100, 100),
        st.integers(1, 50),
        st.integers(1, 9),
        st.sampled_from(["clamp", "other", "null", "error"]),
        st.sampled_from(["cell", "error"]),
    ),
    st.builds(Bins, st.lists(st.integers(-1000, 1000), min_size=2, max_size=6, unique=True).map(sorted)),
    st.builds(Categories, st.lists(st.text().filter(str.strip), min_size=1, max_size=6, unique_by=str.strip)),
    st.builds(lambda labels: Categories(labels, ignore_case=True), st.lists(st.sampled_from("aBcD"), min_size=1, unique=True)),
    st.just(OpenLabels()),
)


@given(domains)
def test_json_round_trip(domain):
    again = domain_from_json(json.loads(json.dumps(domain.to_json())))
    assert again == domain
    assert again.to_json() == domain.to_json()


@pytest.mark.parametrize("name", ["d.json", "d.yaml"])
def test_domain_files(tmp_path, name):
    text = {
        "d.json": '{"age": {"kind": "grid", "low": 0, "high": 99, "step": 1}, '
        '"sex": {"kind": "categories", "values": ["f", "m"]}}',
        "d.yaml": "age: {kind: grid, low: 0, high: 99, step: 1}\nsex: {kind: categories, values: [f, m]}\n",
    }[name]
    (tmp_path / name).write_text(text)
    domain = domain_from_file(tmp_path / name)
    assert isinstance(domain, JointDomain)
    assert domain.size == 100 * 2
    assert "200 cells" in domain.describe()


NOT_DOMAINS = [
    "[1, 2]",
    "kind: nonsense",
    "kind: grid\nlow: 0",
    "kind: joint",
    "{",
    "kind: grid\nlow: 0\nhigh: 1\nstep: 1\nx: 2",
]


@pytest.mark.parametrize("text", NOT_DOMAINS)
def test_domain_files_that_are_not_domains(tmp_path, text):
    (tmp_path / "d.yaml").write_text(text)
    with pytest.raises((FormatError, DomainError)):
        domain_from_file(tmp_path / "d.yaml")


def test_missing_domain_file(tmp_path):
    with pytest.raises(FormatError, match="there is no domain file"):
        domain_from_file(tmp_path / "none.yaml")
    with pytest.raises(FormatError, match="cannot read"):
        domain_from_file(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [("d.yaml", "kind: grid\n low: 0\nhigh: 1\n", 2), ("d.json", '{"kind": "grid",\n"low": 0,\n"high" 1}', 3)],
)
def test_a_slip_in_a_domain_file_is_found(name, text, line, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=f"a slip in line {line}") as refused:
        domain_from_file(tmp_path / name)
    assert refused.value.hint.startswith("Lines such as")


def test_what_a_domain_lacks_is_named(tmp_path):
    (tmp_path / "d.yaml").write_text("kind: grid\nlow: 0\n")
    with pytest.raises(FormatError, match="needs high, step") as refused:
        domain_from_file(tmp_path / "d.yaml")
    assert refused.value.hint == "Add high: ..., step: ..."


def test_yes_and_no_are_words_in_a_domain_file(tmp_path):
    (tmp_path / "d.yaml").write_text("kind: categories\nvalues: [yes, No, on, OFF, y]\nignore_case: true\n")
    domain = domain_from_file(tmp_path / "d.yaml")
    assert domain == Categories(["yes", "No", "on", "OFF", "y"], ignore_case=True)
    (tmp_path / "d.yaml").write_text("kind: categories\nvalues: [true, false]\n")
    assert domain_from_file(tmp_path / "d.yaml") == Categories([True, False])
