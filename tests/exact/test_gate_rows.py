"""Nothing that can be inferred is without a tiny case and a rank test: gate_rows.py against the registry and the tests."""

import numpy as np
import pytest
from docs.inference_matrix import NO, matrix
from gate_rows import CHAIN, EACH, MIXTURE, NO_PRIOR, PUBLIC, ROWS, SECRET, TREE, Case
from test_inference_gate import RELEASES

from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.registry import CHANNELS, GLOBAL_CHANNELS, STATISTICS, channels, recipes, registered

KNOWN = {(name.partition(" ")[0], size, model) for name, size, model in ROWS}
IS = {("pitman-yor", TREE): "of cells it is dirichlet-process: with a discount there is no law of them"}
"""What the registry's page says of a name, and is another name's row."""


def sizes(name, model):
    """Whether n may be public or secret."""
    if name in CHANNELS:
        return [EACH]
    if name in STATISTICS:
        return [PUBLIC, SECRET]
    may_be_secret = recipes()[name].keeps_n_secret and model not in (MIXTURE, "MixtureModel")
    return [PUBLIC] + [SECRET] * (may_be_secret and not (model == TREE and without_a_tree(name)))


def without_a_tree(name):
    """Whether releases with a secret n say nothing of each cell by itself, and have the chain."""
    if (name, SECRET) not in RELEASES:
        return False
    mechanism, numbers = RELEASES[name, SECRET]
    given = Numbers(np.array(numbers) / (10.0 if name == "posterior-sample" else 1))
    return mechanism.likelihood(given).as_leaves(n=None) is None


def wanted():
    """Every inference that the page of what can be inferred knows."""
    for row in matrix():
        for model, answer in row.answers.items():
            if answer != NO and (row.name, model) not in IS:
                yield from ((row.name, size, model) for size in sizes(row.name, model))


def test_every_inference_of_the_registry_has_a_row():
    missing = set(wanted()) - KNOWN
    assert not missing, f"without a tiny case and a rank test: {sorted(missing)}"


def test_every_row_is_an_inference_of_the_registry():
    """A row of a name that is gone, or of a model that a release refuses, would go on being counted."""
    also = {(name, PUBLIC, "MixtureModel") for name in ("perturbed-histogram", "smoothed-histogram")}  # given their channel
    assert KNOWN - also == set(wanted())


def test_every_channel_stands_behind_a_mixture():
    """Those of one output of all records as well, whose releases are certified as mechanisms."""
    compared = {row.tiny.values for (_, _, model), row in ROWS.items() if model == "MixtureModel"}
    assert {name for each in compared for name in each} | {"randomised-response"} == set(channels())
    assert set(GLOBAL_CHANNELS) <= set(channels())


def test_every_tiny_case_that_stands_in_a_table_is_of_a_row():
    used = {value for row in ROWS.values() for value in row.tiny.values}
    assert set(RELEASES) <= used


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_cases_of_rows_are_run(row):
    for case in (ROWS[row].tiny, ROWS[row].ranks):
        assert case.test.__name__.startswith("test_")
        assert not case.missing(), (case.test.__name__, case.missing())
    assert bool(ROWS[row].instead) == (ROWS[row].ranks.test.__module__ == "test_table_coverage")


def test_only_noisy_marginals_have_coverage_in_the_place_of_ranks():
    assert {name for (name, _, _), row in ROWS.items() if row.instead} == {"noisy-marginals"}
    assert {row.instead for row in ROWS.values()} == {"", NO_PRIOR}


@pytest.mark.parametrize("gone", ["dirichlet-process", "local-gaussian", "noisy-poisson-statistics", "noisy-marginals"])
def test_a_name_without_a_row_is_seen(gone, monkeypatch):
    """As a mechanism that is new to the registry would be."""
    monkeypatch.setitem(globals(), "KNOWN", {each for each in KNOWN if each[0] != gone})
    assert registered(gone).name
    with pytest.raises(AssertionError, match=gone):
        test_every_inference_of_the_registry_has_a_row()


def test_a_case_that_is_not_run_is_seen():
    own = ROWS["perturbed-histogram", SECRET, CHAIN].ranks
    assert Case(own.test, ("noisy counts, with a name of its own",)).missing()
    assert Case(lambda: None, ("anything",)).missing()
    assert not own.missing()
