"""The command line as a person meets it."""

import json
import math
import os
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SECRET = 8675309


@pytest.fixture
def pay(tmp_path):
    rng = np.random.default_rng(1)
    rows = "\n".join(
        f"{value:.2f},{town}" for value, town in zip(rng.gamma(4, 9000, 5000), rng.choice(list("abc"), 5000), strict=True)
    )
    (tmp_path / "pay.csv").write_text(f"pay,town\n{rows}\n")
    return tmp_path / "pay.csv"


RELEASE = ["--column", "pay", "--grid", "0:80000:4000", "--epsilon", 1, "--delta", 1e-6]


def test_release_verify_and_ledger(privurn_command, pay):
    here = pay.parent
    done = privurn_command("ledger", "init", "pay.csv.ledger", "--epsilon", 1.5, "--delta", 1e-6, cwd=here)
    assert done.returncode == 0, done.stderr
    done = privurn_command("release", "pay.csv", *RELEASE, "-o", "out", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "differential privacy" in done.stdout
    assert "no ledger" not in done.stderr
    assert privurn_command("verify", "out", cwd=here).returncode == 0
    shown = json.loads(privurn_command("ledger", "show", "pay.csv.ledger", "--json", cwd=here).stdout)
    assert shown["remaining"] == {"epsilon": 0.5, "delta": 0.0}
    assert shown["entries"][0]["status"] == "released"
    assert "1 of 1.5" not in privurn_command("ledger", "show", "pay.csv.ledger", cwd=here).stdout
    refused = privurn_command("release", "pay.csv", *RELEASE, "-o", "again", cwd=here)
    assert refused.returncode == 4
    assert not (here / "again").exists()
    unpaid = privurn_command("release", "pay.csv", *RELEASE, "-o", "again", "--no-ledger", "--json", cwd=here)
    assert json.loads(unpaid.stdout)["certificate"]["ledger"] == {"used": False, "declined": True}


def test_json_of_release_and_verify(privurn_command, pay):
    here = pay.parent
    done = privurn_command("release", pay, *RELEASE, "-o", here / "out", "--format", "parquet", "--json")
    answer = json.loads(done.stdout)
    assert answer["paths"]["data"].endswith("data.parquet")
    assert answer["certificate"]["target"] == {"epsilon": 1.0, "delta": 1e-6}
    verdict = privurn_command("verify", here / "out", "--json")
    assert json.loads(verdict.stdout) == {"valid": True, "reasons": []}
    (here / "out" / "data.parquet").write_bytes(b"")
    verdict = privurn_command("verify", here / "out", "--json")
    assert verdict.returncode == 1
    assert json.loads(verdict.stdout)["valid"] is False
    assert "NOT valid" in privurn_command("verify", here / "out").stdout


def test_other_domains(privurn_command, pay):
    here = pay.parent
    (here / "domain.yaml").write_text(
        "pay: {kind: bins, edges: [0, 20000, 40000, 100000]}\ntown: {kind: categories, values: [a, b, c]}\n"
    )
    common = ["--epsilon", 2, "--delta", 1e-5, "--json", "-o"]
    for i, words in enumerate(
        [
            ["--domain", "domain.yaml"],
            ["--grid", "pay=0:80000:8000", "--categories", "town=a,b,c"],
            ["--column", "town", "--categories", "a,b", "--outside", "null"],
            ["--column", "town", "--open-labels"],
            ["--column", "pay", "--bins", "0,20000,40000,100000", "--records", "1e3"],
            ["--column", "town", "--open-labels", "--mechanism", "pitman-yor", "--discount", "0.5", "--delta", "0.01"],
        ]
    ):
        done = privurn_command("release", "pay.csv", *common, f"out{i}", *words, cwd=here)
        assert done.returncode == 0, done.stderr
        assert privurn_command("verify", f"out{i}", cwd=here).returncode == 0
    registry = privurn_command("verify", "out0", "--registry", cwd=here)
    assert "dp_flavor" in registry.stdout


def bad_inputs():
    """name -> (file content or None, extra words)."""
    grid = ["--grid", "0:10:1"]
    ok = f"x\n{SECRET}\n2\n3\n"
    return {
        "missing file": (None, ["--column", "x", *grid]),
        "missing column": (ok, ["--column", "y", *grid]),
        "empty file": ("", ["--column", "x", *grid]),
        "header only": ("x\n", ["--column", "x", *grid]),
        "one row": (f"x\n{SECRET}\n", ["--column", "x", *grid]),
        "all null": ("x,y\n,1\n,2\n,3\n", ["--column", "x", *grid]),
        "bounds reversed": (ok, ["--column", "x", "--grid", "10:0:1"]),
        "step does not divide": (ok, ["--column", "x", "--grid", "0:10:3"]),
        "not a grid": (ok, ["--column", "x", "--grid", "0-10"]),
        "duplicate categories": (ok, ["--column", "x", "--categories", "a,b,a"]),
        "epsilon zero": (ok, ["--column", "x", *grid, "--epsilon", "0"]),
        "epsilon negative": (ok, ["--column", "x", *grid, "--epsilon", "-1"]),
        "epsilon not a number": (ok, ["--column", "x", *grid, "--epsilon", "nan"]),
        "delta one": (ok, ["--column", "x", *grid, "--delta", "1"]),
        "delta negative": (ok, ["--column", "x", *grid, "--delta", "-0.1"]),
        "no records": (ok, ["--column", "x", *grid, "--records", "0"]),
        "half a record": (ok, ["--column", "x", *grid, "--records", "0.5"]),
        "1e12 cells": (ok, ["--column", "x", "--grid", "0:1000000000000:1"]),
        "no domain": (ok, ["--column", "x"]),
        "two domains": (ok, ["--column", "x", *grid, "--open-labels"]),
        "text declared numeric": (f"x\nabc{SECRET}\ndef\n", ["--column", "x", *grid]),
        "not UTF-8": (f"x\n1\n{SECRET}é\n".encode("latin1"), ["--column", "x", *grid]),
        "unreadable ledger": (ok, ["--column", "x", *grid, "--ledger", "data.csv"]),
        "missing ledger": (ok, ["--column", "x", *grid, "--ledger", "nothing"]),
        "output exists": (ok, ["--column", "x", *grid, "-o", "."]),
        "unknown mechanism": (ok, ["--column", "x", *grid, "--mechanism", "magic"]),
        "unknown option": (ok, ["--column", "x", *grid, "--nonsense"]),
        "unknown format": (ok, ["--column", "x", *grid, "--format", "xlsx"]),
        "unknown nulls": (ok, ["--column", "x", *grid, "--nulls", "drop"]),
        "alpha not a number": (ok, ["--column", "x", *grid, "--alpha", "many"]),
        "two ledgers": (ok, ["--column", "x", *grid, "--ledger", "a", "--no-ledger"]),
    }


@pytest.mark.parametrize("name", bad_inputs())
def test_bad_input_is_a_clear_error_and_writes_nothing(privurn_command, tmp_path, name):
    content, words = bad_inputs()[name]
    if content is not None:
        (tmp_path / "data.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    before = sorted(tmp_path.iterdir())
    done = privurn_command("release", "data.csv", "--epsilon", 1, "--delta", 1e-3, "-o", "out", *words, cwd=tmp_path)
    assert done.returncode in (2, 3, 4), done.stdout
    assert sorted(tmp_path.iterdir()) == before
    assert done.stdout == ""
    assert len(done.stderr) > 20
    assert "internal error" not in done.stderr
    assert "Traceback" not in done.stderr
    assert str(SECRET) not in done.stderr


def test_parquet_of_the_wrong_type(privurn_command, tmp_path):
    pq.write_table(pa.table({"x": [str(SECRET), "a"]}), tmp_path / "t.parquet")
    done = privurn_command(
        "release", "t.parquet", "--column", "x", "--grid", "0:1:1", "--epsilon", 1, "-o", "out", cwd=tmp_path
    )
    assert done.returncode == 2
    assert "holds text" in done.stderr
    assert str(SECRET) not in done.stderr


def test_a_refusal_names_three_alternatives(privurn_command, pay):
    words = ["--column", "town", "--open-labels", "--mechanism", "dirichlet-process", "--records", 100]
    done = privurn_command("release", pay, *words, "--epsilon", 1, "--delta", 1e-6, "-o", pay.parent / "out")
    assert done.returncode == 3
    assert done.stderr.count("    - ") == 3


def account(privurn_command, *words):
    done = privurn_command("account", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_account(privurn_command):
    answer = account(privurn_command, "dirichlet-process", "--n", 10000, "--records", 101, "--strength", 1, "--epsilon", 0.5)
    assert answer["delta"] == pytest.approx(101 / 10101)
    assert {key: answer[key] for key in ("model", "neighbouring", "n", "records", "strength", "epsilon")} == {
        "model": "dirichlet-process",
        "neighbouring": "replace-one",
        "n": 10000,
        "records": 101,
        "strength": 1.0,
        "epsilon": 0.5,
    }
    words = ["dirichlet-process", "--n", "11918162", "--strength", 1, "--epsilon", 2, "--delta", 1e-5, "--solve", "records"]
    assert account(privurn_command, *words)["records"] == 119
    floor = account(privurn_command, "dirichlet-process", "--n", 100, "--records", 10, "--strength", 1, "--delta", 1e-6)
    assert floor["epsilon"] is None
    py = account(privurn_command, "pitman-yor", "--n", 100, "--records", 5, "--strength", 1, "--discount", 0.5, "--epsilon", 1)
    assert 0 < py["delta"] < 5 / 105
    zero = account(privurn_command, "pitman-yor", "--n", 100, "--records", 5, "--strength", 1, "--discount", 0, "--epsilon", 1)
    assert zero["delta"] == pytest.approx(5 / 105)
    dm = ["dirichlet-multinomial", "--n", 10000, "--cells", 10]
    both = ["--epsilon", 1, "--delta", 1e-6]
    assert account(privurn_command, *dm, "--alpha", 5, *both, "--solve", "records")["records"] == 1842
    assert account(privurn_command, *dm, "--alpha", 40, *both, "--solve", "records")["records"] == "unlimited"
    unlimited = account(privurn_command, *dm, "--records", "unlimited", *both, "--solve", "alpha")
    assert unlimited["alpha"] == pytest.approx(37.054, abs=1e-3)
    assert unlimited["records"] == "unlimited"
    pure = account(privurn_command, *dm, "--alpha", 10, "--records", 10, "--delta", 0)
    assert pure["epsilon"] == pytest.approx(math.log(2))
    assert account(privurn_command, *dm, "--alpha", 10, "--records", "unlimited", "--delta", 0)["epsilon"] is None


def test_secret_number_of_records(privurn_command, pay):
    here = pay.parent
    done = privurn_command(
        "release", pay, *RELEASE, "--neighbouring", "add-remove", "--records", 500, "-o", here / "out", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["certificate"]["n"] is None
    assert privurn_command("verify", here / "out").returncode == 0
    words = ["dirichlet-multinomial", "--cells", 21, "--neighbouring", "add-remove", "--delta", 1e-6]
    answer = account(privurn_command, *words, "--records", 500, "--epsilon", 1, "--solve", "alpha")
    assert answer["neighbouring"] == "add-remove"
    assert "n" not in answer
    again = account(privurn_command, *words, "--records", 500, "--alpha", answer["alpha"])
    assert again["epsilon"] == pytest.approx(1.0)
    assert account(privurn_command, *words, "--alpha", answer["alpha"], "--epsilon", 1, "--solve", "records")["records"] >= 500


@pytest.mark.parametrize(
    "words",
    [
        ["dirichlet-multinomial", "--cells", 3, "--alpha", 1, "--records", 3, "--epsilon", 1],
        [
            "dirichlet-multinomial",
            "--n",
            9,
            "--cells",
            3,
            "--alpha",
            1,
            "--records",
            3,
            "--epsilon",
            1,
            "--neighbouring",
            "add-remove",
        ],
        ["dirichlet-process", "--n", 10, "--strength", 1, "--epsilon", 1],
        ["dirichlet-process", "--n", 10, "--strength", 1, "--records", 3],
        ["dirichlet-process", "--n", 10, "--strength", 1, "--records", 3, "--epsilon", 1, "--delta", 0.1],
        ["dirichlet-process", "--n", 10, "--strength", 0, "--records", 3, "--epsilon", 1],
        ["dirichlet-process", "--n", 10, "--strength", 1, "--epsilon", 1, "--solve", "records"],
        ["dirichlet-process", "--n", 10, "--strength", 1, "--records", "unlimited", "--epsilon", 1],
        ["dirichlet-multinomial", "--n", 10, "--cells", 3, "--records", 3, "--epsilon", 1],
        ["dirichlet-multinomial", "--n", 10, "--cells", 3, "--alpha", 0, "--records", 3, "--epsilon", 1],
        ["dirichlet-multinomial", "--n", 10, "--cells", 3, "--alpha", 1, "--records", 3, "--epsilon", -1],
        ["pitman-yor", "--n", 10, "--strength", 1, "--discount", 1, "--records", 3, "--epsilon", 1],
    ],
)
def test_account_says_what_is_missing(privurn_command, words):
    done = privurn_command("account", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")


@pytest.mark.usefixtures("few_simulated_tables")
def test_plan(privurn_command):
    done = privurn_command("plan", "--n", 50000, "--grid", "0:200000:500", "--epsilon", 1, "--delta", 1e-6, "--json")
    answer = json.loads(done.stdout)
    assert answer["cells"] == 401
    assert {option["mechanism"] for option in answer["options"]} == {
        "dirichlet-multinomial",
        "dirichlet-process",
        "pitman-yor",
        "perturbed-histogram",
        "smoothed-histogram",
        "posterior-sample",
        "exponential",
        "noisy-tree",
    }
    text = privurn_command("plan", "--n", "2e4", "--open-labels", "--epsilon", 1, "--delta", 1e-6).stdout
    assert "label-discovery" in text
    assert "label-discovery" in privurn_command("plan", "--n", 100, "--open-labels", "--epsilon", 1).stdout
    assert privurn_command("plan", "--n", 100, "--cells", 0, "--epsilon", 1).returncode == 2


@pytest.mark.parametrize(
    "words", [[], ["release"], ["plan"], ["verify"], ["ledger"], ["ledger", "init"], ["account"], ["account", "pitman-yor"]]
)
def test_help_has_examples(privurn_command, words):
    done = privurn_command(*words, "--help")
    assert done.returncode == 0
    assert "Examples" in done.stdout or words == []
    assert "privurn" in done.stdout


def test_version(privurn_command):
    import privurn

    assert privurn_command("--version").stdout.strip() == f"privurn {privurn.__version__}"


def test_a_home_that_cannot_be_written(privurn_command, tmp_path):
    """Compiled code is then made anew in every process."""
    home = tmp_path / "home"
    home.write_text("not a folder")
    env = {**os.environ, "HOME": str(home), "PRIVURN_CACHE_DIR": str(home)}
    done = privurn_command(
        "account", "dirichlet-multinomial", "--n", 10, "--cells", 3, "--alpha", 1, "--records", 3, "--epsilon", 1, env=env
    )
    assert done.returncode == 0, done.stderr
    assert stat.S_ISREG(home.stat().st_mode)
