"""Where no mechanism is named, the row of the plan with the least expected error is what a release makes."""

import json

import numpy as np
import pytest

import privurn
from privurn.domain import Categories, Grid, JointDomain
from privurn.mechanisms.dirichlet_multinomial import Urn
from privurn.mechanisms.noisy_tree_recipe import NoisyTree
from privurn.mechanisms.recipe import Option, Public
from privurn.privacy.profile import Guarantee
from privurn.releases.forecast import Forecasts
from privurn.releases.plan import options
from privurn.releases.usual import PLENTY, LeastError

RELATIONS = ("replace-one", "add-remove")


def grid(cells: int, **more: str) -> JointDomain:
    return JointDomain({"x": Grid(0, cells - 1, 1, **more)})


TWO = JointDomain({"x": Grid(0, 2, 1), "y": Grid(0, 2, 1)})


def planned(size: int, guarantee: Guarantee, domain: JointDomain) -> list[Option]:
    known = {"n": size} if guarantee.neighbouring == "replace-one" else {"records": size}
    return options(**known, cells=domain.size, guarantee=guarantee, domain=domain)


def chosen(size: int, guarantee: Guarantee, domain: JointDomain) -> object:
    """What a release takes, asked as it asks."""
    secret = guarantee.neighbouring == "add-remove"
    public = Public(n=None if secret else size, cells=domain.size, guarantee=guarantee, domain=domain)
    return LeastError(records=size if secret else None).settled(public)


def assert_least(size: int, guarantee: Guarantee, domain: JointDomain) -> Option:
    """Exactly: seeds are fixed. Of rows that a release can make records of, and that can be simulated."""
    first, *rest = planned(size, guarantee, domain)
    assert first.remark.startswith("the default: ")
    able = [each.expected.distance for each in (first, *rest) if each.asked is not None and each.expected is not None]
    assert len(able) >= 2
    assert first.expected.distance == min(able)
    assert chosen(size, guarantee, domain) == first.asked
    return first


@pytest.mark.usefixtures("few_simulated_tables")
@pytest.mark.parametrize("neighbouring", RELATIONS)
@pytest.mark.parametrize(
    ("size", "epsilon", "delta", "domain"),
    [
        (2, 1.0, 0.0, grid(2)),
        (5, 4.0, 1e-6, grid(32)),
        (30, 0.01, 0.0, grid(2)),
        (100, 0.01, 0.0, grid(8)),
        (100, 0.01, 0.0, grid(1000)),
        (300, 0.1, 1e-6, TWO),
        (1000, 0.02, 0.0, grid(3, nulls="cell", outside="other")),
        (2000, 1.0, 1e-3, grid(40)),
        (100_000, 4.0, 0.0, grid(16)),
        (200, 0.1, 1e-6, JointDomain({"x": Categories([str(i) for i in range(200)])})),
        (20_000, 1.0, 0.0, JointDomain({"x": Categories(["a", "b", "c"])})),
    ],
)
def test_the_default_is_the_least_of_the_plan(neighbouring, size, epsilon, delta, domain):
    assert_least(size, Guarantee(epsilon=epsilon, delta=delta, neighbouring=neighbouring), domain)


@pytest.mark.parametrize(
    ("size", "epsilon", "cells", "neighbouring", "least"),
    [
        (2, 4.0, 32, "replace-one", "dirichlet-multinomial"),
        (100, 0.01, 8, "add-remove", "dirichlet-multinomial"),
        (20, 4.0, 2, "replace-one", "noisy-tree"),
        (20, 1.0, 3, "add-remove", "noisy-tree"),
    ],
)
def test_an_urn_is_made_where_it_is_the_least_of_ordered_cells(size, epsilon, cells, neighbouring, least):
    """Beyond the simulation's error: the figures are in docs/explanation/expected-errors.md."""
    guarantee = Guarantee(epsilon=epsilon, delta=0.0, neighbouring=neighbouring)
    assert assert_least(size, guarantee, grid(cells)).mechanism == least


