"""`privurn statistics` as a person meets it."""

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from privurn.certificates.verify import verify
from privurn.cli.main import spoken
from privurn.cli.mechanism_options import StatisticsCommand
from privurn.cli.statistics import statistics
from privurn.errors import PrivurnError

SECRET = "8675309.25"


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(1)
    rows = [
        f"{a:.1f},{p:.2f},{i},{v},{s}"
        for a, p, i, v, s in zip(
            rng.uniform(18, 70, 400),
            rng.gamma(4, 9000, 400),
            rng.integers(0, 2, 400),
            rng.poisson(2, 400),
            rng.choice(["f", "m"], 400),
            strict=True,
        )
    ]
    (tmp_path / "people.csv").write_text("age,pay,ill,visits,sex\n" + "\n".join([*rows, f"30,{SECRET},1,2,f"]) + "\n")
    days = rng.dirichlet([2, 3, 4], 50)
    (tmp_path / "days.csv").write_text(
        "sleep,work,rest\n" + "\n".join(",".join(f"{v:.5f}" for v in day) for day in days) + "\n"
    )
    return tmp_path


@pytest.fixture
def command(people, monkeypatch):
    """The command in this process: one start of Python for all its variants."""
    monkeypatch.chdir(people)
    app = typer.Typer()
    app.command(cls=StatisticsCommand)(statistics)

    def run(*words):
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exception is None or isinstance(done.exception, (PrivurnError, SystemExit)), done.exception
        return done

    return run


REGRESSION = ["--model", "regression", "--y", "pay", "--x", "age", "--bounds", "pay=0:200000", "--bounds", "age=0:120"]
SECRET_N = ["--neighbouring", "add-remove"]
SPENT = ["--epsilon", 1.1, "--epsilon-n", 0.1, *SECRET_N]

MODELS = {
    "regression": ["people.csv", *REGRESSION],
    "complement": ["people.csv", *REGRESSION, "--squares", "complement"],
    "normal": ["people.csv", "--model", "normal", "--y", "age", "--bounds", "0:120"],
    "poisson": ["people.csv", "--model", "poisson", "--y", "visits", "--bounds", "visits=0:20"],
    "bernoulli": ["people.csv", "--model", "bernoulli", "--y", "ill"],
    "table": ["people.csv", "--model", "table", "--categories", "sex=f,m", "--categories", "ill=0,1"],
    "dirichlet": ["days.csv", "--model", "dirichlet", "--part", "sleep", "--part", "work", "--part", "rest", "--floor", 0.001],
}


@pytest.mark.parametrize("name", MODELS)
def test_every_model(command, people, name):
    done = command(*MODELS[name], *(SPENT if name != "table" else ["--epsilon", 1.1, *SECRET_N]), "-o", "stats")
    assert done.exit_code == 0, done.exception
    assert "(1.1, 0)-differential privacy for one record" in done.stdout
    assert ("n is secret" if name != "table" else "4 noisy counts with the perturbed-histogram mechanism") in done.stdout
    assert "no ledger was used" in done.stderr
    assert verify("stats").reasons == ()
    assert SECRET not in (people / "stats" / ("measurements.csv" if name != "table" else "data.csv")).read_text()
    written = (people / "stats" / "certificate.json").read_text()
    assert SECRET not in written
    assert json.loads(written)["neighbouring"] == "add-remove"


def test_from_file_to_verdict(privurn_command, people):
    done = privurn_command("statistics", *MODELS["regression"], *SPENT, "-o", "stats", cwd=people)
    assert done.returncode == 0, done.stderr
    verdict = privurn_command("verify", "stats", "--json", cwd=people)
    assert json.loads(verdict.stdout) == {"valid": True, "reasons": []}
    file = people / "stats" / "measurements.csv"
    file.write_text(file.read_text().replace(".", ",", 1))
    verdict = privurn_command("verify", "stats", cwd=people)
    assert verdict.returncode == 1
    assert "was changed" in verdict.stdout


def test_json_ledger_and_replace_one(privurn_command, people):
    privurn_command("ledger", "init", "people.csv.ledger", "--epsilon", 1.5, cwd=people)
    words = ["statistics", "people.csv", *REGRESSION, "--epsilon", 1]
    done = privurn_command(*words, "-o", "stats", "--json", cwd=people)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["certificate"]["n"] == 401
    assert answer["paths"]["data"] == str(Path("stats") / "measurements.csv")
    assert answer["certificate"]["ledger"]["used"] is True
    shown = json.loads(privurn_command("ledger", "show", "people.csv.ledger", "--json", cwd=people).stdout)
    assert shown["remaining"] == {"epsilon": 0.5, "delta": 0.0}
    refused = privurn_command(*words, "-o", "again", cwd=people)
    assert refused.returncode == 4
    assert not (people / "again").exists()


def test_gaussian_noise(command):
    words = [*MODELS["regression"], *SPENT, "--noise", "discrete-gaussian", "--delta", 1e-6]
    done = command(*words, "-o", "stats")
    assert done.exit_code == 0, done.exception
    assert "(1.1, 1e-06)" in done.stdout


