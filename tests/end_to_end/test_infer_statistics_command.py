"""`privurn infer` on files of noisy statistics as a person runs it: tables, JSON, files, pictures, warnings, errors."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from privurn.cli.main import app
from privurn.errors import PrivurnError
from privurn.inference.draws import Summary
from privurn.inference.infer import infer
from privurn.inference.run import NotMixed, Run
from privurn.inference.sums import (
    BernoulliStatistic,
    Budget,
    DirichletStatistic,
    NormalStatistic,
    PoissonStatistic,
    RegressionStatistic,
)
from privurn.inference.sums.reading import released_sums
from privurn.mechanisms.perturbed_histogram import NoisyCounts
from privurn.privacy.entropy import SeededEntropy
from privurn.releases.release import release
from privurn.releases.statistics import release_statistics

QUICK = ["--draws", "300", "--chains", "2", "--warm-up", "300", "--seed", "1"]
SECRET = Budget(epsilon=1.1, epsilon_n=0.1, neighbouring="add-remove")
WHOLE = Budget(epsilon=1.1, epsilon_n=0.1, noise="discrete-laplace", neighbouring="add-remove")
PUBLIC = Budget(epsilon=1, neighbouring="replace-one")
COMMAND = "from privurn.cli.main import run; run()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One file of each model, from 600 records (300 compositions), with seeded noise: the same numbers in every run.

    The noise of "private" is what people get, OpenDP's, which cannot be seeded: nothing is said about its numbers.
    """
    from privurn import Categories

    path = tmp_path_factory.mktemp("statistics")
    rng = np.random.default_rng(3)
    x = np.array([-1.0, 1.0]) + rng.normal(size=(600, 2))
    y = x @ np.array([-1.0, 1.0]) + rng.normal(size=600)
    smoker = rng.random(600) < 0.3
    ill = rng.random(600) < 0.1 + 0.2 * smoker
    both = {"column_0": Categories([0, 1], outside="other"), "column_1": Categories([0, 1], outside="other")}
    columns = {"response": "column_1", "covariates": ["column_0"], "bounds": (-5, 5)}
    one = {"column": "column_0"}
    made = {
        "regression": (np.column_stack([x[:, 0], y]), RegressionStatistic.calibrated(**columns, budget=SECRET), SECRET),
        "public": (np.column_stack([x[:, 0], y]), RegressionStatistic.calibrated(**columns, budget=PUBLIC), PUBLIC),
        "silent": (
            np.column_stack([x[:, 0], y]),
            RegressionStatistic.calibrated(**columns, budget=Budget(epsilon=1, neighbouring="add-remove")),
            Budget(epsilon=1, neighbouring="add-remove"),
        ),
        "bernoulli": (ill.astype(int)[:, None], BernoulliStatistic.calibrated(**one, budget=WHOLE), WHOLE),
        "poisson": (rng.poisson(3.0, (600, 1)), PoissonStatistic.calibrated(**one, upper=20, budget=WHOLE), WHOLE),
        "normal": (
            y[:, None],
            NormalStatistic.calibrated(response="column_0", bounds=(-5, 5), budget=SECRET),
            SECRET,
        ),
        "dirichlet": (
            rng.dirichlet([4.0, 2.0, 3.0], 300),
            DirichletStatistic.calibrated(parts=["column_0", "column_1", "column_2"], floor=0.001, budget=SECRET),
            SECRET,
        ),
    }
    for seed, (name, (data, mechanism, budget)) in enumerate(made.items()):
        released = release_statistics(data, mechanism=mechanism, budget=budget, entropy=SeededEntropy(seed))
        released.save(path / f"{name}")
    counts = NoisyCounts(publish="counts")
    cells = np.column_stack([smoker, ill]).astype(int)
    table = {"epsilon": 1, "neighbouring": "add-remove", "ledger": False, "entropy": SeededEntropy(8)}
    release(cells, counts, domain=both, **table).save(path / "table")
    release_statistics(made["regression"][0], mechanism=made["regression"][1], budget=SECRET).save(path / "private")
    return path


@pytest.fixture
def run(folder, monkeypatch):
    def call(*words):
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "200")  # no word of a table is broken
        return CliRunner().invoke(app, ["infer", *map(str, words)])

    return call


def by_name(told):
    return {row["name"]: row for row in told["variables"]}


def fitted(folder):
    """What Python finds in regression with the options of QUICK."""
    statistics = released_sums(folder / "regression")
    options = Run(chains=2, warm_up=300, draws=300, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMixed)
        return infer(statistics, run=options)


