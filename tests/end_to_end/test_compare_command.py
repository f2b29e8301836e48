"""`privurn compare` as a person runs it: the table and its words, JSON, pictures, interruption, and its speed on the demo."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from privurn.simulated.incomes import incomes

DEMO = ["incomes.csv", "--column", "income", "--grid", "0:200000:1000", "--epsilon", "1"]
SECONDS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("compare")
    (path / "incomes.csv").write_text("income\n" + "".join(f"{each}\n" for each in incomes().tolist()))
    return path


@pytest.fixture
def run(folder, privurn_command):
    return lambda *words: privurn_command("compare", *words, cwd=folder)


@pytest.mark.long
def test_the_demo_column_in_time(run):
    before = os.times()
    done = run(*DEMO, "--delta", "1e-6")
    after = os.times()  # processor time: other programs must not matter
    took = after.user - before.user + after.children_user - before.children_user
    assert done.returncode == 0, done.stderr
    assert took < SECONDS, f"5 mechanisms and 100 runs must take less than {SECONDS} s of one core, not {took:.0f}"
    assert "median of 100 runs" in done.stdout
    for name in ("dirichlet-multinomial", "posterior-sample", "perturbed-histogram", "smoothed-histogram", "plain sample"):
        assert name in done.stdout
    assert done.stdout.count("±") >= 5 * 9  # five or more mechanisms, nine metrics
    assert "did best: median W1" in done.stdout
    for source in ("shrinkage", "noise", "bins"):
        assert f"mostly {source}" in done.stdout
    assert "CONFIDENTIAL" in done.stdout
    assert done.stderr.startswith("confidential:")


def test_json_and_repeatability(run):
    words = [*DEMO, "--delta", "1e-3", "--runs", "5", "--seed", "3", "--json"]
    first, again = run(*words), run(*words, "--processes", "2")
    answer = json.loads(first.stdout)
    assert answer == json.loads(again.stdout)
    assert answer["confidential"] is True
    assert (answer["n"], answer["cells"], answer["runs"]) == (50_000, 201, 5)
    names = [each["mechanism"] for each in answer["results"]]
    assert len(names) >= 8
    assert {"dirichlet-process", "pitman-yor"} <= set(names)  # this delta is above their floor
    assert names == sorted(names, key=lambda name: answer["results"][names.index(name)]["median"]["wasserstein"])
    assert answer["words"][0].startswith(f"{names[0]} did best")
    assert first.stdout.count("\n") == 1


def test_chosen_mechanisms_records_and_pictures(run, folder):
    words = ["--mechanism", "smoothed-histogram", "--mechanism", "dirichlet-multinomial", "--records", "2000", "--runs", "4"]
    done = run(*DEMO, "--delta", "1e-6", *words, "--plot", "shot", "--json")
    answer = json.loads(done.stdout)
    assert {each["output"] for each in answer["results"]} == {"2,000 records"}
    assert answer["pictures"] == ["shot-confidential-errors.png", "shot-confidential-density.png"]
    for picture in answer["pictures"]:
        assert (folder / picture).read_bytes()[:4] == b"\x89PNG"


def test_a_model_by_name_or_file(run, folder):
    (folder / "curve.yaml").write_text("kind: normal\nmean: [0, 200000]\ndeviation: [1000, 200000]\npoints: [60, 30]\n")
    words = ["--mechanism", "pseudo-posterior", "--mechanism", "smoothed-histogram", "--runs", "3"]
    done = run(*DEMO, *words, "--model", "curve.yaml", "--asymptotic")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("no certificate") >= 8  # four rows, four sentences
    assert "pseudo-posterior did best" in done.stdout or "smoothed-histogram did best" in done.stdout
    for wrong, message in (
        (["--asymptotic"], "needs a model"),
        (["--model", "nonsense"], "neither known nor a readable file"),
        (["--mechanism", "pseudo-posterior"], "--model"),
    ):
        failed = run(*DEMO, *wrong)
        assert failed.returncode == 2
        assert message in failed.stderr


def test_several_columns(run, folder):
    rows = [f"{i * 7 % 60},{'fm'[i % 3 == 0]}" for i in range(400)]
    (folder / "people.csv").write_text("age,sex\n" + "\n".join(rows) + "\n")
    words = ["people.csv", "--grid", "age=0:60:5", "--categories", "sex=f,m", "--epsilon", "1", "--delta", "1e-4"]
    done = run(*words, "--runs", "3", "--plot", "people")
    assert done.returncode == 0, done.stderr
    assert "sliced W1" in done.stdout
    assert "people-confidential-density-age.png" in done.stdout
    assert (folder / "people-confidential-density-sex.png").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere.csv", "--grid", "0:9:1", "--epsilon", "1"], 2, "no file"),
        (["incomes.csv", "--column", "income", "--epsilon", "1"], 2, "say what values"),
        ([*DEMO, "--mechanism", "magic"], 2, "not known"),
        ([*DEMO, "--mechanism", "pitman-yor", "--delta", "1e-6"], 3, "no mechanism meets"),
        ([*DEMO, "--plot", "no/such/folder/x"], 2, "no folder"),
        ([*DEMO, "--runs", "0"], 2, "at least one run"),
        (["incomes.csv", "--column", "pay", "--grid", "0:9:1", "--epsilon", "1"], 2, "no column"),
    ],
)
def test_bad_input_is_explained(run, words, code, message):
    done = run(*words)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


INTERRUPTED = """
import numpy as np, privurn
from privurn.reports.comparison.comparison import Runs, compare
def progress(done, total):
    print(done, flush=True)
data = np.random.default_rng(1).integers(0, 200_000, 50_000).astype(float)
compare(data, domain=privurn.Grid(0, 200_000, 1), epsilon=1, delta=1e-6, runs=Runs(100_000, processes=2), progress=progress)
"""


def test_ctrl_c_ends_the_workers_too():
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout.readline()  # at work
        children = [int(pid) for pid in Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()]
        assert len(children) == 2
        start = time.perf_counter()
        os.kill(parent.pid, signal.SIGINT)
        errors = parent.communicate(timeout=60)[1]
        assert time.perf_counter() - start < 10
        assert "KeyboardInterrupt" in errors
        assert parent.returncode != 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in children)
