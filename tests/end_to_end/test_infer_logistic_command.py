"""`privurn statistics --model logistic` and `privurn infer` as a person runs them, from a table to conclusions.

Statistics are made with seeded noise, so that numbers are the same in every run. The noise that people get is OpenDP's, which
has no seed: nothing is said about its numbers.
"""

import csv
import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from privurn.certificates.verify import verify
from privurn.cli.main import app
from privurn.errors import PrivurnError
from privurn.inference.infer import infer
from privurn.inference.run import NotMixed, Run
from privurn.inference.sums.reading import released_sums
from privurn.inference.sums.report import plug_in

MODEL = ["--model", "logistic", "--y", "ill", "--x", "age", "--x", "dose"]
BOUNDS = ["--bounds", "age=0:100", "--bounds", "dose=-4:4"]
SPENT = ["--epsilon", 2.5, "--epsilon-n", 0.5, "--neighbouring", "add-remove"]
QUICK = ["--draws", 300, "--chains", 2, "--warm-up", 300, "--seed", 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """800 people: older ones are ill more often, and the dose helps."""
    path = tmp_path_factory.mktemp("logistic")
    rng = np.random.default_rng(3)
    age, dose = rng.normal(50, 15, 800), rng.normal(0, 1.2, 800)
    ill = rng.random(800) < 1 / (1 + np.exp(3.0 - 0.08 * age + dose))
    rows = np.column_stack([age, dose, ill])
    np.savetxt(path / "people.csv", rows, delimiter=",", header="age,dose,ill", comments="", fmt=["%.1f", "%.3f", "%d"])
    for name, more in (("stats", SPENT), ("public", ["--epsilon", 2, "--neighbouring", "replace-one"])):
        done = call(path, "statistics", "people.csv", *MODEL, *BOUNDS, *more, "--seed", 5, "--no-ledger", "-o", f"{name}")
        assert done.exit_code == 0, done.output
    return path


def call(folder, *words):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "200")  # no word of a table is broken
        return CliRunner().invoke(app, [str(word) for word in words])


def test_from_a_table_to_a_file_that_verifies(folder):
    done = call(folder, "statistics", "people.csv", *MODEL, *BOUNDS, *SPENT, "--no-ledger", "-o", "private")
    assert done.exit_code == 0, done.output
    assert "Released 8 noisy sums for the model logistic" in done.output
    assert "laplace of scale 3 on each sum" in done.output  # 1 + 2 * 5 / 2 = 6, over epsilon - epsilon_n = 2
    assert verify(folder / "private").valid
    assert call(folder, "verify", "private").exit_code == 0
    squares = ["--squares", "complement", "--noise", "discrete-gaussian", "--delta", 1e-6]
    done = call(folder, "statistics", "people.csv", *MODEL, *BOUNDS, *SPENT, *squares, "--no-ledger", "-o", "gaussian")
    assert done.exit_code == 0, done.output
    assert verify(folder / "gaussian").valid


def test_everything_is_shown_and_written(folder):
    files = ["--plot", "intervals=i.png", "--plot", "n=n.png", "-o", "draws.nc", "--synthetic", "new.csv"]
    done = call(folder, "infer", "stats", *QUICK, "--naive", *files)
    assert done.exit_code == 0, done.output
    for words in ("beta[intercept]", "beta[age]", "beta[dose]", "mu[age]", "ignores noise", "R-hat", "reversible jump"):
        assert words in done.output.replace("\n", " ")
    assert all((folder / name).exists() for name in ("i.png", "n.png", "draws.nc"))
    with (folder / "new.csv").open() as lines:
        rows = list(csv.reader(lines))
    assert rows[0] == ["age", "dose", "ill"]
    assert {row[2] for row in rows[1:]} == {"0", "1"}


def test_json_says_what_python_finds(folder):
    done = call(folder, "infer", "stats", *QUICK, "--json", "--naive")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    rows = {row["name"]: row for row in told["variables"]}
    statistics = released_sums(folder / "stats")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMixed)
        found = infer(statistics, run=Run(chains=2, warm_up=300, draws=300, seed=1))
    for each in found.draws.summary(["beta"]):
        assert rows[each.name]["mean"] == pytest.approx(each.mean, rel=1e-9)
    for each in plug_in(statistics):
        assert rows[each.name]["naive"]["mean"] == pytest.approx(each.mean, rel=1e-9)
    assert told["model"] == "logistic"


@pytest.mark.long
@pytest.mark.parametrize("name", ["stats", "public"])
def test_the_truth_is_found(folder, name):
    """Seeded noise: slopes have the signs they were simulated with, and the truth is not far out."""
    done = call(folder, "infer", f"{name}", "--seed", 2, "--level", 0.999, "--json")
    told = json.loads(done.stdout)
    rows = {row["name"]: row for row in told["variables"]}
    assert told["mixed"], told["problems"]
    assert rows["beta[age]"]["mean"] > 0 > rows["beta[dose]"]["mean"]
    for variable, truth in {"beta[intercept]": -3.0, "beta[age]": 0.08, "beta[dose]": -1.0}.items():
        assert rows[variable]["lower"] < truth < rows[variable]["upper"]
    assert ("n" in rows) == (name == "stats")


def test_priors_by_name(folder):
    words = ["--prior", "unit", "--prior", "coefficient_variance=0.01", "--prior", "covariate-mean=50", "--prior-n", "700:900"]
    done = call(folder, "infer", "stats", *QUICK, *words, "--json")
    assert done.exit_code == 0, done.output
    rows = {row["name"]: row for row in json.loads(done.stdout)["variables"]}
    assert abs(rows["beta[dose]"]["mean"]) < 0.5  # held near 0 by the prior
    assert 700 <= rows["n"]["lower"] <= rows["n"]["upper"] <= 900


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["infer", "stats", "--prior", "precision_rate=1"], "coefficient_variance"),
        (["infer", "stats", "--prior", "coefficient_variance=-1"], "coefficient"),
        (["infer", "public", "--prior-n", "1:9"], "is public"),
        (["infer", "stats", "--model", "regression"], "--model logistic"),
        (["statistics", "people.csv", *MODEL[:4], *BOUNDS, *SPENT, "-o", "x"], "needs --x"),
        (["statistics", "people.csv", *MODEL, *SPENT, "-o", "x"], "--bounds"),
        (
            ["statistics", "people.csv", *MODEL, *BOUNDS, "--bounds", "ill=0:1", *SPENT, "-o", "x"],
            "'ill', which is not used",
        ),
        (["statistics", "people.csv", *MODEL, *BOUNDS, *SPENT, "--noise", "discrete-laplace", "-o", "x"], "laplace"),
    ],
)
def test_what_cannot_be_done(folder, words, told):
    done = call(folder, *words, *(["--no-ledger"] if words[0] == "statistics" else []))
    assert done.exit_code != 0
    error = done.exception
    shown = f"{error.message} {error.hint}" if isinstance(error, PrivurnError) else done.output
    assert told in shown
    assert not (folder / "x").exists()


def test_help_has_examples(folder):
    assert "logistic: coefficient_variance" in " ".join(call(folder, "infer", "--help").output.split())
    assert "--model logistic" in call(folder, "statistics", "--help").output
