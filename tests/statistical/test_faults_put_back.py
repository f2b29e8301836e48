"""Old faults of runs put back one at a time: the checks beside this file that pass today reject each of them."""

from dataclasses import replace

import pytest
import test_mcem as maxima
from test_mixed_or_marked import exact, wrong  # noqa: F401 (a fixture)

from old_faults import FOLLOWING, with_fault
from privurn._kernels.sums import chain, maximisation
from privurn.inference import draws
from privurn.inference.run import Schedule
from privurn.inference.sums import latent_chain

SEEDS = 75, 88
"""With a chain where all records are clamped, if that starts at a plain draw of the prior."""


def keep_everything(monkeypatch):
    """Chains start at a plain draw of the prior, and what was judged stays among the draws."""
    monkeypatch.setattr(latent_chain, "CANDIDATES", 1)
    monkeypatch.setattr(Schedule, "longer", lambda schedule: replace(schedule, draws=2 * schedule.draws))


@pytest.mark.filterwarnings("ignore::privurn.inference.run.NotMixed")
def test_diluted_chains_are_marked(exact, monkeypatch):  # noqa: F811
    """Even if a run kept all its draws: hardly any other chain was ever so far away."""
    keep_everything(monkeypatch)
    assert not any(wrong(seed, exact) for seed in SEEDS)


@pytest.mark.filterwarnings("ignore::privurn.inference.run.NotMixed")
def test_diluted_chains_that_ranks_alone_judge_are_seen(exact, monkeypatch):  # noqa: F811
    keep_everything(monkeypatch)
    monkeypatch.setattr(draws, "_decided_by_few", lambda each, values: False)
    assert all(wrong(seed, exact) for seed in SEEDS)


def test_a_maximum_whose_jumps_follow_n_is_seen(monkeypatch):
    fault = with_fault(chain, *FOLLOWING)
    climbing = with_fault(maximisation, swept=fault.swept)
    monkeypatch.setattr(maximisation, "update_climbing_chain", climbing.update_climbing_chain)
    with pytest.raises(AssertionError) as raised:
        maxima.test_maximum_of_a_proportion_whose_n_is_unsure()
    assert raised.traceback[-1].name == "test_maximum_of_a_proportion_whose_n_is_unsure"  # no problem was stated
