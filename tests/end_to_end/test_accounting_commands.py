"""`privurn profile`, `plan --plot`, `account instance` and `account compose`, as a person meets them."""

import json
import math
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import privurn
from privurn.cli import main
from privurn.cli.console import rounded_up
from privurn.mechanisms.registry import rebuild
from privurn.privacy.composition import compose
from privurn.privacy.instance.cost import instance_delta, instance_delta_public_domain, instance_epsilon_public_domain
from privurn.privacy.trade_off import power_bound, trade_off

SECRET = 8675309
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Releases of one made-up table: exact, pure, floor, group, secret size and seeded ones."""
    here = tmp_path_factory.mktemp("releases")
    rng = np.random.default_rng(1)
    table = rng.gamma(4.0, 9000.0, 3000)
    grid, bins = privurn.Grid(0, 100_000, 5000), privurn.Bins([0, 20_000, 40_000, 60_000, 200_000])
    asked = {
        "a": {"domain": grid, "epsilon": 1, "delta": 1e-6},
        "b": {"domain": bins, "epsilon": 0.5, "mechanism": privurn.Urn(records=200)},
        "floor": {"domain": grid, "mechanism": privurn.OpenUrn(), "epsilon": 1, "delta": 0.01},
        "group": {"domain": bins, "epsilon": 1, "delta": 1e-6, "contributions": 2},
        "secret": {
            "domain": bins,
            "epsilon": 1,
            "delta": 1e-6,
            "neighbouring": "add-remove",
            "mechanism": privurn.Urn(records=300),
        },
        "seeded": {"domain": grid, "epsilon": 1, "delta": 1e-6, "entropy": privurn.SeededEntropy(1)},
    }
    for name, words in asked.items():
        privurn.release(table, **words).save(here / name)
    edited = json.loads((here / "a" / "certificate.json").read_text())
    edited["target"]["epsilon"] = 0.5
    shutil.copytree(here / "a", here / "edited")
    (here / "edited" / "certificate.json").write_text(json.dumps(edited))
    return here


@pytest.fixture
def here_command(capsys, monkeypatch):
    """The same words in this process, which is quicker: for the many refusals, and for second looks."""

    def run(*words, cwd):
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["privurn", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main.run()
        out, err = capsys.readouterr()
        return SimpleNamespace(returncode=stop.value.code, stdout=out, stderr=err)

    return run


def profile_of(folder):
    certificate = privurn.Certificate.read(folder)
    promise = privurn.Guarantee(**certificate["target"], contributions=certificate["privacy_unit"]["contributions"])
    return rebuild(**certificate["mechanism"]).profile.group(promise.contributions)


def answer(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(done, code):
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "internal error" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("name", ["a", "b", "floor", "group", "secret"])
def test_profile_is_the_certificates_own(here_command, folder, name):
    (shown,) = answer(here_command("profile", name, "--json", cwd=folder))["releases"]
    profile = profile_of(folder / name)
    certificate = privurn.Certificate.read(folder / name)
    assert shown["release"] == name
    assert shown["neighbouring"] == certificate["neighbouring"]
    assert shown["target"] == certificate["target"]
    assert certificate["target"]["epsilon"] in [point["epsilon"] for point in shown["profile"]]
    for point in shown["profile"]:
        assert point["delta"] == profile.delta(point["epsilon"])
        bound = min(1.0, math.exp(point["epsilon"]) * 0.05 + point["delta"])
        assert point["power_at_5_percent"] == pytest.approx(bound)
    assert shown["power_at_5_percent"] == pytest.approx(float(power_bound(profile, level=0.05)))
    assert 0.05 <= shown["power_at_5_percent"] <= min(point["power_at_5_percent"] for point in shown["profile"]) + 1e-12


def test_profile_prints_draws_and_chooses_epsilons(privurn_command, here_command, folder, tmp_path):
    words = ["profile", "a", folder / "b" / "certificate.json", "--epsilon", 0.3, "--epsilon", 2]
    done = privurn_command(*words, "--plot", tmp_path / "curve.png", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "curve.png").read_bytes().startswith(PNG)
    assert rounded_up(profile_of(folder / "a").delta(0.3)) in done.stdout
    assert done.stdout.count("power at 5%") == 2
    found = answer(here_command(*words, "--json", cwd=folder))
    assert [[point["epsilon"] for point in each["profile"]] for each in found["releases"]] == [[0.3, 2.0]] * 2
    assert found["plot"] is None


def test_profile_as_a_trade_off(privurn_command, here_command, folder, tmp_path):
    words = ["profile", "a", "floor", "--trade-off", "--plot", tmp_path / "trade.svg"]
    found = answer(privurn_command(*words, "--json", cwd=folder))
    assert (tmp_path / "trade.svg").read_text().startswith("<?xml")
    for each in found["releases"]:
        rates = [point["false_positive"] for point in each["trade_off"]]
        exact = trade_off(profile_of(folder / each["release"]), false_positive=rates)
        assert [point["false_negative"] for point in each["trade_off"]] == exact.tolist()
    assert "false-negative" in here_command("profile", "a", "--trade-off", cwd=folder).stdout


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["edited"], 1, "does not verify"),
        (["seeded"], 1, "not private"),
        (["a", "nowhere"], 2, "no certificate"),
        (["a", "a"], 2, "twice"),
        (["a", "--epsilon", 0], 2, "epsilon"),
        (["a", "--plot", "picture.gif"], 2, ".png"),
        (["a", "--plot", "nowhere/picture.png"], 2, "cannot be written"),
    ],
)
def test_profile_refuses(here_command, folder, words, code, says):
    before = sorted(folder.iterdir())
    assert says in refused(here_command("profile", *words, cwd=folder), code)
    assert sorted(folder.iterdir()) == before


def test_plan_draws_its_picture(privurn_command, here_command, tmp_path):
    words = ["plan", "--n", 20000, "--cells", 50, "--epsilon", 1, "--delta", 1e-6, "--plot", "plan.png"]
    done = privurn_command(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Picture: plan.png" in done.stdout
    assert (tmp_path / "plan.png").read_bytes().startswith(PNG)
    assert answer(here_command(*words, "--json", cwd=tmp_path))["plot"] == "plan.png"
    open_labels = ["plan", "--n", 20000, "--open-labels", "--epsilon", 1, "--delta", 1e-6]
    assert "open labels" in refused(here_command(*open_labels, "--plot", "no.png", cwd=tmp_path), 2)
    assert not (tmp_path / "no.png").exists()
    refused(here_command("plan", "--n", -5, "--cells", 5, "--epsilon", 1, "--plot", "no.png", cwd=tmp_path), 2)


def instance(command, text, *words, file="counts.csv", cwd=None):
    if text is not None:
        (cwd / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    return command("account", "instance", "--counts", file, *words, cwd=cwd)


OPEN = ["--records", 10, "--strength", 1]
TABLE = "value,count\na,40\nb,25\nc,30\n"


@pytest.mark.parametrize("discount", [None, 0, 0.3])
def test_instance_of_open_domain_urns(privurn_command, tmp_path, discount):
    words = [*OPEN, *([] if discount is None else ["--discount", discount]), "--epsilon", 1, "--json"]
    done = instance(privurn_command, TABLE, *words, cwd=tmp_path)
    shown = answer(done)
    report = instance_delta([40, 25, 30], epsilon=1.0, records=10, strength=1.0, discount=discount or 0.0)
    assert shown["confidential"] is True
    assert done.stderr.startswith("confidential: ")
    expected = {"delta": report.delta, "delta_forward": report.delta_forward, "floor": report.floor, "n": 95, "records": 10}
    assert {key: shown[key] for key in expected} == expected
    assert shown["model"] == ("pitman-yor" if discount else "dirichlet-process")
    assert (shown["strength"], shown["discount"], shown["epsilon"]) == (1.0, discount or 0.0, 1.0)
    assert shown["delta_forward"] < 1e-7  # the papers' direction alone would promise far too much
    assert shown["delta"] > 0.05


def test_instance_of_a_public_domain(here_command, tmp_path):
    table = "count,note,value\n40,x,a\n25,y,b\n30,z,c\n0,,d\n"
    urn = {"records": 60, "alpha": 2.0, "epsilon": 1.0}
    words = ["--records", 60, "--alpha", 2, "--epsilon", 1, "--json"]
    for extra, cells in ([], 4), (["--cells", 9], 9), (["--strength", 8], 4):
        shown = answer(instance(here_command, table, *words, *extra, cwd=tmp_path))
        report = instance_delta_public_domain([40, 25, 30], cells=cells, **urn)
        assert (shown["cells"], shown["n"], shown["model"]) == (cells, 95, "dirichlet-multinomial")
        assert (shown["delta"], shown["delta_forward"]) == (report.delta, report.delta_forward)
        assert shown["delta"] > 1e-4
    full = answer(instance(here_command, TABLE, *words, cwd=tmp_path))
    assert full["cells"] == 3
    assert full["delta"] < shown["delta"]  # no cell is empty
    solved = answer(instance(here_command, TABLE, "--records", 60, "--alpha", 2, "--delta", 1e-6, "--json", cwd=tmp_path))
    exact = float(instance_epsilon_public_domain([40, 25, 30], cells=3, delta=1e-6, records=60, alpha=2.0))
    assert (solved["epsilon"], solved["delta"]) == (exact, 1e-6)
    endless = ["--records", "unlimited", "--alpha", 20, "--epsilon", 1, "--json"]
    assert answer(instance(here_command, TABLE, *endless, cwd=tmp_path))["records"] == "unlimited"


def test_instance_for_people(privurn_command, here_command, tmp_path):
    done = instance(privurn_command, "\ufeff" + TABLE, *OPEN, "--epsilon", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "delta_forward" in done.stdout
    assert "confidential" in done.stdout.splitlines()[0]
    infinite = instance(here_command, TABLE, *OPEN, "--delta", 1e-6, cwd=tmp_path)
    assert "infinite" in infinite.stdout
    assert answer(instance(here_command, TABLE, *OPEN, "--delta", 1e-6, "--json", cwd=tmp_path))["epsilon"] is None


def bad_tables():
    """name -> (content, words)."""
    urn = [*OPEN, "--epsilon", 1]
    public = ["--records", 10, "--alpha", 2, "--epsilon", 1]
    return {
        "missing file": (None, urn),
        "empty file": ("", urn),
        "header only": ("value,count\n", urn),
        "no count": (f"value,number\na,{SECRET}\n", urn),
        "no value": (f"count\n{SECRET}\n", urn),
        "count twice": (f"value,count,count\na,{SECRET},1\n", urn),
        "negative": (f"value,count\na,-{SECRET}\nb,2\n", urn),
        "not whole": (f"value,count\na,{SECRET}.5\nb,2\n", urn),
        "power": (f"value,count\n{SECRET},1e3\nb,2\n", urn),
        "text": (f"value,count\na,x{SECRET}\nb,2\n", urn),
        "missing count": (f"value,count\n{SECRET},\nb,2\n", urn),
        "short row": (f"value,count\n{SECRET}\nb,2\n", urn),
        "long row": (f"value,count\na,3,{SECRET}\nb,2\n", urn),
        "value twice": (f"value,count\n{SECRET},3\n{SECRET},2\n", urn),
        "astronomical": (f"value,count\na,{SECRET}{'0' * 40}\n", urn),
        "unclosed quote": (f'value,count\n"a,{SECRET}\nb,2\n', urn),
        "not UTF-8": (f"value,count\né{SECRET},3\n".encode("latin1"), urn),
        "zero without a domain": (f"value,count\n{SECRET},0\nb,2\n", urn),
        "no records at all": (f"value,count\n{SECRET},0\n", public),
        "more rows than cells": (f"value,count\n{SECRET},1\nb,2\n", [*public, "--cells", 1]),
        "no urn": (TABLE, ["--records", 10, "--epsilon", 1]),
        "cells without alpha": (TABLE, [*urn, "--cells", 9]),
        "two urns": (TABLE, [*public, "--discount", 0.5]),
        "strength that does not fit": (TABLE, [*public, "--strength", 1]),
        "no epsilon": (TABLE, OPEN),
        "epsilon and delta": (TABLE, [*urn, "--delta", 0.1]),
        "epsilon zero": (TABLE, [*OPEN, "--epsilon", 0]),
        "unlimited": (TABLE, ["--records", "unlimited", "--strength", 1, "--epsilon", 1]),
        "discount one": (TABLE, [*urn, "--discount", 1]),
    }


@pytest.mark.parametrize("name", bad_tables())
def test_instance_refuses_without_quoting(here_command, tmp_path, name):
    content, words = bad_tables()[name]
    says = refused(instance(here_command, content, *words, "--json", cwd=tmp_path), 2)
    assert str(SECRET) not in says
    assert len(says) > 20


def test_compose_gives_both_figures(privurn_command, here_command, folder):
    found = answer(privurn_command("account", "compose", "a", "b", "--delta", 1e-5, "--json", cwd=folder))
    joint = compose([profile_of(folder / "a"), profile_of(folder / "b")])
    assert (found["epsilon"], found["delta"]) == (joint.epsilon(1e-5), 1e-5)
    assert found["basic"] == {"epsilon": pytest.approx(1.5), "delta": pytest.approx(1e-6)}
    assert found["basic"]["epsilon"] >= 1.5
    assert profile_of(folder / "a").epsilon(1e-5) < found["epsilon"] < 1.5
    assert (found["neighbouring"], found["contributions"]) == ("replace-one", 1)
    assert [each["release"] for each in found["releases"]] == ["a", "b"]
    swapped = answer(here_command("account", "compose", "b", "a", "--delta", 1e-5, "--json", cwd=folder))
    assert swapped["epsilon"] == pytest.approx(found["epsilon"], rel=1e-6)
    back = answer(here_command("account", "compose", "a", "b", "--epsilon", found["epsilon"], "--json", cwd=folder))
    assert back["delta"] == pytest.approx(1e-5, rel=1e-6)
    text = here_command("account", "compose", "a", "b", "--delta", 1e-5, cwd=folder)
    assert "jointly, tight: epsilon = " in text.stdout
    assert "jointly, basic: epsilon = 1.5 at delta = 1e-06" in text.stdout
    assert "fixed beforehand" in text.stderr
    printed = float(text.stdout.split("tight: epsilon = ")[1].split()[0])
    assert found["epsilon"] <= printed <= found["epsilon"] * (1 + 1e-5)


@pytest.mark.parametrize("name", ["a", "group", "secret"])
def test_compose_of_one_release_is_that_release(here_command, folder, name):
    found = answer(here_command("account", "compose", name, "--delta", 1e-6, "--json", cwd=folder))
    stated = privurn.Certificate.read(folder / name)
    assert found["epsilon"] == pytest.approx(stated["achieved"]["epsilon"], rel=1e-9)
    assert found["neighbouring"] == stated["neighbouring"]
    assert found["contributions"] == stated["privacy_unit"]["contributions"]


def test_compose_with_a_floor(here_command, folder):
    both = ["account", "compose", "a", "floor", "--json", "--delta"]
    assert answer(here_command(*both, 1e-5, cwd=folder))["epsilon"] is None
    floor = profile_of(folder / "floor").floor
    assert answer(here_command(*both, floor + 1e-5, cwd=folder))["epsilon"] < 1.5
    assert "infinite" in here_command("account", "compose", "a", "floor", "--delta", 1e-5, cwd=folder).stdout


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["a", "edited", "--delta", 1e-5], 1, "does not verify"),
        (["seeded", "--delta", 1e-5], 1, "not private"),
        (["a", "secret", "--delta", 1e-5], 3, "neighbouring"),
        (["a", "group", "--delta", 1e-5], 3, "privacy units"),
        (["a", "a/certificate.json", "--delta", 1e-5], 2, "twice"),
        (["a", "b"], 2, "--delta"),
        (["a", "b", "--delta", 1e-5, "--epsilon", 1], 2, "--delta"),
        (["a", "b", "--delta", 1], 2, "delta"),
        (["a", "b", "--epsilon", 0], 2, "epsilon"),
    ],
)
def test_compose_refuses(here_command, folder, words, code, says):
    assert says in refused(here_command("account", "compose", *words, cwd=folder), code)


def test_compose_needs_no_data_file(privurn_command, folder, tmp_path):
    shutil.copy(folder / "a" / "certificate.json", tmp_path / "only.json")
    found = answer(privurn_command("account", "compose", tmp_path / "only.json", "--delta", 1e-6, "--json"))
    assert found["epsilon"] <= 1.0


@pytest.mark.parametrize("words", [["profile"], ["plan"], ["account", "instance"], ["account", "compose"]])
def test_help_shows_examples(here_command, tmp_path, words):
    done = here_command(*words, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "Examples" in done.stdout
    assert done.stdout.count(f"privurn {' '.join(words)}") >= 2