def test_regression_shows_everything_and_writes_every_file(run, folder):
    files = ["--plot", "intervals=i.png", "--plot", "t.png", "--plot", "n=n.svg", "-o", "draws.nc", "--synthetic", "new.csv"]
    done = run("regression", *QUICK, "--naive", "--bootstrap", *files)
    assert done.exit_code == 0, done.output
    shown = ["beta[intercept]", "beta[column_0]", "tau", "ignores noise", "bootstrap", "R-hat", "accepted: records", "jumps"]
    for words in shown:
        assert words in done.output
    assert "2 chains of 300 draws (as asked) after 300 sweeps" in done.output
    for name in ("i.png", "t.png", "n.svg", "draws.nc"):
        assert (folder / name).stat().st_size > 5000
    found = fitted(folder)
    same = found.synthetic(seed=1)
    number = len(same)
    with (folder / "new.csv").open() as lines:
        rows = list(csv.reader(lines))
    assert rows[0] == same.column_names == ["column_0", "column_1"]
    assert np.array(rows[1:], float).T.tolist() == [same[name].to_pylist() for name in rows[0]]
    assert len(rows) == number + 1
    assert number == round(found.draws["n"].mean())
    assert abs(len(rows) - 601) < 300  # n has a posterior of deviation 14
    values = np.array(rows[1:], float)
    assert abs(np.corrcoef(values.T)[0, 1]) > 0.1


def test_json_has_the_posterior_of_n_and_the_comparators(run, folder):
    first = run("regression", *QUICK, "--naive", "--bootstrap", "--level", "0.9", "--json")
    told = json.loads(first.stdout)
    assert {"beta[intercept]", "beta[column_0]", "tau", "mu[column_0]", "n"} <= by_name(told).keys()
    slope = by_name(told)["beta[column_0]"]
    assert slope["level"] == 0.9
    assert set(told["acceptance"]) == {"records", "jumps", "steps"}
    assert (told["chains"], told["draws"], told["length"], told["warm_up"]) == (2, 300, "given", 300)
    expected = {each.name: each.to_json() for each in fitted(folder).draws.summary(level=0.9)}
    for name, row in by_name(told).items():
        assert {key: row[key] for key in expected[name]} == expected[name]
    naive, wide = slope["naive"], slope["bootstrap"]
    assert naive["upper"] - naive["lower"] < slope["upper"] - slope["lower"]  # it ignores noise of 9 on sums of about 100
    assert naive["upper"] - naive["lower"] < wide["upper"] - wide["lower"]
    assert told["n"]["public"] is None
    assert abs(by_name(told)["n"]["mean"] - told["n"]["noisy"]) < 100.0
    again = run("regression", *QUICK, "--naive", "--bootstrap", "--level", "0.9", "--json")
    assert again.stdout == first.stdout


def test_a_public_n_is_no_variable(run):
    told = json.loads(run("public", *QUICK, "--json").stdout)
    assert "n" not in by_name(told)
    assert told["n"] == {"public": 600, "noisy": None}
    assert set(told["acceptance"]) == {"records", "steps"}
    refused = run("public", *QUICK, "--plot", "n=never.png")
    assert "public" in str(refused.exception)
    assert "public" in str(run("public", "--prior-n", "1:10").exception)


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("bernoulli", {"probability"}),
        ("poisson", {"rate"}),
        ("normal", {"mean", "tau"}),
        ("dirichlet", {f"alpha[column_{j}]" for j in range(3)}),
    ],
)
def test_other_models(run, folder, model, names):
    target = folder / f"synthetic_{model}.csv"
    done = run(f"{model}", *QUICK, "--naive", "--synthetic", target, "--json")
    assert done.exit_code == 0, done.output
    rows = by_name(json.loads(done.stdout))
    assert rows.keys() == names | {"n"}
    for name in names:  # the plug-in is a rough estimate of the same number: within eight posterior deviations
        assert abs(rows[name]["naive"]["mean"] - rows[name]["mean"]) < 8.0 * rows[name]["deviation"]
    values = np.loadtxt(target, delimiter=",", skiprows=1, ndmin=2)
    if model == "dirichlet":
        assert np.allclose(values.sum(axis=1), 1.0)
    if model in ("bernoulli", "poisson"):
        assert np.array_equal(values, np.rint(values))
        assert values.min() >= 0.0


