"""The exponential mechanism and the pseudo-posterior through the main path."""

import numpy as np
import pytest

import privurn
from privurn.errors import CalibrationError, DomainError, ModelError
from privurn.mechanisms.models import Beta, Normal

SHARES = np.random.default_rng(2).beta(0.5, 3, size=1500)
UNIT = privurn.Grid(0, 1, "0.02")
PURE = {"epsilon": 2.0, "delta": 0.0}


@pytest.mark.parametrize(
    ("domain", "options"),
    [
        (UNIT, {"mechanism": privurn.Exponential()}),
        (UNIT, {"mechanism": privurn.Exponential(loss="w1", records=300)}),
        (privurn.Bins([0, 0.1, 0.3, 1]), {"mechanism": privurn.Exponential(loss="w1", records=40)}),
        (UNIT, {"mechanism": privurn.Pseudo(model=Beta(points=(60, 30)))}),
        (UNIT, {"mechanism": privurn.Pseudo(model=Beta(points=(60, 30)), reference=Beta(mean=(0.1, 0.2)))}),
        (
            UNIT,
            {"mechanism": privurn.Pseudo(model=Beta(points=(60, 30)), records=100), "neighbouring": "add-remove"},
        ),
    ],
)
def test_release_save_verify(tmp_path, domain, options):
    out = privurn.release(SHARES, domain=domain, **PURE, **options).save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").valid, privurn.verify(tmp_path / "out").reasons
    assert out.certificate["achieved"]["delta"] == 0.0
    assert out.certificate["achieved"]["epsilon"] <= 2.0
    assert len(out.data) == out.certificate["records"]
    assert np.all((out.data >= 0) & (out.data <= 1))


@pytest.mark.parametrize(
    ("domain", "options", "kind"),
    [
        (UNIT, {"mechanism": privurn.Pseudo()}, ModelError),
        (UNIT, {"mechanism": privurn.Exponential(loss="l7")}, ModelError),
        (UNIT, {"mechanism": privurn.Exponential(loss="l2", records=1000)}, CalibrationError),
        (UNIT, {"mechanism": privurn.Exponential(records=10), "neighbouring": "add-remove"}, ModelError),
        (privurn.Grid(0, 1, "0.5", nulls="cell"), {"mechanism": privurn.Exponential(loss="w1")}, ModelError),
        (privurn.Grid(0, 1, "0.5", nulls="cell"), {"mechanism": privurn.Pseudo(model=Beta())}, DomainError),
        (privurn.Grid(-5, 5, 1), {"mechanism": privurn.Pseudo(model=Beta())}, (DomainError, ModelError)),
        (privurn.OpenLabels(), {"mechanism": privurn.Exponential()}, ModelError),
    ],
)
def test_impossible_requests(domain, options, kind):
    with pytest.raises(kind):
        privurn.release(SHARES, domain=domain, **PURE, **options)


def test_several_columns_are_not_one():
    two = np.column_stack([SHARES, SHARES])
    domain = {"column_0": UNIT, "column_1": UNIT}
    for options in ({"mechanism": privurn.Pseudo(model=Normal(mean=(0, 1), deviation=(0.1, 1)))},):
        with pytest.raises(DomainError, match="one column"):
            privurn.release(two, domain=domain, **PURE, **options)


def test_commands(privurn_command, tmp_path):
    (tmp_path / "t.csv").write_text("x\n" + "\n".join(f"{value:.4f}" for value in SHARES) + "\n")
    (tmp_path / "model.yaml").write_text("kind: normal\nmean: [0, 1]\ndeviation: [0.05, 1]\npoints: [50, 20]\n")
    common = ["release", "t.csv", "--column", "x", "--grid", "0:1:0.05", "--epsilon", 2, "--records", 100, "-o"]
    for i, words in enumerate(
        [
            ["--mechanism", "exponential", "--loss", "w1"],
            ["--mechanism", "pseudo-posterior", "--model", "beta"],
            ["--mechanism", "pseudo-posterior", "--model", "model.yaml"],
        ]
    ):
        done = privurn_command(*common, f"out{i}", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert privurn_command("verify", f"out{i}", cwd=tmp_path).returncode == 0
    for model in ("nonsense", "t.csv"):
        done = privurn_command(*common, "bad", "--mechanism", "pseudo-posterior", "--model", model, cwd=tmp_path)
        assert done.returncode == 2
        assert not (tmp_path / "bad").exists()