def test_a_release_of_many_records_forecasts_nothing(monkeypatch):
    """Nor does one whose cells are in no order and too many."""
    monkeypatch.setattr(Forecasts, "__init__", lambda *_: pytest.fail("asked"))
    guarantee = Guarantee(epsilon=0.5, delta=1e-6)
    size = int(PLENTY / 0.5)
    assert chosen(size, guarantee, grid(4096)) == NoisyTree()
    assert chosen(size, Guarantee(epsilon=1.0, delta=0.0, contributions=2, neighbouring="add-remove"), grid(9)) == NoisyTree(
        records=size
    )
    assert isinstance(chosen(10, guarantee, JointDomain({"x": Categories([str(i) for i in range(131_073)])})), Urn)
    with pytest.raises(pytest.fail.Exception):  # of one person's several records epsilon is shared
        chosen(size, Guarantee(epsilon=0.5, delta=0.0, contributions=2), grid(9))


@pytest.mark.usefixtures("few_simulated_tables")
@pytest.mark.parametrize("neighbouring", RELATIONS)
@pytest.mark.parametrize("domain", [Grid(0, 7, 1), Categories([str(i) for i in range(8)])])
def test_a_release_makes_what_the_plan_says(privurn_command, tmp_path, neighbouring, domain):
    """From Python and from the command line, also where the tree is not the least."""
    size, epsilon, secret = 100, 0.01, neighbouring == "add-remove"
    first = planned(size, Guarantee(epsilon=epsilon, delta=0.0, neighbouring=neighbouring), JointDomain({"x": domain}))[0]
    data = np.arange(size) % 8
    recipe = LeastError(records=size) if secret else None
    out = privurn.release(data, recipe, domain=domain, epsilon=epsilon, neighbouring=neighbouring)
    assert out.certificate["mechanism"] == {"name": first.made.name, "parameters": first.made.parameters()}
    assert len(out.data) == first.records
    (tmp_path / "x.csv").write_text("x\n" + "\n".join(map(str, data)) + "\n")
    words = ["release", "x.csv", "--epsilon", epsilon, "--neighbouring", neighbouring, "--no-ledger", "-o", "out"]
    words += ["--grid", "x=0:7:1"] if domain.kind == "grid" else ["--categories", "x=0,1,2,3,4,5,6,7"]
    done = privurn_command(*words, *(["--records", size] if secret else []), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / "certificate.json").read_text())["mechanism"] == out.certificate["mechanism"]


@pytest.mark.usefixtures("few_simulated_tables")
def test_a_secret_number_of_records_is_never_looked_at():
    """Under add-remove neighbours the number of records asked for stands for it."""
    guarantee = Guarantee(epsilon=0.05, delta=1e-6, neighbouring="add-remove")
    for domain, data in [(Categories(["a", "b", "c"]), np.array(["a", "b", "c"])), (Grid(0, 2, 1), np.arange(3))]:
        names = set()
        for n in (50, 5000):
            out = privurn.release(
                data[np.arange(n) % 3],
                LeastError(records=400),
                domain=domain,
                epsilon=0.05,
                delta=1e-6,
                neighbouring="add-remove",
            )
            names.add(json.dumps(out.certificate["mechanism"], sort_keys=True))
        assert len(names) == 1
        public = Public(n=None, cells=3, guarantee=guarantee, domain=JointDomain({"x": domain}))
        assert LeastError(records=400).settled(public).alias in names.pop()


@pytest.mark.long
@pytest.mark.parametrize("neighbouring", RELATIONS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.0), (0.1, 1e-6), (1.0, 0.0), (10.0, 1e-6)])
@pytest.mark.parametrize("cells", [2, 40, 1000])
@pytest.mark.parametrize("n", [5, 500, 100_000])
def test_the_default_is_the_least_from_few_records_to_many(n, cells, epsilon, delta, neighbouring):
    assert_least(n, Guarantee(epsilon=epsilon, delta=delta, neighbouring=neighbouring), grid(cells))


@pytest.mark.long
@pytest.mark.parametrize("neighbouring", RELATIONS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.0), (0.1, 1e-3), (1.0, 0.0), (10.0, 1e-6)])
@pytest.mark.parametrize(
    "domain",
    [
        grid(2),
        grid(2, nulls="cell", outside="other"),
        grid(3),
        grid(10),
        grid(300),
        TWO,
        JointDomain({"x": Grid(0, 1, 1, nulls="cell"), "y": Grid(0, 29, 1, nulls="cell")}),
    ],
)
def test_where_nothing_is_asked_the_tree_is_the_least(domain, epsilon, delta, neighbouring):
    """As near to where something is asked as can be: with more records it is the least by more."""
    guarantee = Guarantee(epsilon=epsilon, delta=delta, neighbouring=neighbouring)
    assert assert_least(int(np.ceil(PLENTY / epsilon)), guarantee, domain).mechanism == "noisy-tree"
