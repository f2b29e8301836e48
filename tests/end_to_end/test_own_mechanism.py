"""The mechanism of docs/how-to/add-a-mechanism.md, with one line in the registry, goes everywhere."""

import json
import math
import re
import sys
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

import privurn
from mechanism_contract import divergence
from privurn.audits import audit_mechanism
from privurn.errors import ModelError
from privurn.inference.counts.released import Observed
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.registry import MECHANISMS, mechanisms, recipes

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-mechanism.md"
SKELETON = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]

QUICK = ["--draws", 200, "--chains", 2, "--warm-up", 50, "--seed", 1]
DOMAIN = ["--categories", "x=a,b", "--epsilon", 1]
RELEASE = ["release", "data.csv", *DOMAIN, "--mechanism", "padded-sample", "--records", 6]


@pytest.fixture(autouse=True)
def registered(tmp_path, monkeypatch):
    """The file of the page, and its line in the registry."""
    (tmp_path / "padded_sample.py").write_text(SKELETON)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "padded_sample", raising=False)
    [line] = re.findall(r'^    "(.*)": "privurn\.mechanisms\.(.*)",$', PAGE.read_text(), re.MULTILINE)
    monkeypatch.setitem(MECHANISMS, *line)
    yield
    sys.modules.pop("padded_sample", None)


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A folder with data and a ledger."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("x\n" + "a\n" * 30 + "b\n" * 20)
    return tmp_path


@pytest.fixture
def released(house, privurn_command):
    """A release through the command line, paid by a ledger."""
    privurn_command("ledger", "init", "data.csv.ledger", "--epsilon", 3, "--delta", 0.3)
    done = privurn_command(*RELEASE, "-o", "out")
    assert done.returncode == 0, done.stderr
    return house / "out"


def test_it_is_planned_with_the_others(privurn_command):
    done = privurn_command("plan", "--n", 50, "--cells", 3, "--epsilon", 1, "--json")
    planned = {each["mechanism"]: each for each in json.loads(done.stdout)["options"]}
    assert planned["padded-sample"]["records"] == 5
    assert "made-up" in planned["padded-sample"]["remark"]
    assert "dirichlet-multinomial" in planned


def test_it_has_options_of_its_own_and_is_refused_where_it_costs_too_much(house, privurn_command):
    assert "--padding" in privurn_command("release", "--help").stdout
    done = privurn_command(*RELEASE, "--padding", 1, "-o", "none")
    assert done.returncode == 3
    assert "does not meet the guarantee" in done.stderr
    assert not (house / "none").exists()


def test_it_is_released_as_an_object(house):
    recipe = recipes()["padded-sample"](padding=40)
    words = np.array(["a"] * 30 + ["b"] * 20)
    made = privurn.release(words, recipe, domain=privurn.Categories(["a", "b"]), epsilon=1).save("python")
    assert len(made.data) == 5
    assert privurn.verify("python").valid
    found = privurn.infer("python", ask=["P(x=a)"], run=privurn.Run(draws=200, warm_up=50, chains=2, seed=1))
    assert [row.name for row in found.summary()] == ["P(x=a)"]


def test_its_release_verifies_and_an_edit_is_convicted(released, privurn_command):
    assert privurn_command("verify", released).returncode == 0
    certificate = released / "certificate.json"
    certificate.write_text(certificate.read_text().replace('"padding": ', '"padding": 1'))
    assert privurn_command("verify", released).returncode == 1


def test_the_ledger_and_the_accounts_know_it(released, privurn_command):
    told = json.loads(privurn_command("ledger", "show", "data.csv.ledger", "--json").stdout)
    assert [entry["description"] for entry in told["entries"]] == ["padded-sample"]
    assert privurn_command("profile", released, "--json").returncode == 0
    assert privurn_command("account", "compose", released, "--delta", 0.1).returncode == 0


