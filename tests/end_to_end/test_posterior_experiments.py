"""The inference experiments run, and show what they are for: valid intervals cover, the others do not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from scipy.stats import binom

ROOT = Path(__file__).parents[2]
RARE = 1e-6


def run(*words, code=0):
    done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def rows():
    """Table 2 with one replicate and short chains."""
    return json.loads(run("experiments.posterior_table", "--replicates", "1", "--draws", "60", "--json"))


@pytest.mark.long
def test_table_2_has_every_workflow_and_functional(rows):
    workflows = {(each["workflow"], each["records"]) for each in rows}
    assert len(workflows) == 7
    assert len(rows) == 7 * 5
    assert {each["functional"] for each in rows} == {"mean", "median", "Q1", "Q3", "P(x > 0.75)"}
    assert sum(each["printed"] is not None for each in rows) == 10


@pytest.mark.long
def test_table_2_is_about_the_population(rows):
    """Every workflow finds the mean to within six standard deviations: m = 250 records of an urn, and 60 draws."""
    for each in rows:
        if each["functional"] == "mean":
            assert abs(each["bias"]) < 6.0 * 0.23 * ((1 + 4 / 60) * (2 / 250 + 2 / 2_000)) ** 0.5, each
            assert each["seconds"] > 0.0
            assert each["effective_draws_a_second"] > 0.0


@pytest.mark.long
def test_the_dirichlet_process_does_not_meet_the_others_guarantee(rows):
    deltas = {each["workflow"]: each["delta"] for each in rows}
    assert deltas["Dirichlet process, urn"] == pytest.approx(250 / (1 + 2_000 + 250 - 1))
    assert {deltas[name] for name in deltas if not name.startswith("Dirichlet process")} == {1e-5}


@pytest.fixture(scope="module")
def closed_forms():
    """Independent draws only, so that many replicates cost little."""
    names = ["own prior", "open labels, discount 0", "open labels, discount 1/2"]
    return json.loads(run("experiments.coverage", "--replicates", "300", "--json", "--mechanisms", *names))["rows"]


@pytest.mark.long
def test_valid_intervals_cover_what_they_say(closed_forms):
    """Exact binomial test of 95% in each cell; a right posterior fails one of the nine with probability 2e-5."""
    valid = [each for each in closed_forms if each["analysis"] == "valid"]
    assert len(valid) == 9
    for each in valid:
        tails = binom.cdf(each["covered"], each["replicates"], 0.95), binom.sf(each["covered"] - 1, each["replicates"], 0.95)
        assert min(tails) > RARE, each


@pytest.mark.long
def test_other_analyses_are_caught_by_the_same_test(closed_forms):
    """The posterior in print taken for the population's, and the release taken for the data."""
    for mechanism, analysis in (
        ("own prior", "urn"),
        ("open labels, discount 0", "urn"),
        ("open labels, discount 1/2", "urn"),
        ("open labels, discount 0", "naive"),
        ("open labels, discount 1/2", "naive"),
    ):
        found = [each for each in closed_forms if (each["mechanism"], each["analysis"]) == (mechanism, analysis)]
        assert min(binom.cdf(each["covered"], each["replicates"], 0.95) for each in found) <= RARE, (mechanism, analysis)


@pytest.mark.long
def test_markov_chains_are_judged_too():
    """Few replicates: the table is whole, the exit code says whether all promised cells are in their band."""
    name = "perturbed histogram, records"
    text = run("experiments.coverage", "--replicates", "12", "--mechanisms", name)
    assert "5 of 5 cells lie in the band" in text
    assert sum(line.startswith(name) for line in text.splitlines()) == 4
    run("experiments.coverage", "--mechanisms", "no such thing", code=2)
