"""Measurements that take long go on where they were stopped, and tell what they found so far."""

import json
import sys

import numpy as np
import pytest

from privurn.privacy.profile import Guarantee


def test_a_benchmark_of_distances_goes_on_and_measures_every_setting_in_turn(tmp_path, monkeypatch, capsys):
    from benchmarks import face_value

    asked = []

    def measured(counts, guarantee, rng):
        asked.append((guarantee.epsilon, float(rng.random())))
        return {"seconds": 0.1, "ours": 1.0, "mean": -0.25, "flat": 3.0, "hb": 2.0}

    monkeypatch.setattr(face_value.Distances, "measured", staticmethod(measured))
    cases = [face_value.Case("column", lambda _: np.ones(4, np.int64), 4)]
    guarantees = [Guarantee(epsilon=each, delta=1e-6) for each in (0.5, 1.0)]
    file = tmp_path / "runs.jsonl"
    for runs in (2, 3):
        face_value.measure_all(cases, guarantees, runs=runs, kept=face_value.Kept(str(file)))
    assert [epsilon for epsilon, _ in asked] == [0.5, 1.0] * 3  # the runs of the file are not made again
    assert len({number for _, number in asked}) == 6  # each with its own noise
    assert "25.00%    0.50        -  0.50 (0.00)" in capsys.readouterr().out.splitlines()[1]
    assert len(file.read_text().splitlines()) == 6


def test_the_error_of_a_mean_counts_from_the_low_end_of_the_grid():
    from benchmarks.face_value import mean_error

    assert mean_error(np.array([0.5, 0.0, 0.5]), np.array([2, 2, 0])) == pytest.approx(1.0)  # a mean of 1 instead of 1/2


def test_a_run_without_any_error_does_not_spoil_the_ratio():
    from benchmarks.face_value import Distances

    runs = [{"ours": 1.0, "flat": 9.0, "hb": each} for each in (2.0, 0.0, 2.0, 2.0)]
    assert Distances(runs).better == (0.5, 0.0)


def test_settings_in_which_a_delta_changes_nothing_are_counted_apart():
    """At epsilon 0.1 and a delta of 1e-6 the noise on 10,000 records is Laplace noise all the same; on a million Gaussian."""
    from benchmarks.face_value import Case, Distances, without_delta

    from privurn.privacy.profile import Guarantee

    found = {}
    for name, n, worse in (("same", 10_000, 3.0), ("other", 1_000_000, 2.0)):
        case = Case(name, lambda _, n=n: np.full(4096, n // 4096), n // 4096 * 4096)
        for delta, w1 in ((0.0, worse), (1e-6, 1.0)):
            guarantee = Guarantee(epsilon=0.1, delta=delta, neighbouring="replace-one")
            found[case, guarantee] = Distances([{"ours": each * w1} for each in (1.0, 1.0, 1.0)])
    assert without_delta(found, 1e-6) == ([(2.0, 2.0)], 1)


def test_coverage_of_trees_goes_on_and_says_on_which_side_the_truth_was_missed(tmp_path, monkeypatch, capsys):
    from experiments import tree_coverage

    asked = []

    def run(setting, number):
        asked.append((setting, number))
        figures = {name: [1.0, 0.0, 2.0] for name in tree_coverage.ASKED} | {
            "q0.5": [1.0, 2.0, 3.0] if number else [1.0, 0.0, 1.0]
        }
        copies = {name: [0.0, 2.0] for name in tree_coverage.ASKED} | {"mean": [2.0, 3.0] if number else [0.0, 2.0]}
        return {"setting": setting, "run": number, "figures": figures, "width": 1.0, "copies": copies}

    monkeypatch.setattr(tree_coverage, "run", run)
    words = ["--only", "smooth-1", "sparse-1", "--file", str(tmp_path / "runs.jsonl")]
    for runs in (1, 2):
        monkeypatch.setattr(sys, "argv", ["tree_coverage", "--runs", str(runs), *words])
        tree_coverage.main()
    assert asked == [("smooth-1", 0), ("sparse-1", 0), ("smooth-1", 1), ("sparse-1", 1)]
    assert [json.loads(line)["run"] for line in (tmp_path / "runs.jsonl").read_text().splitlines()] == [0, 0, 1, 1]
    last = capsys.readouterr().out.splitlines()[-1]
    assert "0.500 q0.5 (0.500, 0.000)" in last
    assert last.endswith("0.964  0.500  0.500 mean (0.500, 0.000)")