def test_it_is_audited(released, privurn_command):
    done = privurn_command("audit", "--certificate", released, "--samples", 1000, "--seed", 1, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["convicted"] is False
    typed = ["audit", "padded-sample", "--n", 2, "--cells", 2, "--records", 1, "--padding", 1, "--samples", 2000, "--seed", 1]
    assert privurn_command(*typed, "--epsilon", 0.01).returncode == 1  # its epsilon is log 2
    made = mechanisms()["padded-sample"](n=2, cells=2, records=1, padding=1)
    assert audit_mechanism(made, epsilon=0.01, samples=2000, seed=1).convicted


def test_a_report_says_what_it_is(released, privurn_command):
    assert privurn_command("report", released).returncode == 0
    page = (released / "report.html").read_text()
    assert "made-up ones in every cell" in page
    assert "6 synthetic records" in page


def test_it_is_compared_with_others(house, privurn_command):
    names = ["--mechanism", "padded-sample", "--mechanism", "smoothed-histogram"]
    done = privurn_command("compare", "data.csv", *DOMAIN, "--runs", 1, *names)
    assert done.returncode == 0, done.stderr
    assert "padded-sample" in done.stdout


def test_it_is_inferred_from_alone_and_with_another_release(released, privurn_command):
    privurn.release("data.csv", privurn.Urn(), domain={"x": privurn.Categories(["a", "b"])}, epsilon=1).save("urn")
    for folders in (["out"], ["out", "urn"]):
        done = privurn_command("infer", *folders, "--ask", "P(x=a)", "--json", *QUICK)
        assert done.returncode == 0, done.stderr
        [row] = json.loads(done.stdout)["variables"]
        assert row["name"] == "P(x=a)"
        assert 0.0 < row["lower"] < row["upper"] < 1.0


def test_a_mechanism_without_a_likelihood_says_why():
    class Silent(mechanisms()["padded-sample"]):
        likelihood = Mechanism.likelihood
        why_not = "nobody has worked it out"

    silent = Silent(n=4, cells=2, records=3, padding=2)
    observed = Observed(mechanism=silent, domain=privurn.JointDomain({"x": privurn.Grid(0, 1, 1)}), counts=np.array([1, 2]))
    with pytest.raises(ModelError, match=r"^there is no likelihood for a release by padded-sample: nobody has worked it out\."):
        privurn.infer(observed)


def law(made, counts):
    """Of all sequences of records."""
    total = made.n + made.padding * made.cells
    shares = [Fraction(count + made.padding, total) for count in counts]
    return {drawn: math.prod(shares[cell] for cell in drawn) for drawn in product(range(made.cells), repeat=made.records)}


def test_its_claim_is_the_truth():
    """All neighbours of two records, all outputs: no more than the claim for any epsilon, and all of it for the pure one."""
    made = mechanisms()["padded-sample"](n=2, cells=2, records=3, padding=2)
    laws = [law(made, (k, 2 - k)) for k in range(3)]
    pairs = [(first, second) for i, j in ((0, 1), (1, 2)) for first, second in permutations((laws[i], laws[j]))]
    for epsilon in (0.0, 0.3, 0.8, 1.2, 2.0):
        assert max(divergence(*pair, epsilon) for pair in pairs) <= made.profile.delta(epsilon) + 1e-12
    largest = max(math.log(first[drawn] / second[drawn]) for first, second in pairs for drawn in first)
    assert largest == pytest.approx(made.profile.pure_epsilon, rel=1e-9)
    assert made.profile.pure_epsilon >= largest


def test_its_likelihood_is_its_law():
    made = mechanisms()["padded-sample"](n=3, cells=2, records=3, padding=2)
    for k in range(4):
        for drawn, probability in law(made, (k, 3 - k)).items():
            released = np.bincount(drawn, minlength=2)
            term = made.likelihood(Numbers(released))
            shares = [(1 - term.weight) * Fraction(count, 3) + term.weight / 2 for count in (k, 3 - k)]
            assert math.prod(share ** int(times) for share, times in zip(shares, released, strict=True)) == probability
