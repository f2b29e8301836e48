"""The mixture paper's experiment runs, and shows what the paper found where that does not need long chains."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*words):
    command = [sys.executable, "-m", "experiments.mixture_paper", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_gaussian_mixture(tmp_path):
    words = ["--sections", "4.1", "--quick", "--iterations", "400", "--json", "--figures", str(tmp_path)]
    done = run(*words)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["4.1"]
    assert [(each["n"], each["epsilon"]) for each in rows] == [(50, 2.0), (50, 50.0), (200, 2.0), (200, 50.0)]
    for each in rows:
        for sampler in ("neal5", "neal5m5", "slice"):
            # The mean of acceptance rates that are each at least exp(-epsilon) is too
            assert math.exp(-each["epsilon"]) <= each[f"{sampler} acceptance"] <= 1.0
            assert 0.0 < each[f"{sampler} error"] < 1.0
        assert each["slice acceptance"] == 1.0  # exact draws
    by = {(each["n"], each["epsilon"]): each for each in rows}
    for n in (50, 200):
        assert by[n, 50.0]["slice error"] < by[n, 2.0]["slice error"]
        assert by[n, 50.0]["ARI"] > 0.5 > by[n, 2.0]["ARI"]
    assert len(list(tmp_path.glob("*.png"))) == 8


@pytest.mark.parametrize("words", [("--iterations", "2"), ("--sections", "9")])
def test_nonsense_is_refused(words):
    done = run(*words)
    assert done.returncode == 2, done.stderr
    assert words[0] in done.stderr
    assert not done.stdout


@pytest.mark.long
def test_every_section_prints_the_paper_beside_ours():
    done = run("--quick", "--iterations", "200")
    assert done.returncode == 0, done.stderr
    shown = done.stdout
    for section in ("4.1", "4.2", "4.3", "6"):
        assert f"Section {section}" in shown
    assert "SIMULATED STAND-IN" in shown
    assert shown.count("paper:") == 7 + 3 + 2 + 3
    assert "not the paper's base: its 2 read as a scale" in shown
