"""`release` takes whatever can be asked for; `privatise`, `release_statistics` and their commands are short for it."""

import json

import numpy as np
import pytest

import privurn
from privurn.errors import DomainError, ModelError
from privurn.mechanisms.registry import channel_recipes, statistics
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.regression_statistic import RegressionStatistic

LIMITS = privurn.Bounds(0, 8)
KINDS = [(name, float) for name in ("x", "y", "z", "u", "v")]
TABLE = np.array([(k % 9, k % 4, k % 2, 0.25, 0.75) for k in range(60)], dtype=KINDS)
SUMS = {
    "regression": ({"response": "x", "covariates": ["y"]}, {"x": LIMITS, "y": LIMITS}),
    "normal": ({"response": "x"}, {"x": LIMITS}),
    "logistic": ({"response": "z", "covariates": ["x"]}, {"x": LIMITS}),
    "dirichlet": ({}, {"u": privurn.Bounds(0.01, 1), "v": privurn.Bounds(0.01, 1)}),
    "bernoulli": ({"column": "z"}, {"z": privurn.Bounds(0, 1)}),
    "poisson": ({"column": "x"}, {"x": LIMITS}),
}


@pytest.mark.parametrize("alias", sorted(set(channel_recipes()) - {"randomised-response"}))
def test_channels_go_through_it(alias, tmp_path):
    delta = 1e-3 if "gaussian" in alias else 0.0
    asked = {"domain": {"x": LIMITS}, "epsilon": 3, "delta": delta, "contributions": 2}
    channel = channel_recipes()[alias](**({"levels": 1} if alias == "haar-wavelet" else {}))
    made = privurn.release(TABLE[["x"]], channel, **asked).save(tmp_path / "out")
    short = privurn.privatise(TABLE[["x"]], channel, **asked)
    for part in ("mechanism", "target", "privacy_unit", "domain"):
        assert made.certificate[part] == short.certificate[part]
    assert privurn.verify(tmp_path / "out").reasons == ()


def test_categories_go_through_it():
    listed = {"y": privurn.Categories([0, 1, 2, 3])}
    made = privurn.release(TABLE[["y"]], privurn.RandomisedResponse(), domain=listed, epsilon=1)
    assert made.certificate["mechanism"]["name"] == "local-randomised-response"


@pytest.mark.parametrize("model", sorted(each.model for each in statistics().values()))
@pytest.mark.parametrize("neighbouring", ["replace-one", "add-remove"])
def test_sums_go_through_it(model, neighbouring, tmp_path):
    options, domain = SUMS[model]
    made = privurn.release(TABLE, privurn.Sums(model, **options), domain=domain, epsilon=1, neighbouring=neighbouring)
    made.save(tmp_path / "sums")
    assert made.certificate["mechanism"]["name"] == f"noisy-{model}-statistics"
    assert (made.certificate["target"], made.certificate["neighbouring"]) == ({"epsilon": 1.0, "delta": 0.0}, neighbouring)
    assert privurn.verify(tmp_path / "sums").reasons == ()


@pytest.mark.parametrize("epsilon", [1.0, 0.7, 3.3])
@pytest.mark.parametrize("epsilon_n", [0.1, 0.3])
def test_epsilon_is_that_of_sums_and_n_together(epsilon, epsilon_n):
    asked = privurn.Sums("regression", response="x", covariates=["y"], epsilon_n=epsilon_n)
    made = privurn.release(TABLE, asked, domain={"x": LIMITS, "y": LIMITS}, epsilon=epsilon, neighbouring="add-remove")
    assert made.certificate["target"]["epsilon"] == epsilon
    budget = Budget(epsilon=epsilon - epsilon_n, neighbouring="add-remove")
    sums = RegressionStatistic.calibrated(response="x", covariates=["y"], bounds=(0, 8), budget=budget)
    stated = made.certificate["mechanism"]["parameters"]
    assert stated["noise"]["scale"] == pytest.approx(sums.noise.scale, rel=1e-6)
    assert stated["size_noise"]["scale"] == pytest.approx(1.0 / epsilon_n, rel=1e-6)