def test_table(run, folder):
    files = ["--plot", "intervals=cells.png", "--plot", "n=cells_n.png", "--synthetic", "cells.csv"]
    asked = ["--ask", "cells", "--ask", "log_odds_ratio", "--prior", "1"]
    done = run("table", *asked, "--naive", "--seed", "1", *files, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    rows = by_name(told)
    assert {"P(column_0=0, column_1=0)", "n", "log_odds_ratio"} <= rows.keys()
    assert (told["length"], told["mixed"]) == ("chosen", True)
    assert sum(row["mean"] for name, row in rows.items() if name.startswith("P(")) == pytest.approx(1.0)
    with (folder / "cells.csv").open() as lines:
        records = list(csv.reader(lines))
    assert records[0] == ["column_0", "column_1"]
    assert abs(len(records) - 1 - rows["n"]["mean"]) < 50.0
    shown = run("table", "--ask", "cells", *QUICK)
    assert "P(column_0=0, column_1=0)" in shown.output


def test_maximum_likelihood_is_shown_with_its_error(run):
    told = json.loads(run("bernoulli", *QUICK, "--mle", "--json").stdout)
    found = told["maximum"]["variables"]["probability"]
    row = by_name(told)["probability"]
    assert abs(found["estimate"] - row["mean"]) < 4.0 * row["deviation"]
    assert 0.0 < found["error"] < row["deviation"]
    assert "maximum likelihood" in run("bernoulli", *QUICK, "--mle").output


def test_a_prior_moves_the_posterior(run):
    words = ["bernoulli", *QUICK, "--json"]
    weak = by_name(json.loads(run(*words).stdout))
    strong = by_name(json.loads(run(*words, "--prior", "ones=5000", "--prior", "zeros=5000").stdout))
    assert weak["probability"]["mean"] < 0.3
    assert strong["probability"]["mean"] > 0.45
    size = by_name(json.loads(run(*words, "--prior-n", "700:800").stdout))["n"]
    assert size["lower"] >= 700.0
    regression = ["regression", *QUICK, "--json"]
    tight = by_name(json.loads(run(*regression, "--prior", "unit", "--prior", "coefficient-precision=1e6").stdout))
    assert abs(tight["beta[column_0]"]["mean"]) < 0.05


def test_nothing_published_about_n_needs_a_prior(run):
    refused = run("silent", *QUICK)
    assert "nothing is known of the number of records" in str(refused.exception)
    refused = run("silent", *QUICK, "--naive", "--prior-n", "500:700")
    assert "none was published" in str(refused.exception)
    told = json.loads(run("silent", *QUICK, "--prior-n", "500:700", "--json").stdout)
    assert 500.0 <= by_name(told)["n"]["lower"] <= by_name(told)["n"]["upper"] <= 700.0


def test_a_negative_noisy_n_is_legitimate(run, folder):
    budget = Budget(epsilon=1.01, epsilon_n=0.01, noise="discrete-laplace", neighbouring="add-remove")
    made = BernoulliStatistic.calibrated(column="column_0", budget=budget)
    for seed in range(100):
        released = release_statistics(np.ones((20, 1), int), mechanism=made, budget=budget, entropy=SeededEntropy(seed))
        if released_sums(released).noisy_n < 0:
            break
    released.save(folder / "negative")
    done = run("negative", *QUICK, "--json")
    assert done.exit_code == 0, done.output
    assert "not private" in done.stderr
    assert by_name(json.loads(done.stdout))["n"]["lower"] >= 1.0
    assert "below 2" in str(run("negative", *QUICK, "--naive").exception)


def test_chains_that_have_not_mixed_are_warned_about_loudly(run):
    done = run("regression", "--draws", "30", "--chains", "2", "--warm-up", "0", "--seed", "1", "--json")
    assert done.exit_code == 0
    assert "WARNING: the chains have NOT mixed" in done.stderr
    told = json.loads(done.stdout)
    assert told["problems"]
    assert not told["mixed"]


def test_an_edited_file_is_refused(run, folder):
    done = run("private", *QUICK, "--json")
    assert done.exit_code == 0, done.output
    assert "not private" not in done.stderr
    shutil.copytree(folder / "private", folder / "edited")
    with (folder / "edited" / "measurements.csv").open("a") as rows:
        rows.write('"n",1\n')
    done = run("edited")
    assert isinstance(done.exception, PrivurnError)
    assert done.exception.exit_code == 1
    assert "was changed" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table", "--model", "regression"], "--model counts"),
        (["regression", "--model", "table"], "--model regression"),
        (["normal", "--model", "dirichlet"], "--model normal"),
        (["regression", "table"], "one release at a time"),
        (["regression", "--sample"], "--sample is not for noisy sums"),
        (["regression", "--ask", "slope"], "There are: beta[intercept]"),
        (["normal", "--bootstrap"], "for regression"),
        (["nowhere"], "there is no 'nowhere'"),
        (["regression", "--draws", "few"], "whole number"),
        (["regression", "--draws", "3"], "at least 10"),
        (["regression", "--level", "95"], "between 0 and 1"),
        (["regression", "--moves", "wild"], "--moves auto, interwoven"),
        (["regression", "--prior", "slope=1"], "coefficient_precision"),
        (["regression", "--prior", "precision_shape=-1"], "positive"),
        (["regression", "--prior-n", "many"], "--prior-n 500:2000"),
        (["regression", "--prior-n", "20:10"], "lower <= upper"),
        (["dirichlet", "--prior", "shape=inf"], "not understood"),
        (["dirichlet", "--prior", "shape=0"], "positive"),
        (["table", "--prior", "cell=1"], "--prior 0.5"),
        (["poisson", "--prior", "ones=1"], "--prior shape=1"),
        (["normal", "-o", "draws.csv"], ".nc"),
        (["normal", "--plot", "pie=p.png"], "traces, n, intervals"),
        (["normal", "--plot", "n=n.bmp"], ".png"),
        (["normal", "--plot", "nowhere/n.png"], "no folder"),
        (["normal", "--synthetic", "new.json"], ".csv"),
        (["normal", "--synthetic", "normal"], ".csv"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else None,
)
def test_errors_say_what_to_type(run, folder, words, message):
    before = sorted(folder.iterdir())
    done = run(*words)
    assert isinstance(done.exception, PrivurnError), done.output
    assert done.exception.exit_code == 2
    assert message in str(done.exception)
    assert sorted(folder.iterdir()) == before


def test_help_has_examples(run):
    told = " ".join(run("--help").output.split())
    for words in ("privurn infer table --ask cells", "privurn infer regression --prior unit"):
        assert words in told


def test_an_interrupted_run_leaves_nothing(folder, tmp_path):
    files = ["-o", "late.nc", "--plot", "late.png", "--synthetic", "late.csv"]
    words = ["infer", "normal", "--draws", "1000000", "--seed", "1", *files]
    before = sorted(folder.iterdir())
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    for _ in range(60):  # until the chains run: a million draws take far longer
        if process.poll() is not None:
            break
        time.sleep(0.1)
    assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode != 0
    assert sorted(folder.iterdir()) == before
    assert not [each for each in tmp_path.iterdir() if each.name.startswith("tmp")]


def test_the_plug_in_of_compositions_solves_its_equation():
    """Digamma(alpha_j) - digamma(sum) is the mean log share, also far from 1."""
    from scipy.special import digamma

    from privurn.inference.sums.report import dirichlet_maximum

    for alpha in ([0.05, 0.2], [400.0, 3.0, 0.5], [7.0] * 12):
        mean_logs = digamma(alpha) - digamma(sum(alpha))
        found, deviations = dirichlet_maximum(np.asarray(mean_logs), n=100.0)
        np.testing.assert_allclose(found, alpha, rtol=1e-8)
        assert np.all(deviations > 0.0)
    with pytest.raises(PrivurnError, match="no composition"):
        dirichlet_maximum(np.log([0.6, 0.6]), n=10.0)


def test_the_default_prior_follows_the_units():
    """Response and covariates in other units: the same prior of the same things."""
    from privurn.inference.sums import NoisyStatistics
    from privurn.inference.sums.regression_model import RegressionModel

    def model(unit_x, unit_y):
        bounds = {"x": (2.0 * unit_x, 10.0 * unit_x), "y": (-3.0 * unit_y, 5.0 * unit_y)}
        made = RegressionStatistic.calibrated(response="y", covariates=["x"], bounds=bounds, budget=SECRET)
        statistics = NoisyStatistics(mechanism=made, values=np.zeros(5), noisy_n=10.0)
        return RegressionModel.from_statistics(statistics)

    plain, scaled = model(1.0, 1.0), model(1000.0, 0.01)
    for seed in range(20):
        one = plain.variables(plain.start(np.random.default_rng(seed))[None])
        other = scaled.variables(scaled.start(np.random.default_rng(seed))[None])
        np.testing.assert_allclose(other["tau"], one["tau"] * 1e4, rtol=1e-9)
        np.testing.assert_allclose(other["mu"], one["mu"] * 1000.0, rtol=1e-9)
        np.testing.assert_allclose(other["Phi"], one["Phi"] * 1e-6, rtol=1e-9)
    assert isinstance(plain.record.V, np.ndarray)
    turn = np.diag([0.01, 1e-5])  # intercept in units of y, slope in y for each x
    np.testing.assert_allclose(turn @ scaled.record.V @ turn * 1e4, plain.record.V, rtol=1e-9)
    np.testing.assert_allclose(np.linalg.solve(turn, scaled.record.m), plain.record.m, rtol=1e-9)


def test_summaries_of_comparators_are_plain_data():
    from privurn.inference.sums import NoisyStatistics
    from privurn.inference.sums.report import plug_in

    made = BernoulliStatistic.calibrated(column="ill", budget=WHOLE)
    rows = plug_in(NoisyStatistics(mechanism=made, values=np.array([40.0]), noisy_n=160.0))
    assert all(isinstance(row, Summary) for row in rows)
    probability, n = rows
    assert (probability.mean, n.mean) == (0.25, 160.0)
    assert probability.deviation == pytest.approx((0.25 * 0.75 / 160.0) ** 0.5)
    assert json.dumps(probability.to_json())
