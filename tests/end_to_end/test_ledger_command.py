"""`privurn ledger` and the ledger beside the data, from the command line."""

import json
import shutil
import sqlite3

import pytest

CHEAP = ["--column", "x", "--grid", "0:1:1", "--mechanism", "perturbed-histogram", "--publish", "counts", "--epsilon", "0.5"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "d.csv").write_text("x\n" + "0\n1\n" * 20)
    (tmp_path / "link.csv").symlink_to("d.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("spelling", ["d.cs[v]", "d*.csv", "link.csv"])
def test_an_exhausted_ledger_is_not_avoided_by_spelling(command, place, spelling):
    assert command("ledger", "init", "d.csv.ledger", "--epsilon", 0.5).returncode == 0
    assert command("release", "d.csv", *CHEAP, "-o", "first").returncode == 0
    made = [
        ("release", spelling, *CHEAP, "-o", "again"),
        ("privatise", spelling, "--column", "x", "--bounds", "0:1", "--epsilon", 0.5, "-o", "again"),
        (
            "statistics",
            spelling,
            "--model",
            "bernoulli",
            "--y",
            "x",
            "--epsilon",
            0.5,
            "--neighbouring",
            "replace-one",
            "-o",
            "again",
        ),
    ]
    for words in made:
        done = command(*words)
        assert (done.returncode, (place / "again").exists()) == (4, False), done.stderr
        assert "0 is left" in done.stderr
    done = command("release", spelling, *CHEAP, "-o", "again", "--no-ledger")
    assert done.returncode == 0
    assert "although one stands beside the data" in done.stderr
    assert json.loads((place / "again" / "certificate.json").read_text())["ledger"] == {"used": False, "declined": True}
    assert command("verify", "again").returncode == 0


def test_check_and_show(command, place):
    made = json.loads(command("ledger", "init", "d.csv.ledger", "--epsilon", 2, "--json").stdout)
    command("release", "d.csv", *CHEAP, "-o", "one")
    statistics = ["--model", "bernoulli", "--y", "x", "--epsilon", 0.5, "--neighbouring", "replace-one"]
    assert command("statistics", "d.csv", *statistics, "-o", "s.json").returncode == 0
    shown = json.loads(command("ledger", "show", "d.csv.ledger", "--json").stdout)
    done = command("ledger", "check", "d.csv.ledger", "--head", made["head"], "--head", shown["head"], "--json")
    answer = json.loads(done.stdout)
    assert answer["valid"] is True
    assert (answer["entries"], answer["head"], answer["stands_for"]["n"]) == (2, shown["head"], 40)
    assert shown["stands_for"] == {"files": [str((place / "d.csv").resolve())], "columns": ["x"], "n": 40}
    done = command("ledger", "check", "d.csv.ledger", "--certificate", "one", "--certificate", "s.json")
    assert done.returncode == 0
    for words in ("intact: 2 entries", "epsilon = 1, delta = 0 is left", "40 records of x in", shown["head"]):
        assert words in done.stdout
    assert shown["head"] in command("ledger", "show", "d.csv.ledger").stdout


def test_an_old_copy_put_back_is_betrayed_by_what_was_published(command, place):
    command("ledger", "init", "d.csv.ledger", "--epsilon", 1)
    command("release", "d.csv", *CHEAP, "-o", "one")
    shutil.copy("d.csv.ledger", "old")
    command("release", "d.csv", *CHEAP, "-o", "two")
    head = json.loads(command("ledger", "show", "d.csv.ledger", "--json").stdout)["head"]
    shutil.copy("old", "d.csv.ledger")
    assert command("ledger", "check", "d.csv.ledger").returncode == 0  # by itself it cannot be told
    assert command("ledger", "check", "d.csv.ledger", "--certificate", "one").returncode == 0
    done = command("ledger", "check", "d.csv.ledger", "--certificate", "one", "--certificate", "two", "--json")
    assert done.returncode == 1
    (reason,) = json.loads(done.stdout)["reasons"]
    assert reason.startswith("two: the ledger lacks the payment")
    done = command("ledger", "check", "d.csv.ledger", "--head", head)
    assert done.returncode == 1
    assert "does not continue the ledger whose head was" in done.stdout
    command("release", "d.csv", *CHEAP, "-o", "three")  # another payment in the place of the lost one: entry 2 again
    done = command("ledger", "check", "d.csv.ledger", "--certificate", "two", "--certificate", "three")
    assert done.returncode == 1
    assert "two: the ledger lacks" in done.stdout
    assert "three" not in done.stdout


def test_certificates_of_others(command, place):
    command("ledger", "init", "d.csv.ledger", "--epsilon", 1)
    command("ledger", "init", "other", "--epsilon", 1)
    command("release", "d.csv", *CHEAP, "-o", "unpaid", "--no-ledger")
    command("release", "d.csv", *CHEAP, "-o", "paid")
    assert "no ledger paid" in command("ledger", "check", "d.csv.ledger", "--certificate", "unpaid").stdout
    assert "another ledger" in command("ledger", "check", "other", "--certificate", "paid").stdout
    text = (place / "paid" / "certificate.json").read_text()
    (place / "paid" / "certificate.json").write_text(text.replace('"entry": 1', '"entry": 2'))
    assert "was edited" in command("ledger", "check", "d.csv.ledger", "--certificate", "paid").stdout
    assert command("ledger", "check", "d.csv.ledger", "--certificate", "nothing").returncode == 2


def test_a_damaged_ledger(command, place):
    command("ledger", "init", "d.csv.ledger", "--epsilon", 0.5)
    command("release", "d.csv", *CHEAP, "-o", "one")
    connection = sqlite3.connect("d.csv.ledger")
    with connection:
        connection.execute("UPDATE events SET content = replace(content, '\"0.5\"', '\"0.1\"') WHERE number = 1")
    connection.close()
    done = command("ledger", "check", "d.csv.ledger")
    assert done.returncode == 1
    assert "NOT intact" in done.stdout
    assert "event 1: its hash does not fit" in done.stdout
    assert json.loads(command("ledger", "check", "d.csv.ledger", "--json").stdout)["valid"] is False
    done = command("release", "d.csv", *CHEAP, "-o", "two")
    assert (done.returncode, (place / "two").exists()) == (4, False)
    assert command("ledger", "check", "nothing").returncode == 4


def test_a_ledger_beside_a_link_is_warned_of(command, place):
    done = command("ledger", "init", "link.csv.ledger", "--epsilon", 1)
    assert done.returncode == 0
    assert f"beside {(place / 'd.csv').resolve()}" in done.stderr
    assert command("ledger", "init", "d.csv.ledger", "--epsilon", 1).stderr == ""
