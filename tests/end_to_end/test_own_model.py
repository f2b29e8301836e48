"""The file of docs/how-to/add-a-model.md: its model has the posterior it should have, its statistic goes everywhere."""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

import privurn
from privurn.errors import ModelError
from privurn.inference.sums.mean_models import BernoulliModel
from privurn.inference.sums.reading import released_sums
from privurn.mechanisms.registry import STATISTICS
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic, SumStatistic

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-model.md"
SKELETON = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]
SHORT = privurn.Run(draws=1000, warm_up=100, chains=2, seed=1)
FEW = privurn.Run(draws=20, warm_up=10, chains=2, seed=1)
QUICK = ["--draws", 100, "--chains", 2, "--warm-up", 50, "--seed", 1, "--json"]
few_draws = pytest.mark.filterwarnings("ignore::privurn.errors.InferenceWarning")
MINUTES = [0.4, 1.2, 2.9, 0.8, 14.0, 3.3]


@dataclass(frozen=True, kw_only=True)
class Flags(BernoulliStatistic):
    """A statistic that inherits everything, with a threshold that it does not use but asks for."""

    model: ClassVar[str] = "flags"

    @classmethod
    def calibrated(cls, *, column, threshold: float, budget, missing="error"):
        """With a parameter that has no note."""
        assert threshold == 2.5
        return super().calibrated(column=column, budget=budget, missing=missing)


@dataclass(frozen=True, kw_only=True)
class Unknown(SumStatistic):
    """Sums of which nobody has said what their records are like."""

    model: ClassVar[str] = "unknown"


@pytest.fixture(autouse=True)
def house(tmp_path, monkeypatch):
    """The file of the page, the lines in the registry, and data."""
    (tmp_path / "waiting_model.py").write_text(SKELETON)
    (tmp_path / "visits.csv").write_text("minutes,yes\n" + "".join(f"{each},{i % 2}\n" for i, each in enumerate(MINUTES)))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    [line] = re.findall(r'^    "(.*)": "(.*)",$', PAGE.read_text(), re.MULTILINE)
    monkeypatch.setitem(STATISTICS, *line)
    for kind in (Flags, Unknown):
        monkeypatch.setitem(STATISTICS, f"noisy-{kind.model}-statistics", f"{__name__}:{kind.__name__}")
    monkeypatch.delitem(sys.modules, "waiting_model", raising=False)
    yield
    sys.modules.pop("waiting_model", None)


def made(model, column="minutes", largest=10):
    """A folder with the sum of a column; the scale of its noise is 1 for minutes."""
    recipe = privurn.Sums(model, column=column)
    privurn.release("visits.csv", recipe, domain={column: privurn.Bounds(0, largest)}, epsilon=10).save(model)
    return model


def test_the_posterior_is_that_of_quadrature():
    from waiting_model import Waiting

    folder = made("poisson")
    found = privurn.infer(folder, Waiting(10), run=SHORT)
    [value], scale = released_sums(folder).values, released_sums(folder).noise.scale
    standard = np.random.default_rng(1).standard_exponential((20_000, len(MINUTES)))
    rates = np.linspace(0.02, 6.0, 300)
    sums = (np.minimum(np.rint(standard / rate), 10.0).sum(axis=1) for rate in rates)
    weights = stats.gamma(2.0).pdf(rates) * np.array([np.exp(-np.abs(value - each) / scale).mean() for each in sums])
    exact = np.sum(weights * rates) / weights.sum()
    row = found.draws.summary(["rate"])[0]
    assert abs(row.mean - exact) < 5.0 * row.standard_error + 0.01
    assert found.synthetic(seed=1).shape == (len(MINUTES), 1)


@few_draws
def test_a_statistic_with_its_model_goes_everywhere(command):
    typed = ["visits.csv", "--y", "minutes", "--bounds", "0:10", "--epsilon", 2]
    for words in (["statistics", "--model", "waiting", "-o", "one"], ["release", "--mechanism", "waiting", "-o", "two"]):
        done = command(words[0], *typed, *words[1:])
        assert done.returncode == 0, done.stderr
    for words in (["verify", "two"], ["report", "two"], ["audit", "--certificate", "two", "--samples", 400, "--seed", 1]):
        assert command(*words).returncode == 0
    done = command("infer", "two", *QUICK)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert privurn.infer("one", run=FEW).model.largest == 10
    assert (told["model"], [row["name"] for row in told["variables"]]) == ("waiting", ["rate"])
    for words, why in ((["--prior", "shape=2"], "states its own prior"), (["--naive"], "no plug-in estimate")):
        done = command("infer", "two", *QUICK, *words)
        assert done.returncode == 2
        assert why in done.stderr
    with pytest.raises(ModelError, match="states its own prior"):
        privurn.infer("two", privurn.SumModel(prior=(1.0, 1.0)))
    assert "--model waiting" in command("statistics", "--help").stdout


@few_draws
def test_a_statistic_that_derives_from_another_has_its_model_and_options(command):
    typed = ["visits.csv", "--model", "flags", "--column", "yes", "--epsilon", 2, "-o", "flags"]
    assert "needs --threshold" in command("statistics", *typed).stderr
    done = command("statistics", *typed, "--threshold", 2.5)
    assert done.returncode == 0, done.stderr
    assert isinstance(privurn.infer("flags", run=FEW).model, BernoulliModel)
    done = command("infer", "flags", *QUICK, "--prior", "ones=2", "--naive")
    assert done.returncode == 0, done.stderr
    assert [row["name"] for row in json.loads(done.stdout)["variables"]] == ["probability"]


@few_draws
def test_where_nobody_said_what_records_are_like_a_model_is_asked_for(command):
    from waiting_model import Waiting

    folder = made("unknown")
    with pytest.raises(ModelError, match=r"^nobody has said what records are like whose sums are those of the model unknown\."):
        privurn.infer(folder)
    done = command("infer", folder, *QUICK)
    assert done.returncode == 2
    assert "records_model" in done.stderr
    assert privurn.infer(folder, Waiting(10), run=FEW).model.largest == 10
