"""`privurn infer` on releases as a person runs it: table, JSON, files, pictures, warnings, errors, interruption."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import privurn
from privurn.errors import PrivurnError
from privurn.privacy.entropy import SeededEntropy

COMMAND = """
from privurn.cli.main import run
run()
"""
pytestmark = pytest.mark.filterwarnings("ignore::privurn.inference.draws.NotMixed")  # whether short chains have is up to chance
QUICK = ["--draws", "100", "--chains", "2", "--warm-up", "30", "--seed", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two releases of the same column, and one with open labels."""
    path = tmp_path_factory.mktemp("infer")
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"pay": rng.gamma(4, 9000, 5000), "town": rng.choice(["x", "y"], 5000)})
    domain = privurn.Grid(0, 80_000, 8_000)
    pair = {"epsilon": 1, "delta": 1e-6}
    privurn.release(frame, privurn.Urn(), domain={"pay": domain}, **pair).save(path / "urn")
    noisy = {"mechanism": privurn.NoisyCounts(publish="counts")}
    privurn.release(frame, domain={"pay": domain}, **noisy, **pair).save(path / "noisy")
    privurn.release(frame, privurn.OpenUrn(), domain={"town": privurn.OpenLabels()}, epsilon=1, delta=1e-2).save(
        path / "labels"
    )
    return path


