"""The command that chooses the settings of whole tables: its rule, that every fit is made once, and that it runs."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import tune_tables
from benchmarks.tables import described, simulated
from benchmarks.tune_tables import CANDIDATES, START, Case, Trials, chosen

from privurn.inference.tables.fit import AT_FACE_VALUE, fit_mixture

SMALL = replace(START, classes=4, pair_steps=8, triple_steps=4)


@pytest.fixture(scope="module")
def few():
    """All of 600 records of four columns, and 200 of them."""
    table = simulated("mixture", n=600, columns=4)
    return [Case(table, 1.0, None, 0), Case(table, 1.0, 200, 0), Case(table, 1.0, 200, 1)]


def searches(gains, monkeypatch, few):
    """What is chosen where so many searches have so large an error."""
    monkeypatch.setattr(Case, "errors", lambda case, settings: {"2-way": gains[settings.searches - 1]})
    return chosen(Trials(few), SMALL, {"searches": CANDIDATES["searches"]}).searches


def test_what_takes_twice_the_work_has_to_gain_a_hundredth(monkeypatch, few):
    assert searches([1.0, 0.991, 0.991, 0.991], monkeypatch, few) == 1
    assert searches([1.0, 0.989, 0.989, 0.989], monkeypatch, few) == 2


def test_four_times_the_work_of_the_start_is_too_much_whatever_it_gains(monkeypatch, few):
    assert searches([1.0, 0.9, 0.8, 0.1], monkeypatch, few) == 3


def test_settings_follow_one_another_and_draws_of_a_case_count_as_one(monkeypatch, few):
    """Steps on pairs are best at 400 once steps on triples are 150, which only a second round sees."""

    def errors(case, settings):
        if case.records is not None:
            return {"2-way": 1.0 + case.draw, "3-way": 1.0}
        best = 400 if settings.triple_steps == 150 else 200
        return {"2-way": 1.0 + 0.001 * abs(settings.pair_steps - best) + settings.triple_steps, "3-way": 1.0}

    monkeypatch.setattr(Case, "errors", errors)
    steps = {name: CANDIDATES[name] for name in ("steps on pairs", "steps on triples")}
    monkeypatch.setattr(tune_tables, "DOUBLING", 0.0)
    trials = Trials(few)
    found = chosen(trials, START, steps)
    assert (found.pair_steps, found.triple_steps) == (400, 150)
    assert trials.error(found) == pytest.approx(np.mean([np.log(151.0) / 2, np.log(2.0) / 4]))


def test_every_fit_is_made_once_and_kept(tmp_path, monkeypatch, few, capsys):
    """Rules that come to the same settings share fits; a later run needs none."""
    made, errors = [], Case.errors
    monkeypatch.setattr(Case, "errors", lambda case, settings: made.append((case.name, settings)) or errors(case, settings))
    candidates = {name: CANDIDATES[name] for name in ("searches", "spread")}
    first = chosen(Trials(few, kept=tmp_path / "fits.jsonl"), SMALL, candidates)
    assert len(made) == len(set(made)) < 3 * 4 + 3 * 80
    monkeypatch.setattr(Case, "errors", None)
    said = capsys.readouterr().out
    assert chosen(Trials(few, kept=tmp_path / "fits.jsonl"), SMALL, candidates) == first
    assert capsys.readouterr().out == said


def test_the_command_says_whether_the_defaults_are_what_it_chooses(tmp_path, monkeypatch, few, capsys):
    monkeypatch.setattr(tune_tables, "adult", lambda path: few[0].table)
    monkeypatch.setattr(tune_tables, "cases", lambda table: few)
    monkeypatch.setattr(Case, "errors", lambda case, settings: {"2-way": 0.1, "3-way": 0.2})
    monkeypatch.setattr(sys, "argv", ["tune_tables", "--adult", "adult.data"])
    tune_tables.main()
    assert "What was chosen gains" in capsys.readouterr().out
    monkeypatch.setattr(tune_tables, "chosen", lambda *_: AT_FACE_VALUE)
    tune_tables.main()
    assert "The defaults are what was chosen." in capsys.readouterr().out


def test_rules_come_to_numbers_that_give_the_same_fit(few):
    quick = replace(AT_FACE_VALUE, pair_steps=3, triple_steps=2)
    by_rule, stated = (fit_mixture(few[0].measured, settings=each).mixture for each in (quick, few[0].own(quick)))
    assert np.array_equal(by_rule.cells, stated.cells)


def test_tables_with_the_same_columns_are_told_apart_in_a_file_of_finished_runs():
    mixture, tree = (simulated(kind, n=100, columns=3) for kind in ("mixture", "tree"))
    assert (mixture.names, mixture.sizes) == (tree.names, tree.sizes)
    assert described(mixture) != described(tree)
