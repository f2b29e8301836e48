"""The mechanism of docs/how-to/add-a-mechanism.md, copied into a copy of the package with one line in the registry, works."""

import json
import os
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from mechanism_contract import divergence
from privurn.audits import audit_mechanism

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "add-a-mechanism.md"
SOURCE = ROOT / "src" / "privurn"
AFTER = '    "pseudo-posterior": "privurn.mechanisms.pseudo_posterior:PseudoPosterior",\n'

RELEASE = """
import numpy as np
from privurn.certificates.certify import certify
from privurn.certificates.release import Release
from privurn.domain import Categories, JointDomain
from privurn.mechanisms.uniform_noise import calibrate_uniform_noise
from privurn.privacy.entropy import SystemEntropy
from privurn.privacy.ledger import Ledger
from privurn.privacy.payer import Payer
from privurn.privacy.profile import Guarantee
from privurn.releases.release import pay
from privurn.tables import count_cells, decode, open_table

domain, guarantee = JointDomain({"x": Categories(["a", "b"])}), Guarantee(epsilon=1, delta=0.1)
with open_table("data.csv") as source:
    counts, payer = count_cells(source, domain), Payer.find(Ledger("data.csv.ledger"), source)
made = calibrate_uniform_noise(n=counts.n, cells=domain.size, guarantee=guarantee)
payment = pay(payer, made, guarantee, domain=domain.to_json(), n=counts.n)
entropy = SystemEntropy()
drawn = made.draw(counts, entropy=entropy)
table = decode(drawn.cells, domain, extra=drawn.columns())
certificate = certify(
    made, guarantee=guarantee, domain=domain.to_json(), columns=table.column_names, entropy=entropy, payment=payment.stamp
)
Release(table, "path", certificate, (), payer.ledger).save("out")
"""


COMMANDS = {
    "verify": "verify out",
    "verify edited": "verify edited",
    "ledger": "ledger show data.csv.ledger --json",
    "profile": "profile out --json",
    "compose": "account compose out --delta 0.1",
    "audit": "audit --certificate out --samples 1000 --seed 1 --json",
    "report": "report out",
    "compare": "compare data.csv --categories x=a,b --epsilon 1 --delta 0.1 --runs 1 --mechanism uniform-noise "
    "--mechanism smoothed-histogram",
    "infer": "infer release out",
}

DRIVER = """
import contextlib, io, json, shlex, shutil, sys
from pathlib import Path

import privurn
from privurn.cli.main import run

def command(line):
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["privurn", *shlex.split(line)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run()
            code = 0
        except SystemExit as stopped:
            code = stopped.code or 0
    return {"code": code, "stdout": out.getvalue(), "stderr": err.getvalue()}

commands = json.loads(sys.argv[1])
answers = {"init": command("ledger init data.csv.ledger --epsilon 2 --delta 0.3")}
exec(Path("release.py").read_text())
shutil.copytree("out", "edited")
certificate = Path("edited/certificate.json")
certificate.write_text(certificate.read_text().replace('"width": ', '"width": 1'))
answers |= {name: command(line) for name, line in commands.items()}
answers["home"] = privurn.__file__
Path("answers.json").write_text(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A folder with data and a ledger, and the copied package; everything is run there, in one process."""
    folder = tmp_path_factory.mktemp("house")
    package = folder / "src" / "privurn"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    skeleton = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]
    (package / "mechanisms" / "uniform_noise.py").write_text(skeleton)
    registry = package / "mechanisms" / "registry.py"
    before = registry.read_text()
    assert before.count(AFTER) == 1
    registry.write_text(
        before.replace(AFTER, AFTER + '    "uniform-noise": "privurn.mechanisms.uniform_noise:UniformNoise",\n')
    )
    (folder / "data.csv").write_text("x\n" + "a\n" * 30 + "b\n" * 20)
    (folder / "release.py").write_text(RELEASE)
    env = {**os.environ, "PYTHONPATH": str(folder / "src")}
    words = [sys.executable, "-c", DRIVER, json.dumps(COMMANDS)]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def answers(house):
    return json.loads((house / "answers.json").read_text())


def test_the_copy_is_what_runs(house, answers):
    assert answers["home"].startswith(str(house))
    assert answers["init"]["code"] == 0


def test_its_release_verifies_and_an_edit_is_convicted(answers):
    assert answers["verify"]["code"] == 0, answers["verify"]
    assert answers["verify edited"]["code"] == 1


def test_the_ledger_and_the_accounts_know_it(answers):
    assert [entry["description"] for entry in json.loads(answers["ledger"]["stdout"])["entries"]] == ["uniform-noise"]
    assert answers["profile"]["code"] == answers["compose"]["code"] == 0


def test_it_is_audited(answers):
    assert answers["audit"]["code"] == 0, answers["audit"]
    assert json.loads(answers["audit"]["stdout"])["convicted"] is False


def test_a_report_says_what_it_is(house, answers):
    assert answers["report"]["code"] == 0, answers["report"]
    page = (house / "out" / "report.html").read_text()
    assert "counts of the cells, each with a whole number" in page
    assert "3 noisy counts" in page  # a, b and other


def test_comparisons_and_inference_answer_in_a_sentence(answers):
    assert answers["compare"]["code"] == 0, answers["compare"]
    assert "uniform-noise" in answers["compare"]["stdout"]
    assert answers["infer"]["code"] != 0
    assert "no likelihood of counts for a release by uniform-noise" in answers["infer"]["stderr"]


def skeleton():
    """The mechanism as the page has it."""
    names = {"__name__": "skeleton"}
    module = type(sys)("skeleton")
    sys.modules["skeleton"] = module  # dataclasses look their module up
    module.__dict__.update(names)
    exec(re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1], module.__dict__)
    return module


def test_an_audit_convicts_it_of_a_smaller_claim():
    made = skeleton().UniformNoise(n=5, cells=2, width=4)  # its delta is 7/16
    assert audit_mechanism(made, epsilon=1.0, delta=0.1, samples=2000, seed=1).convicted
    assert not audit_mechanism(made, samples=2000, delta=0.4375, seed=1, failure_probability=1e-9).convicted


def test_its_claim_is_the_truth():
    """All neighbours of two records, all noise."""
    made = skeleton().UniformNoise(n=2, cells=2, width=3)
    laws = {k: {(k + u, 2 - k + v): Fraction(1, 9) for u, v in product(range(3), repeat=2)} for k in range(3)}
    for epsilon in (0.0, 0.5, 3.0):
        assert max(divergence(laws[k], laws[k + 1], epsilon) for k in range(2)) == pytest.approx(made.profile.delta(epsilon))