def test_the_ledger_pays_once_and_before(tmp_path):
    ledger = privurn.Ledger.create(tmp_path / "a.ledger", epsilon=2)
    privurn.release(TABLE, privurn.Sums("normal", response="x"), domain={"x": LIMITS}, epsilon=1, ledger=ledger)
    privurn.release(TABLE[["x"]], privurn.Laplace(), domain={"x": LIMITS}, epsilon=1, ledger=ledger)
    assert [float(entry.epsilon) for entry in ledger.entries()] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("asked", "domain", "error", "words"),
    [
        (privurn.Sums("nonsense"), {"x": LIMITS}, ModelError, "no sums for a model 'nonsense'"),
        (privurn.Sums("normal"), {"x": LIMITS}, ModelError, "needs response"),
        (privurn.Sums("normal", response="x", column="y"), {"x": LIMITS}, ModelError, "has no column"),
        (privurn.Sums("normal", response="x"), {"x": privurn.Grid(0, 8, 1)}, DomainError, "need public bounds"),
        (privurn.Sums("normal", response="x"), {"y": LIMITS}, DomainError, "no public bounds for 'x'"),
        (privurn.Sums("normal", response="x"), {"x": privurn.Bounds(0, 8, nulls="lower")}, DomainError, "counts as a bound"),
        (privurn.Sums("poisson", column="y"), {"x": LIMITS}, DomainError, "not that of the column"),
        (privurn.Sums("poisson", column="x"), {"x": privurn.Bounds(1, 8)}, DomainError, "counts begin at 0"),
        (privurn.Sums("dirichlet"), {"u": LIMITS, "v": LIMITS}, DomainError, "parts of a whole"),
        (privurn.Sums("normal", response="x", epsilon_n=1.0), {"x": LIMITS}, ModelError, "leaves the sums nothing"),
        (privurn.Laplace(), {"x": privurn.Grid(0, 8, 1)}, DomainError, "the domain of a column is missing"),
    ],
)
def test_what_does_not_fit_is_refused_before_payment(asked, domain, error, words, tmp_path):
    ledger = privurn.Ledger.create(tmp_path / "a.ledger", epsilon=2)
    with pytest.raises(error, match=words):
        privurn.release(TABLE, asked, domain=domain, epsilon=1, ledger=ledger)
    assert ledger.entries() == []


def test_the_number_of_privatised_records_is_no_secret():
    with pytest.raises(DomainError, match="no secret"):
        privurn.release(TABLE[["x"]], privurn.Laplace(), domain={"x": LIMITS}, epsilon=1, neighbouring="add-remove")


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("x,y\n" + "".join(f"{k % 9},{k % 4}\n" for k in range(60)))
    return ["people.csv", "--epsilon", 1, "--no-ledger", "--json"]


@pytest.mark.parametrize("word", [["--mechanism", "laplace"], ["--mechanism=laplace"]])
def test_the_command_takes_channels(people, word, privurn_command):
    options = ["--column", "x", "--bounds", "0:8"]
    done = privurn_command("release", *people, *word, *options, "-o", "long")
    short = privurn_command("privatise", *people, "--channel", "laplace", *options, "-o", "short")
    assert (done.returncode, short.returncode) == (0, 0), done.stderr
    found = [json.loads(each.stdout)["certificate"]["mechanism"] for each in (done, short)]
    assert found[0] == found[1]


def test_the_command_takes_models_of_sums(people, privurn_command):
    options = ["--y", "x", "--bounds", "0:8"]
    done = privurn_command("release", *people, "--mechanism", "normal", *options, "-o", "long")
    short = privurn_command("statistics", *people, "--model", "normal", *options, "-o", "short")
    assert (done.returncode, short.returncode) == (0, 0), done.stderr
    found = [json.loads(each.stdout)["certificate"]["mechanism"] for each in (done, short)]
    assert found[0] == found[1]


@pytest.mark.parametrize("delta", ["0", "1e-4"])
def test_one_noisy_table_has_one_law_through_every_door(people, privurn_command, delta):
    asked = [*people, "--delta", delta, "--categories"]
    counts = ["y=0,1,2,3", "--column", "y", "--mechanism", "perturbed-histogram", "--publish", "counts"]
    doors = (
        privurn_command("statistics", *asked, "y=0,1,2,3", "--model", "table", "-o", "short"),
        privurn_command("release", *asked, "y=0,1,2,3", "--mechanism", "table", "-o", "table"),
        privurn_command("release", *asked, *counts, "-o", "counts"),
    )
    assert [each.returncode for each in doors] == [0, 0, 0], [each.stderr for each in doors]
    first, *others = [json.loads(each.stdout)["certificate"]["mechanism"] for each in doors]
    assert others == [first, first]


def test_the_command_names_all_of_them_where_one_is_not_known(people, privurn_command):
    done = privurn_command("release", *people, "--mechanism", "nonsense", "--column", "x", "--grid", "0:8:1", "-o", "out")
    assert done.returncode == 2
    for name in ("noisy-tree", "laplace", "regression"):
        assert name in done.stderr
