"""Posterior predictive checks: they pass where a release was made as it says, and fail where it was not."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import privurn
from privurn.errors import ModelError
from privurn.inference.posterior import Posterior
from privurn.inference.predictive import Distance, compared
from privurn.inference.published import published
from privurn.privacy.entropy import SeededEntropy

pytestmark = pytest.mark.filterwarnings("ignore::privurn.errors.InferenceWarning")

GRID = privurn.Grid(0, 150, 2)
RUN = privurn.Run(draws=50, seed=1)


def made(recipe, *, epsilon, **more):
    pay = np.random.default_rng(5).lognormal(3.5, 0.5, 4_000)
    return privurn.release(pay, recipe, domain=GRID, epsilon=epsilon, ledger=False, entropy=SeededEntropy(2), **more)


def noisy(epsilon):
    return made(privurn.NoisyCounts(publish="counts"), epsilon=epsilon)


def observed(release):
    return published(release, mixture=False).numbers


def check(release):
    return privurn.infer(release, ask="mean", run=RUN).predictive_check(draws=400)


def test_noisy_counts_that_were_made_as_stated_pass():
    found = check(noisy(1))
    assert found.passed
    assert [each.part for each in found.parts] == ["cells", "sum of the cells"]
    assert str(found).startswith("Predictive check passed")


@pytest.mark.parametrize(("true", "stated"), [(0.2, 1.0), (1.0, 0.1)], ids=["more noise than stated", "less"])
def test_noisy_counts_whose_scale_is_not_as_stated_fail(true, stated):
    """Planted: the certificate of another epsilon beside the numbers."""
    planted = replace(observed(noisy(true)), mechanism=observed(noisy(stated)).mechanism)
    found = check(planted)
    assert [each.part for each in found.failed][:1] == ["cells"]
    assert str(found).startswith("Predictive check FAILED")
    part = found.parts[0]
    assert (part.published > part.anew) == (true < stated)


def test_noisy_trees_pass_as_stated_and_fail_with_another_scale():
    right = observed(made(None, epsilon=1, delta=1e-6))
    assert check(right).passed
    measured = right.measured
    planted = replace(measured, noise=tuple((kind, scale / 5) for kind, scale in measured.noise))
    found = check(replace(right, measured=planted))
    assert len(found.parts) == len(measured.depths)
    assert not found.passed


def test_records_of_an_urn_pass_as_stated_and_fail_if_they_had_been_less_random():
    right = observed(made(privurn.Urn(), epsilon=4, delta=1e-6))
    assert check(right).passed
    even = np.full(len(right.counts), right.counts.sum() // len(right.counts))
    even[: right.counts.sum() - even.sum()] += 1
    assert not check(replace(right, counts=even)).passed  # nobody draws as many of each


def test_p_values_count_how_often_what_is_made_anew_lies_further_away():
    anew = np.arange(1.0, 1001.0)
    [part] = compared([Distance("cells", np.full(1000, 990.5), anew)]).parts
    assert part.p_value == pytest.approx(2 * 0.01)
    assert compared([Distance("cells", np.full(1000, 5000.0), anew)]).parts[0].p_value == 1 / 1001
    assert not compared([Distance("cells", np.full(1000, 0.5), anew)]).passed


def test_the_command_says_it_in_one_line_and_to_machines(tmp_path):
    from privurn.cli.main import app

    noisy(1).save(tmp_path / "out")
    typed = ["infer", str(tmp_path / "out"), "--ask", "mean", "--draws", "50", "--seed", "1", "--check"]
    assert "Predictive check passed" in CliRunner().invoke(app, typed).output
    told = json.loads(CliRunner().invoke(app, [*typed, "--json"]).stdout)
    assert told["check"]["passed"]


def test_what_has_no_check_says_so():
    with pytest.raises(ModelError, match="predictive check"):
        Posterior.predictive_check(None)