@pytest.fixture
def run(folder, privurn_command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # no word of a table is broken
    return lambda *words: privurn_command("infer", *words, cwd=folder)


def test_table_files_and_picture(run, folder):
    asked = ["--ask", "mean", "--ask", "q0.5", "--ask", "P(x>40000)"]
    done = run("urn", *asked, "--naive", *QUICK, "--plot", "out.png", "-o", "draws.nc")
    assert done.returncode == 0, done.stderr
    for words in ("Posterior of the population", "dirichlet-multinomial", "95% interval", "naive", "R-hat", "P(x>40000)"):
        assert words in done.stdout
    assert (folder / "out.png").stat().st_size > 5000
    assert (folder / "draws.nc").exists()
    assert "has not mixed" in done.stderr or done.stderr == ""


def test_the_naive_distribution_function_is_drawn_too(run, folder):
    for naive in ([], ["--naive"]):
        assert run("urn", "-a", "mean", *QUICK, "--plot", "cdf=band.svg", *naive).returncode == 0
        assert ("naive mean" in (folder / "band.svg").read_text()) == bool(naive)


def test_several_releases_as_json(run):
    done = run("urn", "noisy", "-a", "mean", "--sample", "--level", "0.9", "--naive", "--json", *QUICK)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (mean,) = told["variables"]
    assert mean["level"] == 0.9
    assert mean["lower"] < mean["mean"] < mean["upper"]
    assert mean["naive"]["name"] == "mean"
    assert told["how"]["of"] == "sample"
    assert told["how"]["mechanisms"] == "dirichlet-multinomial, perturbed-histogram"
    again = run("urn", "noisy", "-a", "mean", "--sample", "--level", "0.9", "--naive", "--json", *QUICK)
    assert again.stdout == done.stdout


def test_the_mechanisms_prior_and_open_labels(run):
    done = run("urn", "--prior", "mechanism", "--draws", "1e4", "--chains", "1", "--plot", "cdf=cdf.svg")
    assert done.returncode == 0, done.stderr
    assert "10,000" in done.stdout
    assert "R-hat" not in done.stdout
    done = run("labels", "--draws", "200")
    assert done.returncode == 0, done.stderr
    assert "discovery" in done.stdout


def test_draws_without_records_are_said(run, folder):
    """n is secret and at most 2: some draws of the sample hold no record at all."""
    secret = {
        "neighbouring": "add-remove",
        "mechanism": privurn.Urn(records=3),
        "epsilon": 1,
        "delta": 0.01,
        "entropy": SeededEntropy(1),
    }
    made = privurn.release(np.array([1.0, 0.0]), domain=privurn.Grid(0, 1, 1), **secret).save(folder / "few")
    words = ["few", "-a", "mean", "--sample", "--prior-n", "0:2", *QUICK]
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    model, how = privurn.CountModel(size=privurn.SizePrior(upper=2)), privurn.Run(draws=100, chains=2, warm_up=30, seed=1)
    found = privurn.infer(made, model, ask="mean", of="sample", run=how)
    empty = int((found.draws["n"] == 0).sum())
    assert 0 < empty < 200
    assert told["undefined"] == {"mean": empty}
    assert told["variables"][0]["mean"] == found.summary()[0].mean
    assert f"note: mean is undefined in {empty} of 200 draws, which hold no record of it; they are left out." in done.stderr
    assert "undefined" not in json.loads(run("urn", "-a", "mean", "--sample", "--json", *QUICK).stdout)


def test_chains_that_have_not_mixed_are_warned_about(run):
    done = run("urn", "-a", "mean", "--draws", "10", "--chains", "2", "--warm-up", "0", "--json")
    assert done.returncode == 0
    assert "WARNING: the chains have NOT mixed" in done.stderr
    assert "mean has not mixed" in done.stderr
    assert json.loads(done.stdout)["problems"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere"], 2, "there is no 'nowhere'"),
        (["urn", "-a", "meen"], 2, "not understood"),
        (["urn", "-a", "P(town=x)"], 2, "no column"),
        (["labels", "-a", "P(nocolumn=x)"], 2, "no column 'nocolumn'"),
        (["urn", "--prior", "strong"], 2, "--prior flat"),
        (["urn", "--prior", "-1"], 2, "--prior flat"),
        (["noisy", "--prior", "mechanism"], 2, "not an urn"),
        (["urn", "--level", "95"], 2, "between 0 and 1"),
        (["urn", "--within", "edges"], 2, "within"),
        (["urn", "--plot", "pie=p.png"], 2, "density, cdf, intervals, n, traces"),
        (["urn", "-o", "draws.csv"], 2, ".nc"),
        (["urn", "--plot", "picture.bmp"], 2, ".png"),
        (["urn", "--plot", "nowhere/picture.png"], 2, "no folder"),
        (["urn", "labels"], 2, "one at a time"),
        (["urn", "--draws", "few"], 2, "whole number"),
        (["urn", "--prior-n", "0:10"], 2, "public"),
        (["urn", "--kernel", "beta"], 2, "--kernel is not for counts of cells"),
        (["urn", "--mle"], 2, "--mle is not for counts of cells"),
        (["urn", "--model", "regression"], 2, "--model counts"),
        (["labels", "--model", "mixture"], 2, "a mixture is no model of counts of cells"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else None,
)
def test_errors(folder, monkeypatch, words, code, message):
    from privurn.cli.main import app

    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, ["infer", *words])
    assert isinstance(done.exception, PrivurnError), done.output
    assert done.exception.exit_code == code
    assert message in str(done.exception)


def test_the_help_has_examples(run):
    done = run("--help")
    assert done.returncode == 0
    assert "privurn infer out" in done.stdout


def test_a_run_that_is_interrupted_between_two_pieces_leaves_nothing(run, folder, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    before = sorted(folder.iterdir())
    monkeypatch.setattr("privurn.inference.run.Underway.forgetting", interrupted)
    done = run("urn", *QUICK, "-o", "late.nc", "--plot", "late.png")
    assert done.returncode == 130
    assert "nothing is half-written" in done.stderr
    assert sorted(folder.iterdir()) == before


def test_an_interrupted_run_leaves_nothing(folder):
    before = sorted(folder.iterdir())
    words = ["urn", "--draws", "1000000", "--seed", "1", "-o", "late.nc", "--plot", "late.png"]
    command = [sys.executable, "-c", COMMAND, "infer", *words]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True
    )
    time.sleep(4)
    assert process.poll() is None, process.stderr.read()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode != 0
    assert sorted(folder.iterdir()) == before


def test_debiased_records_of_an_urn_and_of_noisy_counts(run, folder):
    """Within a dozen posterior deviations."""
    truth = np.random.default_rng(3).gamma(4, 9000, 5000).clip(0, 80_000).mean()
    for source in ("urn", "noisy"):
        done = run(source, "--ask", "mean", *QUICK, "--synthetic", "4000", "-o", f"{source}-new")
        assert done.returncode == 0, done.stderr
        records = pd.read_csv(folder / f"{source}-new" / "data.csv")["pay"]
        assert len(records) == 4000
        assert abs(records.mean() - truth) < 3000
        stated = json.loads((folder / f"{source}-new" / "synthetic.json").read_text())
        assert (stated["rows"], stated["copies"], stated["seed"]) == (4000, 1, 1)
    done = run("noisy", "--ask", "mean", *QUICK, "--synthetic", "20", "--copies", "2", "-o", "two")
    assert "as many records as the confidential table, not 20" in " ".join(done.stderr.split())
    assert len(pd.read_csv(folder / "two" / "data.csv")) == 10_000
    done = run("noisy", "--ask", "mean", *QUICK, "--copies", "5", "-o", "copies")
    assert done.returncode == 0, done.stderr
    copies = pd.read_csv(folder / "copies" / "data.csv")
    assert copies.groupby("copy").size().tolist() == [5000] * 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--synthetic", "100"], "new folder"),
        (["--synthetic", "0", "-o", "none"], "--synthetic 1000 -o NEWDIR"),
        (["--synthetic", "none.csv", "--records", "0"], "--synthetic new.csv --records 1000"),
        (["--copies", "3"], "new folder"),
        (["--synthetic", "100", "-o", "urn"], "exists"),
        (["--copies", "100000", "-o", "many"], "copies can be made"),
    ],
)
def test_records_that_cannot_be_made(run, words, message):
    done = run("urn", "--ask", "mean", *QUICK, *words)
    assert done.returncode == 2
    assert message in done.stderr
