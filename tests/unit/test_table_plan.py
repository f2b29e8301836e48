"""What is planned and chosen for tables of several columns, from public quantities alone."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import privurn
from privurn.cli.main import app
from privurn.domain import Bins, Categories, Grid, TableDomain, several_columns
from privurn.domain.coarser import coarser, typed
from privurn.errors import ModelError, PrivurnError
from privurn.mechanisms.choice import choose
from privurn.mechanisms.marginals_recipe import Marginals
from privurn.mechanisms.recipe import Public
from privurn.mechanisms.registry import default_recipe
from privurn.privacy.profile import Guarantee
from privurn.releases.plan import options, remarks
from privurn.releases.usual import TINY, LeastError, usual

GUARANTEE = Guarantee(epsilon=1.0, delta=1e-6)
SEX = Categories(["f", "m"])


@pytest.mark.parametrize(
    ("domain", "most", "words", "values"),
    [
        (Grid(0, 200_000, 500), 30, "0:200000:10000", 21),
        (Grid(0, 99, 1), 20, "0:100:10", 11),  # nothing round divides 99: the range grows by a little
        (Grid("0", "1", "0.01"), 6, "0:1:0.2", 6),
        (Grid(0, 10, 5), 2, "0:10:10", 2),
        (Grid(0, 100, 1), 1, "0:100:100", 2),
        (Bins(range(0, 101, 5)), 7, "0,15,30,45,60,75,90,100", 7),
    ],
)
def test_a_coarser_domain_covers_the_same_range_in_round_steps(domain, most, words, values):
    found = coarser(domain, most)
    assert typed(found) == words
    assert found.n_values == values <= max(2, most)
    assert coarser(SEX, 5) is None


def test_the_choice_follows_the_domain_alone():
    """Jointly where cells are few, or a column is too fine for marginals; of one or two columns of numbers a tree as well."""
    town = Categories([f"t{i}" for i in range(20)])
    for columns, of in [
        ({"sex": SEX, "paid": SEX}, None),
        ({"town": town, "sex": SEX, "paid": SEX, "ill": SEX}, "table"),  # 20 x 2 x 2 x 2 cells
        ({"age": Grid(0, 99, 1), "sex": SEX}, "table"),
        ({"age": Grid(0, 99, 1), "pay": Grid(0, 99, 1)}, None),
        ({"pay": Grid(0, 99, 1)}, None),
        ({"pay": Grid(0, 200_000, 100), "sex": SEX}, "table"),  # through a tree
        ({"pay": Grid(0, 200_000, 1), "sex": SEX}, None),
        ({"town": town}, None),
        ({f"c{i}": Grid(0, 9, 1) for i in range(12)}, "table"),
    ]:
        assert usual(several_columns(columns)) is (LeastError if of is None else default_recipe(of)), columns
    assert isinstance(several_columns({f"c{i}": Grid(0, 9, 1) for i in range(12)}), TableDomain)
    assert default_recipe("order") is LeastError.candidates(several_columns({"pay": Grid(0, 99, 1)}))[0]
    assert default_recipe("order") not in LeastError.candidates(several_columns({"town": town}))
    assert TINY >= 2**5


def test_a_release_of_several_columns_measures_marginals_unless_their_cells_are_few():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"age": rng.integers(0, 60, 400), "sex": rng.choice(["f", "m"], 400), "ill": rng.integers(0, 2, 400)})
    domain = {"age": Grid(0, 60, 5), "sex": SEX, "ill": Grid(0, 1, 1)}
    out = privurn.release(data, domain=domain, epsilon=2, delta=1e-6, ledger=False)
    assert out.certificate["mechanism"]["name"] == "perturbed-histogram"  # 13 x 2 x 2 cells
    finer = privurn.release(data, domain={**domain, "age": Grid(0, 60, 1)}, epsilon=2, delta=1e-6, ledger=False)
    assert finer.certificate["mechanism"]["name"] == "noisy-marginals"
    assert list(finer.data.columns) == ["age", "sex", "ill"]
    assert finer.data["age"].dtype == finer.data["ill"].dtype == np.int64
    secret = privurn.release(
        data, domain={**domain, "age": Grid(0, 60, 1)}, epsilon=2, delta=1e-6, neighbouring="add-remove", ledger=False
    )
    assert secret.certificate["n"] is None


def test_expected_errors_are_those_of_the_noise():
    made, _ = choose(
        Marginals(order=2),
        Public(n=5_000, cells=10, guarantee=GUARANTEE, table=TableDomain({"a": Grid(0, 4, 1), "b": Grid(0, 4, 1)})),
    )
    found = made.expected_errors(5_000)
    assert list(found) == [(0, 1)]
    rng = np.random.default_rng(0)
    noise = rng.normal(0.0, made.deviations[made.sets.index((0, 1))], (4_000, 25))
    assert found[0, 1] == pytest.approx(0.5 * np.abs(noise).sum(axis=1).mean() / 5_000, rel=0.02)
    assert made.expected_errors(1)[0, 1] == 1.0


def test_a_plan_says_which_columns_are_too_fine_and_what_coarser_ones_buy():
    domain = TableDomain({"age": Grid(0, 30, 1), "pay": Grid(0, 300, 1), "sex": SEX})
    first, second = remarks(n=20_000, cells=domain.size, guarantee=GUARANTEE, domain=domain)
    assert "two columns" in first or "2 columns" in first
    assert "'age' and 'pay'" in first
    assert "'pay' (32 ranges), 'age' (31 cells)" in second
    assert "'pay' as 0:300:" in second
    before, after = (float(word.rstrip(".")) for word in (second.split()[-1], second.split()[-5]))
    assert after < 0.5 * before
    assert len(remarks(n=10_000_000, cells=domain.size, guarantee=GUARANTEE, domain=domain)) == 1
    listed = options(n=20_000, cells=domain.size, guarantee=GUARANTEE, domain=domain)
    assert [each.mechanism for each in listed] == ["noisy-marginals"]
    assert "total variation" in listed[0].remark
    several = options(n=20_000, cells=None, guarantee=GUARANTEE)
    assert "noisy-marginals" not in [each.mechanism for each in several]


def test_columns_that_are_too_fine_are_told_what_to_become():
    public = Public(
        n=1_000,
        cells=1,
        guarantee=GUARANTEE,
        table=TableDomain({"pay": Grid(0, 200_000, 1), "town": Categories([str(i) for i in range(500)]), "sex": SEX}),
    )
    with pytest.raises(ModelError) as refused:
        choose(Marginals(), public)
    assert "'pay', 'town' have more than 400 cells" in refused.value.message
    assert "'pay' as 0:200000:10000" in refused.value.hint
    assert "rare categories of 'town'" in refused.value.hint


def test_the_command_plans_for_columns_side_by_side(tmp_path):
    file = tmp_path / "columns.json"
    file.write_text(json.dumps({f"c{i}": {"kind": "grid", "low": 0, "high": 19, "step": 1} for i in range(8)}))
    done = CliRunner().invoke(
        app, ["plan", "--n", "5000", "--domain", str(file), "--epsilon", "1", "--delta", "1e-6", "--json"]
    )
    assert done.exit_code == 0, done.exception
    found = json.loads(done.stdout)
    assert found["cells"] == 160
    assert [each["mechanism"] for each in found["options"]] == ["noisy-marginals"]
    assert any("too fine" in each.lower() for each in found["remarks"])
    refused = CliRunner().invoke(
        app,
        ["plan", "--n", "5000", "--domain", str(file), "--epsilon", "1", "--delta", "1e-6", "--plot", str(tmp_path / "p.png")],
    )
    assert isinstance(refused.exception, PrivurnError)
    few = ["plan", "--n", "5000", "--categories", "sex=f,m", "--categories", "ill=no,yes", "--epsilon", "1", "--delta", "1e-6"]
    shown = json.loads(CliRunner().invoke(app, [*few, "--json"]).stdout)
    named = [each["mechanism"] for each in shown["options"]]
    assert named[0] == "perturbed-histogram"
    assert "noisy-marginals" in named
    assert shown["cells"] == 4
