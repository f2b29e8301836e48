"""A noisy table is the same release whichever command publishes it."""

import json

import numpy as np
import pandas as pd
import pytest

TABLE = ("--categories", "town=a,b,c")
GAUSSIAN = ("--epsilon", 1, "--delta", 1e-6, "--noise", "discrete-gaussian", "--neighbouring", "add-remove")
DOORS = {
    "release": ("release", "people.csv", *TABLE, "--mechanism", "perturbed-histogram", "--publish", "counts", *GAUSSIAN),
    "statistics": ("statistics", "people.csv", "--model", "table", *TABLE, *GAUSSIAN),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"town": np.random.default_rng(1).choice(["a", "b", "c"], 500)}).to_csv("people.csv", index=False)
    return tmp_path


def planned(command, name):
    """The tight epsilon that a ledger reports after four releases through one command."""
    words = ("--epsilon", 10, "--delta", 1e-3, "--neighbouring", "add-remove")
    assert command("ledger", "init", f"{name}.ledger", *words).returncode == 0
    for i in range(4):
        done = command(*DOORS[name], "--ledger", f"{name}.ledger", "-o", f"{name}-{i}")
        assert done.returncode == 0, done.stderr
    return json.loads(command("ledger", "show", f"{name}.ledger", "--json").stdout)["spent"]["tight_epsilon"]


def test_a_noisy_table_costs_the_same_through_both_commands(command, here):
    one, two = planned(command, "release"), planned(command, "statistics")
    assert one == two
    assert one < 2.5  # far below the sum, 4
    scales = [
        json.loads((here / "release-0" / "certificate.json").read_text())["mechanism"]["parameters"]["scale"],
        json.loads((here / "statistics-0" / "certificate.json").read_text())["mechanism"]["parameters"]["scale"],
    ]
    assert scales[0] == scales[1]


def test_noisy_statistics_are_accounted_for_like_every_release(command, here):
    for name, out in (("release", "out"), ("statistics", "sums"), ("statistics", "more")):
        assert command(*DOORS[name], "--no-ledger", "-o", out).returncode == 0
    for file in ("out", "sums"):
        assert "valid: (1, 1e-06)" in command("verify", file).stdout
    assert "perturbed-histogram" in command("verify", "sums", "--registry").stdout
    shown = json.loads(command("profile", "out", "sums", "--json").stdout)["releases"]
    assert shown[0]["profile"] == shown[1]["profile"]
    assert [each["data_file"] for each in shown] == ["as certified"] * 2
    joint = [
        json.loads(command("account", "compose", *names, "--delta", 1e-5, "--json").stdout)["epsilon"]
        for names in (("out", "sums"), ("sums", "more"))
    ]
    assert joint[0] == joint[1]
    assert 1.0 < joint[0] < 2.0
    assert command("report", "sums").returncode == 0
    page = (here / "sums" / "report.html").read_text()
    assert "noisy counts" in page
    with (here / "sums" / "data.csv").open("a") as rows:
        rows.write("more,1\n")
    assert "hash does not fit" in command("verify", "sums").stdout
    assert json.loads(command("profile", "sums", "--json").stdout)["releases"][0]["data_file"] == "not as certified"
