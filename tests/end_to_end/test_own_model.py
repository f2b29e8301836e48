"""The model of docs/how-to/add-a-model.md has the posterior it should have."""

import re
from pathlib import Path

import numpy as np
from scipy import stats

import privurn
from privurn.inference.sums.fit import fit
from privurn.inference.sums.observed import Observed

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-model.md"
SKELETON = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]


def test_the_posterior_is_that_of_quadrature(tmp_path, monkeypatch):
    (tmp_path / "waiting_model.py").write_text(SKELETON)
    monkeypatch.syspath_prepend(tmp_path)
    from waiting_model import Waiting

    observed = Observed(values=np.array([12.0]), scales=np.array([3.0]), n=6)
    found = fit(Waiting(), observed=observed, moves="centred", run=privurn.Run(draws=1000, warm_up=100, chains=2, seed=1))
    standard = np.random.default_rng(1).standard_exponential((20_000, 6))
    rates = np.linspace(0.02, 6.0, 300)
    noise = [np.exp(-np.abs(12.0 - np.minimum(standard / rate, 10.0).sum(axis=1)) / 3.0).mean() for rate in rates]
    weights = stats.gamma(2.0).pdf(rates) * np.array(noise)
    exact = np.sum(weights * rates) / weights.sum()
    row = found.draws.summary(["rate"])[0]
    assert abs(row.mean - exact) < 5.0 * row.standard_error + 0.01
    assert found.synthetic(seed=1).shape == (6, 1)
