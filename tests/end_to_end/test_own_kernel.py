"""The kernel of docs/how-to/add-a-kernel.md has the posterior it should have."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from privurn import Run
from privurn.inference.mixtures import FiniteDirichlet, MixtureModel, fit_mixture
from privurn.mechanisms.local import LaplaceChannel

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-kernel.md"
SKELETON = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_one_component_has_a_gamma_posterior(tmp_path, monkeypatch):
    (tmp_path / "waiting.py").write_text(SKELETON)
    monkeypatch.syspath_prepend(tmp_path)
    from waiting import kernel

    rng = np.random.default_rng(9)
    times = rng.exponential(0.5, size=30) + 0.01
    channel = LaplaceChannel(scale=1e-3, bounds=(0.0, 10.0))
    model = MixtureModel(channel=channel, kernel=kernel, mixing=FiniteDirichlet(components=1))
    released = channel.simulate(times, rng=rng)
    found = fit_mixture(released, model=model, sampler="neal5", run=Run(chains=2, warm_up=50, draws=400, seed=6, thin=1))
    rates = found.draws["atoms"][:, :, 0, 0]
    law = stats.gamma(32, scale=1.0 / (1.0 + times.sum()))
    assert abs(rates.mean() - law.mean()) < 0.5 * law.std()
    assert 0.7 < rates.std() / law.std() < 1.4
