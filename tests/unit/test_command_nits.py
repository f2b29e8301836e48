"""Small things that commands say and do: exit codes, mistyped files, tampered data, one record, long audits."""

import json
from fractions import Fraction

import numpy as np
import pytest

import privurn
from privurn.cli.console import rounded_up
from privurn.counts import CountTable
from privurn.domain import Categories, Grid, domain_from_json
from privurn.errors import DomainError, FormatError, ModelError
from privurn.mechanisms.exponential import ExponentialHistogram
from privurn.mechanisms.models import Normal, model_from_json
from privurn.mechanisms.pseudo_posterior import PseudoPosterior
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.mechanisms.urn_plan import explain, plan_default
from privurn.privacy.entropy import SeededEntropy
from privurn.privacy.profile import Guarantee
from privurn.releases.plan import options

PAIR = Guarantee(epsilon=1.0, delta=1e-6)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("nits") / "t.csv"
    path.write_text("x\n" + "\n".join(str(i % 7) for i in range(60)) + "\n")
    return path


def release(privurn_command, table, *words):
    folder = table.parent
    return privurn_command(
        "release",
        table,
        "--column",
        "x",
        "--grid",
        "0:6:1",
        "--epsilon",
        1,
        "--mechanism",
        "dirichlet-multinomial",
        *words,
        cwd=folder,
    )


def test_a_folder_that_is_not_there_is_bad_input_for_all(privurn_command, tmp_path):
    (tmp_path / "empty").mkdir()
    for words in (["profile"], ["report"], ["audit", "--certificate"], ["account", "compose", "--delta", "1e-6"]):
        for folder in ("nowhere", "empty"):
            done = privurn_command(*words, folder, cwd=tmp_path)
            assert done.returncode == 2, (words, folder, done.stderr)
            assert "no certificate" in done.stderr


def test_a_profile_warns_of_other_data(privurn_command, table, tmp_path):
    out = tmp_path / "out"
    assert release(privurn_command, table, "-o", out).returncode == 0
    fine = privurn_command("profile", out, "--json")
    assert "warning" not in fine.stderr
    assert json.loads(fine.stdout)["releases"][0]["data_file"] == "as certified"
    data = next(path for path in out.iterdir() if path.suffix == ".csv")
    data.write_text(data.read_text() + "3\n")
    changed = privurn_command("profile", out, "--json")
    assert changed.returncode == 0
    assert "not the one certified" in changed.stderr
    assert json.loads(changed.stdout)["releases"][0]["data_file"] == "not as certified"
    data.unlink()
    alone = privurn_command("profile", out, "--json")
    assert "warning" not in alone.stderr
    assert json.loads(alone.stdout)["releases"][0]["data_file"] == "not there"


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"kind": "gridd", "low": 0}, FormatError, ["'gridd'", "grid, bins"]),
        ({"kind": "grid", "low": 0, "hihg": 9, "step": 1}, FormatError, ["'hihg'", "low, high, step, outside, nulls"]),
        ({"a": {"kind": "bins", "edge": [0, 1]}}, FormatError, ["'edge'", "edges"]),
    ],
)
def test_mistyped_domains(given, kind, words):
    with pytest.raises(kind) as caught:
        domain_from_json(given)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mean": [0, 1]}, ["says no kind", "normal"]),
        ({"kind": "gamma"}, ["'gamma'", "normal"]),
        ({"kind": "normal", "mena": [0, 1], "deviation": [1, 2]}, ["'mena'", "mean, deviation"]),
        ({"kind": "normal", "mean": [0, 1]}, ["needs deviation"]),
        ({"kind": "normal", "mean": "wide", "deviation": [1, 2]}, ["not a number"]),
    ],
)
def test_mistyped_models(given, words):
    with pytest.raises((ModelError, FormatError)) as caught:
        model_from_json(given)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_one_record_is_not_planned_for():
    with pytest.raises(DomainError, match="nothing can hide it"):
        options(n=1, cells=5, guarantee=PAIR)
    assert options(n=2, cells=5, guarantee=PAIR)
    remarks = explain(plan_default(n=2, cells=5, guarantee=Guarantee(epsilon=1.0, delta=0.0)), guarantee=PAIR)
    assert "1 record is worth" in remarks[0]


