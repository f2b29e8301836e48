"""Old faults put back one at a time: the checks of the gate that pass today reject each of them.

A fault is the smallest change that gives the old behaviour: a line of a kernel's source, a default, or what is kept of a draw.
"""

from contextlib import contextmanager

import numpy as np
import pytest
import test_inference_gate as gate

from old_faults import FOLLOWING, with_fault
from privurn._kernels.counts import count_sweeps
from privurn._kernels.sums import chain
from privurn.inference.mixtures.samplers import MixtureSampler
from privurn.inference.sums.regression_model import RegressionPrior


@contextmanager
def rejected(by):
    """The last thing that was called is the gate's comparison, and it did not hold."""
    with pytest.raises(AssertionError) as raised:
        yield
    assert raised.traceback[-1].name == by


def test_the_total_of_another_prior_is_seen(monkeypatch):
    """The default prior's worth was drawn, and its total left at the 1 of the prior that it stood in for."""
    fault = with_fault(count_sweeps, ("prior_total = prior.sum()", "prior_total = 1.0 + 0.0 * prior[0]"))
    monkeypatch.setattr(count_sweeps, "update_counts", fault.update_counts)
    with rejected(by="test_a_secret_n_of_eight_records_in_three_cells"):
        gate.test_a_secret_n_of_eight_records_in_three_cells()
    with rejected(by="assert_agreement"):
        gate.test_releases_under_the_default_prior(("perturbed-histogram", "secret"))


@pytest.mark.parametrize("model", ["normal", "regression"])
def test_a_prior_that_does_not_follow_the_bounds_is_seen(model, monkeypatch):
    """Python's default was the paper's prior, on the scale of the data; that of the command followed the public bounds."""
    monkeypatch.setattr(RegressionPrior, "from_bounds", classmethod(lambda cls, lower, upper: cls()))
    with rejected(by="assert_agreement"):
        gate.test_statistics_against_weighted_draws_from_the_prior(model, "public")


def test_jumps_that_follow_n_are_seen(monkeypatch):
    fault = with_fault(chain, *FOLLOWING)
    monkeypatch.setattr(chain, "update_interwoven_chain", fault.update_interwoven_chain)
    with rejected(by="test_a_secret_n_of_a_proportion_to_a_fortieth_of_its_deviation"):
        gate.test_a_secret_n_of_a_proportion_to_a_fortieth_of_its_deviation()


def lumped(weights, atoms, rng, *, places=32):
    """The heaviest atoms of each measure, and all else on one of the others, drawn in proportion."""
    kept = np.zeros((len(weights), places)), np.zeros((len(weights), places, atoms.shape[2]))
    for t, heavy in enumerate(weights):
        order = np.argsort(-heavy)
        first, rest = order[: places - 1], order[places - 1 :]
        left = heavy[rest].sum()
        other = rng.choice(rest, p=heavy[rest] / left) if left > 0.0 else first[0]
        kept[0][t], kept[1][t] = [*heavy[first], left], atoms[t][[*first, other]]
    return kept


def test_measures_of_which_the_rest_is_lumped_are_seen(monkeypatch):
    right, rng = MixtureSampler._measures, np.random.default_rng(1)

    def few(sampler, *drawn):
        found = right(sampler, *drawn)
        if "weights" in found:
            found["weights"], found["atoms"] = lumped(found["weights"], found["atoms"], rng)
        return found

    monkeypatch.setattr(MixtureSampler, "_measures", few)
    with rejected(by="assert_mean"):
        gate.test_shares_of_a_mixture_with_many_atoms()
