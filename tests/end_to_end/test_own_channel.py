"""The channel of docs/how-to/add-a-channel.md, with one line in the registry, goes everywhere."""

import json
import math
import re
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import privurn
from mechanism_contract import divergence
from privurn._kernels.mixtures.channels import log_density
from privurn.mechanisms.local import RandomisedResponseChannel
from privurn.mechanisms.registry import CHANNELS, channel_recipes, local_channels

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-channel.md"
SKELETON = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]
BOUNDS = ["--column", "x", "--bounds", "0:8", "--epsilon", 3]


@pytest.fixture(autouse=True)
def registered(tmp_path, monkeypatch):
    """The file of the page, and its line in the registry."""
    (tmp_path / "binned_response.py").write_text(SKELETON)
    (tmp_path / "data.csv").write_text("x\n" + "".join(f"{each}\n" for each in np.linspace(0, 8, 60)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    [line] = re.findall(r'^    "(.*)": "privurn\.mechanisms\.local\.(.*)",$', PAGE.read_text(), re.MULTILINE)
    monkeypatch.setitem(CHANNELS, *line)
    yield
    sys.modules.pop("binned_response", None)


def test_it_goes_through_every_door(privurn_command):
    def told(*words):
        done = privurn_command(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told("ledger", "init", "data.csv.ledger", "--epsilon", 5)
    told("privatise", "data.csv", "--channel", "binned-response", "--bins", 4, *BOUNDS, "-o", "noisy")
    told("verify", "noisy")
    [entry] = json.loads(told("ledger", "show", "data.csv.ledger", "--json"))["entries"]
    assert entry["description"] == "local-binned-response"
    assert json.loads(told("audit", "--certificate", "noisy", "--samples", 500, "--seed", 1, "--json"))["convicted"] is False
    certificate = Path("noisy/certificate.json")
    certificate.write_text(certificate.read_text().replace('"odds": "', '"odds": "1'))
    assert privurn_command("verify", "noisy").returncode == 1


@pytest.mark.long  # what is from outside the package is compiled anew
def test_it_is_inferred_from(privurn_command):
    privurn_command("privatise", "data.csv", "--channel", "binned-response", "--bins", 4, *BOUNDS, "-o", "noisy")
    quick = ["--draws", 50, "--warm-up", 20, "--chains", 2, "--seed", 1]
    done = privurn_command("infer", "noisy", "--ask", "mean", "--json", *quick)
    assert done.returncode == 0, done.stderr
    assert 0.0 < json.loads(done.stdout)["variables"][0]["mean"] < 8.0


def test_it_is_asked_for_as_an_object():
    recipe = channel_recipes()["binned-response"](bins=4)
    made = privurn.privatise(np.linspace(0, 8, 40), recipe, domain=privurn.Bounds(0, 8), epsilon=3).save("noisy")
    assert set(np.unique(made.data)) <= {1.0, 3.0, 5.0, 7.0}
    assert privurn.verify("noisy").valid


def tiny():
    return local_channels()["binned-response"](
        bounds=(0, 4), response=RandomisedResponseChannel(categories=2, odds=Fraction(3))
    )


def test_its_claim_is_the_truth():
    channel = tiny()
    laws = [dict(zip((1.0, 3.0), np.exp(channel.log_density([1.0, 3.0], y)).tolist(), strict=True)) for y in (0.0, 4.0)]
    assert all(sum(law.values()) == pytest.approx(1.0) for law in laws)
    for epsilon in (0.0, 0.5, 1.0, 1.2):
        truth = max(divergence(*laws, epsilon), divergence(*laws[::-1], epsilon))
        assert truth == pytest.approx(channel.profile.delta(epsilon), abs=1e-9)


def test_the_compiled_density_is_the_channels():
    channel = tiny()
    record, z, start = channel.compiled([1.0, 3.0])
    assert z.tolist() == start.tolist() == [1.0, 3.0]
    for y in (-1.0, 0.0, 1.9, 2.1, 4.0, 9.0):
        gap = log_density(record, 1.0, y) - log_density(record, 3.0, y)
        assert gap == pytest.approx(float(np.diff(channel.log_density([3.0, 1.0], y))[0]))
        assert abs(gap) == pytest.approx(math.log(3.0))
