"""The unknown-n experiment runs in a reduced form, shows the printed numbers beside ours, and goes on from what it has kept."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIZES = ["0.001", "0.01", "0.1", "1.0", "10.0", "known"]
SHORT = ["--chains", "2", "--warm-up", "300", "--draws", "300", "--processes", "1"]


def run(*words, code=0):
    command = [sys.executable, "-m", "experiments.unknown_n", *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    picture = tmp_path_factory.mktemp("figure") / "figure1.png"
    parts = ["--parts", "posterior", "maximum", "bootstrap", "figure", "--iterations", "1000"]
    sizes = ["--replicates", "2", "--realisations", "1", "--compositions", "100", "--settings", "1:0.1", "1:known"]
    told = json.loads(run(*parts, *sizes, *SHORT, "--figure", picture, "--json"))
    assert picture.stat().st_size > 10_000
    return told


@pytest.mark.long
def test_table_1_has_ours_and_the_printed_numbers(found):
    rows = found["table 1"]["1.0"]
    assert {"E beta0", "Var beta2", "E tau", "Var n", "Var beta1, median"} <= rows.keys()
    assert rows["E beta1"]["0.1"][2] == -0.952
    assert rows["Var beta1"]["known"][2] == 0.195
    ours, error, printed = rows["E n"]["known"]
    assert (ours, error, printed) == (1000.0, 0.0, 1000.0)
    assert rows["Var n"]["known"][0] == 0.0
    assert abs(rows["E n"]["0.1"][0] - 1000.0) < 200.0  # noise of scale 10: e^-20 beyond
    assert 0.0 < rows["Var n"]["0.1"][0] < 2000.0
    for name, truth in (("E beta1", -1.0), ("E beta2", 1.0)):
        assert abs(rows[name]["known"][0] - truth) < 2.0  # posterior deviation about 0.45


@pytest.mark.long
def test_the_posterior_is_tighter_than_the_bootstrap_is_printed(found):
    """Table 4 gives 0.485 for the variance of beta1 with known n, and the posterior of the paper 0.195."""
    assert found["table 1"]["1.0"]["Var beta1, median"]["known"][0] < found["table 4"]["1.0"]["Var beta1"]["known"][2]


@pytest.mark.long
def test_table_2_counts_replicates_without_a_maximum(found):
    row = found["table 2"]["known"]
    assert row["replicates"] == 2
    assert 0 <= row["without a maximum"] <= 2
    assert row["printed"][1] == [-0.955, 0.385]
    assert len(row["median"]) == (4 if row["without a maximum"] < 2 else 0)
    path = row["as printed"]  # short paths from posterior draws: caught or not, all are accounted for
    assert 0 <= path["caught"] <= 2
    assert len(path["mean"]) == (4 if path["caught"] < 2 else 0)


@pytest.mark.long
def test_table_4_repairs_n(found):
    rows = found["table 4"]["1.0"]
    assert rows["E max(n_dp, 3)"]["known"][0] == 1000.0
    assert rows["E (n_dp + r)"]["known"][0] >= 1000.0
    assert rows["Var beta1"]["0.1"][2] == 1.246
    printed = found["table 4 as printed"]["1.0"]["E (n_dp + r)"]["known"]
    assert printed[2] == 1159.551
    assert printed[0] >= 1000.0


@pytest.mark.long
def test_figure_1_has_every_setting(found):
    assert {(row["epsilon"], str(row["epsilon_n"])) for row in found["figure 1"]} == {
        (epsilon, size) for epsilon in (1.0, 10.0) for size in ("0.01", "0.1", "1.0", "10.0", "known")
    }
    for row in found["figure 1"]:
        assert len(row["deviations"]) == 3
        assert min(row["deviations"]) > 0.0
        assert isinstance(row["mixed"], bool)
        if row["epsilon_n"] == "known":
            assert row["n"] == [100.0] * 7


@pytest.mark.long
def test_failures_are_counted(found):
    for row in found["chains"]:
        assert 0 <= row["failed"] <= row["replicates"]
        assert row["shortest"] == row["longest"] == 300


def test_kept_replicates_are_used_again_and_words_say_what_differs(tmp_path):
    kept = tmp_path / "kept.jsonl"
    words = ["--parts", "bootstrap", "--replicates", "2", "--settings", "1:known", "--kept", kept, "--processes", "1"]
    first = run(*words)
    for said in ("What differs from the printed tables", "Table 4", "0.485", "scores the first moment"):
        assert said in first
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert len(lines) == 2
    for line in lines:
        line[2]["repaired_n"] = 123456.0
    kept.write_text("".join(json.dumps(line) + "\n" for line in lines))
    again = json.loads(run(*words, "--json"))
    assert again["table 4"]["1.0"]["E (n_dp + r)"]["known"][0] == 123456.0
    other = json.loads(run(*words, "--seed", "2", "--json"))  # kept results of another seed are no use
    assert other["table 4"]["1.0"]["E (n_dp + r)"]["known"][0] < 123456.0


def test_settings_that_are_not_in_the_paper_are_refused():
    assert "not EPSILON:EPSILON_N" in run("--settings", "1", code=2)
    assert "epsilon_n 0.001" in run("--settings", "1:0.5", code=2)


@pytest.mark.long
def test_coverage_of_the_default_prior(tmp_path):
    """Three data sets of one truth: rows for each number, and a second call that only reads what was kept."""
    words = ["-m", "experiments.regression_coverage", "--replicates", "3", "--truths", "doses", "--processes", "1"]
    kept = tmp_path / "kept.jsonl"
    for _ in range(2):
        command = [sys.executable, *words, "--kept", str(kept), "--json"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600)
        rows = {row["number"]: row for row in json.loads(done.stdout)["rows"]}
        assert rows.keys() == {"beta[intercept]", "beta[x1]", "tau", "n"}
        assert all(0.0 <= row["coverage"] <= 1.0 and row["width"] > 0.0 for row in rows.values())
        assert len(kept.read_text().splitlines()) == 3
