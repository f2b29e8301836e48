"""A core installation makes, checks and accounts for releases; what needs more says in one line what to install."""

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from privurn.extras import EXTRAS

ROOT = Path(__file__).parents[2]
LEFT_OUT = ("pandas", "polars", "arviz", "arviz_base", "arviz_stats", "xarray", "h5py", "h5netcdf", "matplotlib")

CORE = [
    "example incomes.csv",
    "plan --n 50000 --grid 0:200000:50000 --epsilon 1 --delta 1e-6",
    "ledger init incomes.csv.ledger --epsilon 3 --delta 1e-5",
    "release incomes.csv --column income --grid 0:200000:5000 --epsilon 1 --delta 1e-6 -o release",
    "verify release",
    "privatise incomes.csv --column income --channel laplace --epsilon 1 --bounds 0:200000 -o noisy",
    "verify noisy",
    "account dirichlet-multinomial --n 1e6 --cells 100 --records 1e6 --epsilon 1 --delta 1e-6 --solve alpha",
    "account compose release --delta 1e-5",
    "ledger show incomes.csv.ledger",
    "check incomes.csv --column income --grid 0:200000:5000",
    "statistics incomes.csv --model normal --y income --bounds income=0:200000 --epsilon 0.5 -o sums",
    "profile release",
    "compare incomes.csv --column income --grid 0:200000:20000 --epsilon 1 --mechanism perturbed-histogram --runs 2",
    "audit --certificate sums --samples 200",
]
REFUSED = {
    "infer release": "inference",
    "report release": "plots",
    "plan --n 100 --cells 5 --epsilon 1 --plot plan.png": "plots",
    "profile release --plot profile.png": "plots",
    "infer release --plot density.png": "plots",
    "compare incomes.csv --column income --grid 0:200000:5000 --epsilon 1 --plot compared": "plots",
}

BLOCKED = f"""
import json, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {LEFT_OUT}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())

import contextlib, io, shlex
from privurn.cli.main import run

for line in json.loads(sys.argv[1]):
    sys.argv = ["privurn", *shlex.split(line)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run()
        except SystemExit as stopped:
            code = stopped.code or 0
    loaded = [name for name in {LEFT_OUT} if name in sys.modules]
    print(json.dumps({{"line": line, "code": code, "out": out.getvalue(), "err": err.getvalue(), "loaded": loaded}}))
"""


def check(done):
    """What was tried in an environment without the extras."""
    for line in CORE:
        assert done[line]["code"] == 0, done[line]
    assert done["verify release"]["out"].startswith("valid")
    for line, extra in REFUSED.items():
        assert done[line]["code"] == 2, done[line]
        said = done[line]["err"].strip().splitlines()
        assert len(said) == 1, said
        assert said[0].endswith(f"pip install 'privurn[{extra}]'")


def test_core_commands_need_no_extra(tmp_path):
    """In a process where the packages cannot be imported, and none of them is."""
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, json.dumps([*CORE, *REFUSED])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert not any(each["loaded"] for each in answers)
    check({each["line"]: each for each in answers})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "incomes.csv",
        "incomes.csv.ledger",
        "noisy",
        "release",
        "sums",
    ]


def declared():
    """Names of the distributions in pyproject.toml, by extra; those of the core under None."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = {None: project["dependencies"], **project["optional-dependencies"]}
    return {extra: {re.match(r"[\w-]+", each)[0].replace("-", "_") for each in names} for extra, names in listed.items()}


def test_extras_are_declared_as_they_are_asked_for():
    names = declared()
    assert not names[None] & set(LEFT_OUT)
    for extra, modules in EXTRAS.items():
        assert set(modules) == names[extra]
    everything = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["all"]
    assert everything == ["privurn[inference,plots,pandas,polars]"]
    assert set(names) == {None, "inference", "plots", "pandas", "polars", "spark", "all", "dev"}


def test_every_dependency_says_why_it_is_there():
    text = (ROOT / "pyproject.toml").read_text().partition("\ndependencies")[2].partition("[project.scripts]")[0]
    listed = re.findall(r'^ *(?:\w+ = \[)?"([\w-]+)[<>=][^"]*".*$', text, re.MULTILINE)
    explained = re.findall(r'^ *(?:\w+ = \[)?"([\w-]+)[<>=][^"]*".*# \w.*$', text, re.MULTILINE)
    assert len(listed) > 20
    assert explained == listed


@pytest.mark.long
def test_a_wheel_in_a_clean_environment(tmp_path):
    """Built, installed with nothing but its core dependencies, and used from an empty folder."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path / "dist", ROOT], check=True
    )
    [wheel] = (tmp_path / "dist").glob("privurn-*.whl")
    home, here = tmp_path / "environment", tmp_path / "here"
    here.mkdir()
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    constraints = ["--constraint", ROOT / "constraints.txt"]
    installed = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *constraints, wheel]
    subprocess.run(installed, check=True, env=env)
    asked = f"from importlib.util import find_spec; print([name for name in {LEFT_OUT} if find_spec(name)])"
    found = subprocess.run([python, "-c", asked], cwd=here, env=env, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
    answers = {}
    for line in [*CORE, *REFUSED]:
        words = [home / "bin" / "privurn", *line.split()]
        done = subprocess.run(words, cwd=here, env=env, capture_output=True, text=True, check=False)
        answers[line] = {"code": done.returncode, "out": done.stdout, "err": done.stderr}
    check(answers)
