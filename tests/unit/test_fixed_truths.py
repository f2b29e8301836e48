"""The experiment of coverage at fixed truths: what it is about, and how it judges."""

import math
from collections import Counter

import pytest
from experiments.fixed_truths import ASKED, CROSS, ELSEWHERE, LISTED, MECHANISMS, TWELVE, law, run, table, verdict

from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.registry import mechanisms


def test_every_registered_mechanism_with_a_likelihood_is_on_the_listed_settings_or_has_a_reason():
    likely = {name for name, kind in mechanisms().items() if kind.likelihood is not Mechanism.likelihood}
    assert {each.alias for each in MECHANISMS.values()} | set(ELSEWHERE) == likely
    assert set(TWELVE.values()) == {(*each, name) for each in LISTED for name in MECHANISMS}


def test_the_full_cross_and_twelve_of_it():
    assert len(CROSS) == 2 * 72
    assert len(set(LISTED)) == 12
    assert {each[:4] for each in CROSS.values()} >= set(LISTED)
    for place, times in ((0, 3), (1, 4), (2, 4)):
        assert set(Counter(each[place] for each in LISTED).values()) <= {times, times - 1, times + 1}


@pytest.mark.parametrize("truth", ["lognormal", "heaped", "bimodal", "sparse"])
@pytest.mark.parametrize("cells", [20, 200, 2000])
def test_truths_are_probabilities(truth, cells):
    shares = law(truth, cells)
    assert len(shares) == cells + 1
    assert shares.min() >= 0.0
    assert math.isclose(shares.sum(), 1.0)


def of(*shares, size=200):
    return {
        name: [True] * round(size * share) + [False] * round(size * (1 - share))
        for name, share in zip("abcde", shares, strict=False)
    }


def test_the_average_has_a_band_and_single_figures_a_test():
    assert verdict(of(0.9, 0.86, 0.95)) == "holds"
    assert verdict(of(0.8, 0.85, 0.9)) == "low"
    assert verdict(of(1.0, 0.98, 0.97)) == "high"
    assert verdict(of(0.7, 0.95, 0.95)) == "holds; alone: a"  # 140 of 200 has probability 1e-9 at 86%
    assert verdict(of(0.5, 0.9, size=20)) == "low"  # 10 of 20 has probability 2e-4 at 86%
    assert verdict({"a": []}) == "told little"


def test_a_data_set_and_its_row():
    setting = "lognormal, 200 cells, n 5000, epsilon 1, default"
    row = run(setting, 0)
    assert set(row["figures"]) == set(ASKED)
    head, line = table([row])
    assert head.split()[-1] == "verdict"
    assert line.startswith(setting)


def test_what_cannot_have_the_guarantee_is_said_to():
    setting = next(name for name in TWELVE if name.endswith("dirichlet-process"))
    _, line = table([run(setting, 0)])
    assert line.endswith("cannot have the guarantee")