WRONG = {
    "no bounds": (["people.csv", "--model", "regression", "--y", "pay", "--x", "age"], "--bounds"),
    "bounds of one column": (["people.csv", *REGRESSION[:6], "--bounds", "pay=0:1"], "no public bounds for 'age'"),
    "bounds that are none": (["people.csv", *REGRESSION[:6], "--bounds", "age"], "not understood"),
    "two bounds without names": (["people.csv", *REGRESSION[:6], "--bounds", "0:1", "--bounds", "0:2"], "a column before each"),
    "reversed bounds": (["people.csv", "--model", "normal", "--y", "age", "--bounds", "9:1"], "reversed"),
    "no response": (["people.csv", "--model", "regression", "--x", "age", "--bounds", "0:1"], "--y"),
    "no floor": (["days.csv", "--model", "dirichlet", "--part", "sleep", "--part", "work"], "--floor"),
    "floor of 0": ([*MODELS["dirichlet"][:-1], 0], "--floor 0.001"),
    "no model": (["people.csv", "--model", "magic"], "regression, normal"),
    "foreign option": ([*MODELS["table"], "--y", "pay"], "has no --y"),
    "squares of counts": ([*MODELS["poisson"], "--squares", "plain"], "no --squares: that is for regression, normal"),
    "squares of a table": ([*MODELS["table"], "--squares", "complement"], "no --squares: that is for regression, normal"),
    "missing numbers of a table": ([*MODELS["table"], "--missing", "unreadable"], "no --missing: that is for regression, "),
    "nulls of numbers": ([*MODELS["normal"], "--nulls", "cell"], "has no --nulls: that is for table"),
    "n of a table": (MODELS["table"], "a table has no --epsilon-n"),
    "table without names": (["people.csv", "--model", "table", "--categories", "f,m"], "a name before each domain"),
    "no column": (["people.csv", "--model", "normal", "--y", "height", "--bounds", "0:1"], "no column 'height'"),
    "text": (["people.csv", "--model", "normal", "--y", "sex", "--bounds", "0:1"], "holds text"),
    "no file": (["nothing.csv", "--model", "normal", "--y", "age", "--bounds", "0:1"], "no file"),
    "counts from 1": (["people.csv", "--model", "poisson", "--y", "visits", "--bounds", "1:20"], "start at 0"),
}


def test_missing_values_where_they_are_asked_for(command, people):
    (people / "gaps.csv").write_text("age,sex\n30,f\n,m\n40,\n")
    numbers = ["gaps.csv", "--model", "normal", "--y", "age", "--bounds", "0:120", "--squares", "complement"]
    done = command(*numbers, *SPENT, "--missing", "unreadable", "-o", "numbers")
    assert done.exit_code == 0, done.exception
    done = command(
        "gaps.csv",
        "--model",
        "table",
        "--categories",
        "sex=f,m",
        "--epsilon",
        1,
        *SECRET_N,
        "--nulls",
        "cell",
        "--outside",
        "other",
        "-o",
        "cells",
    )
    assert done.exit_code == 0, done.exception
    stated = json.loads((people / "cells" / "certificate.json").read_text())["output"]
    assert stated["rows"] == 4  # f, m, other, missing


@pytest.mark.parametrize("what", WRONG)
def test_wrong_words_are_answered(command, people, what):
    words, expected = WRONG[what]
    done = command(*words, *SPENT, "-o", "stats")
    assert done.exception.exit_code == 2
    assert expected in spoken(done.exception, ["statistics"])
    assert not (people / "stats").exists()


@pytest.mark.parametrize(("epsilon_n", "more"), [(0, SECRET_N), ("inf", SECRET_N), (-1, SECRET_N), (1, SECRET_N), (0.1, [])])
def test_impossible_epsilon_n(command, epsilon_n, more):
    done = command(*MODELS["regression"], "--epsilon", 1, "--epsilon-n", epsilon_n, *more, "-o", "stats")
    assert done.exception.exit_code == 2
    assert "epsilon_n" in str(done.exception)
    assert "--epsilon-n" in spoken(done.exception, ["statistics"])
    assert "epsilon_n" not in spoken(done.exception, ["statistics"])


def test_nothing_is_overwritten(command, people):
    (people / "stats").write_text("mine")
    assert command(*MODELS["normal"], *SPENT, "-o", "stats").exception.exit_code == 2
    assert (people / "stats").read_text() == "mine"


def test_few_records_and_a_constant_are_remarked_on_from_public_numbers(command, people):
    """Under add-remove nothing is refused because of the data; what the noisy numbers show is said."""
    model = ["--model", "regression", "--y", "a", "--x", "b", "--bounds", "0:10"]
    (people / "few.csv").write_text("a,b\n1,5\n")
    done = command("few.csv", *model, "--epsilon", 101, "--epsilon-n", 100, *SECRET_N, "-o", "s")
    assert done.exit_code == 0, done.exception
    assert "smaller than the model needs" in done.stderr
    rows = "\n".join(f"{i % 10},5" for i in range(500))
    (people / "flat.csv").write_text(f"a,b\n{rows}\n")
    done = command("flat.csv", *model, "--epsilon", 500, "--epsilon-n", 100, *SECRET_N, "--seed", 1, "-o", "t")
    assert done.exit_code == 0, done.exception
    assert "hide all variation of 'b'" in done.stderr
    done = command("few.csv", *model, "--epsilon", 1, "--neighbouring", "replace-one", "-o", "u")
    assert "fewer records than columns" in str(done.exception)