CURVE = Normal(mean=(0, 6), deviation=(0.5, 6), points=(8, 6))


@pytest.mark.parametrize(
    "mechanism",
    [
        ExponentialHistogram(n=20, cells=4, records=6, epsilon=1.0),
        ExponentialHistogram(n=20, cells=3, records=4, epsilon=1.0, loss="l2"),
        PseudoPosterior(n=20, domain=Grid(0, 6, 2), model=CURVE, threshold=0.5, records=9, draws=2),
        SmoothedHistogram(n=20, cells=4, records=5, weight=Fraction(1, 2)),
    ],
    ids=lambda each: each.name,
)
def test_many_releases_are_single_ones_word_for_word(mechanism):
    counts = CountTable(np.array([0, 2]), np.array([13, 7]))
    one, many = SeededEntropy(7), SeededEntropy(7)
    singly = [mechanism.draw(counts, entropy=one).cells.tolist() for _ in range(5)]
    together = [each.cells.tolist() for each in mechanism.draw_many(counts, size=5, entropy=many)]
    assert singly == together
    assert len({tuple(each) for each in together}) > 1
    with pytest.raises(ModelError, match="another number of records"):
        next(mechanism.draw_many(CountTable(np.array([0]), np.array([3])), size=1, entropy=many))


def test_a_piped_audit_says_what_runs(privurn_command, table, tmp_path):
    words = ["--mechanism", "smoothed-histogram", "--records", 20, "-o", tmp_path / "out"]
    assert release(privurn_command, table, *words).returncode == 0
    done = privurn_command("audit", "--certificate", tmp_path / "out", "--samples", 200)
    assert done.returncode == 0, done.stderr
    assert "outputs on made-up neighbouring tables, about a minute or less" in done.stderr
    quiet = privurn_command("audit", "--certificate", tmp_path / "out", "--samples", 200, "--json")
    assert quiet.stderr == ""


@pytest.mark.parametrize("columns", ["\u00b2", "", "wide", "-1"])
def test_a_width_that_is_no_number_is_none(privurn_command, monkeypatch, tmp_path, columns):
    for name in ("COLUMNS", "LINES"):
        monkeypatch.setenv(name, columns)
    done = privurn_command("ledger", "init", "x.ledger", "--epsilon", 1, cwd=tmp_path)
    shown = privurn_command("ledger", "show", "x.ledger", cwd=tmp_path)
    assert (done.returncode, shown.returncode) == (0, 0), shown.stderr
    assert "epsilon: 1 of 1 left" in shown.stdout


def test_a_ledger_shows_rho_in_six_digits(privurn_command, table, tmp_path):
    words = ["--noise", "discrete-gaussian", "--publish", "counts", "--delta", "1e-6", "--ledger", tmp_path / "x.ledger"]
    assert privurn_command("ledger", "init", tmp_path / "x.ledger", "--rho", 9).returncode == 0
    made = privurn_command(
        *("release", table, "--column", "x", "--grid", "0:6:1", "--epsilon", 1, "--mechanism", "perturbed-histogram"),
        *(*words, "-o", tmp_path / "out"),
    )
    assert made.returncode == 0, made.stderr
    stated = json.loads(privurn_command("ledger", "show", tmp_path / "x.ledger", "--json").stdout)["entries"][0]["rho"]
    shown = privurn_command("ledger", "show", tmp_path / "x.ledger").stdout
    assert len(stated) > 12
    assert stated not in shown
    assert rounded_up(float(stated)) in shown


@pytest.mark.parametrize("what", [None, 3, {}])
def test_what_is_no_path_is_not_verified(what):
    with pytest.raises(FormatError, match="is no path"):
        privurn.verify(what)


def test_one_category_is_one():
    assert Categories(["a"]).describe().startswith("1 category, ")
    assert Categories(["a", "b"]).describe().startswith("2 categories, ")


def test_grids_are_spoken_of_as_they_are_written_in_python():
    with pytest.raises(DomainError) as found:
        Grid(0, 100, 7)
    assert found.value.hint == "Try Grid(0, 98, 7)"
    with pytest.raises(DomainError) as found:
        Grid(1, 0, 1)
    assert "Grid(0, 200000, 500)" in found.value.hint
