"""Where one prior weight is all there is for many cells, inference says so; what makes two releases the same one."""

import warnings

import numpy as np
import pytest

import privurn
from privurn.errors import FormatError, InferenceWarning, PriorDecides

FINE, COARSE = privurn.Grid(0, 39, 1), privurn.Grid(0, 9, 1)
RUN = privurn.Run(chains=2, draws=20, seed=1)


def released(recipe, domain, **more):
    values = np.random.default_rng(3).integers(0, 10, 400).astype(float)
    return privurn.release(values, recipe, domain=domain, epsilon=2, ledger=False, **more)


def warned(given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        found = privurn.infer(given, ask="mean", run=RUN)
    return [str(each) for each in found.cautions() if isinstance(each, PriorDecides) and "one prior weight" in str(each)]


@pytest.mark.parametrize(
    ("recipe", "more", "said"),
    [
        (privurn.NoisyCounts(records=400), {}, False),
        (privurn.NoisyCounts(records=400), {"neighbouring": "add-remove"}, True),
        (privurn.NoisyCounts(publish="counts"), {}, False),
        (privurn.Urn(records=400), {"delta": 1e-3}, False),
        (privurn.Urn(records=400), {"delta": 1e-3, "neighbouring": "add-remove"}, True),
    ],
    ids=["records of noisy counts", "records of noisy counts, secret n", "noisy counts", "urn", "urn, secret n"],
)
def test_one_weight_for_many_cells_is_said(recipe, more, said):
    assert bool(warned(released(recipe, FINE, **more))) is said
    assert not warned(released(recipe, COARSE, **more))


@pytest.mark.filterwarnings("ignore::privurn.errors.NotMixed")
def test_it_is_a_warning_of_the_call():
    with pytest.warns(PriorDecides, match="one prior weight stands for all 40 cells"):
        privurn.infer(released(privurn.NoisyCounts(records=400), FINE, neighbouring="add-remove"), ask="mean", run=RUN)


def test_two_releases_of_one_second_are_two_and_one_is_one(tmp_path):
    first, second = (released(privurn.NoisyCounts(publish="counts"), COARSE) for _ in range(2))
    assert warned([first, second]) == []
    with pytest.raises(FormatError, match="named twice"):
        privurn.infer([first, first], ask="mean", run=RUN)
    first.save(tmp_path / "first")
    with pytest.raises(FormatError, match="named twice"):
        privurn.infer([first, tmp_path / "first"], ask="mean", run=RUN)
