"""`privurn privatise` as a person meets it."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SECRET = "86753.09"
CLASSICAL = ["--channel", "gaussian", "--calibration", "classical"]


@pytest.fixture
def pay(tmp_path):
    rng = np.random.default_rng(1)
    rows = "\n".join(
        f"{value:.2f},{town}" for value, town in zip(rng.normal(-2, 4, 400), rng.choice(list("abc"), 400), strict=True)
    )
    (tmp_path / "pay.csv").write_text(f"pay,town\n{rows}\n")
    return tmp_path / "pay.csv"


def test_privatise_verify_and_ledger(privurn_command, pay):
    here = pay.parent
    assert privurn_command("ledger", "init", "pay.csv.ledger", "--epsilon", 3, cwd=here).returncode == 0
    words = ["privatise", "pay.csv", "--column", "pay", "--channel", "laplace", "--epsilon", 2, "--bounds", "-10:10"]
    done = privurn_command(*words, "-o", "out", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "Privatised 400 records, each by itself (local-laplace)." in done.stdout
    assert "(2, 0)-differential privacy" in done.stdout
    assert "rho = 2." in done.stdout
    assert "no ledger" not in done.stderr
    assert (here / "out" / "data.csv").read_text().count("\n") == 401
    verdict = privurn_command("verify", "out", cwd=here)
    assert verdict.returncode == 0, verdict.stdout
    assert "valid: (2, 0)-differential privacy for one record" in verdict.stdout
    refused = privurn_command(*words, "-o", "again", cwd=here)
    assert refused.returncode == 4
    assert not (here / "again").exists()
    shown = privurn_command("ledger", "show", "pay.csv.ledger", "--json", cwd=here)
    assert json.loads(shown.stdout)["entries"][0]["status"] == "released"


@pytest.mark.parametrize(
    ("words", "columns"),
    [
        (["--channel", "gaussian", "--epsilon", 2, "--delta", 1e-6, "--bounds", "-10:10"], ["pay"]),
        (["--channel", "gaussian", "--epsilon", 2, "--delta", 1e-6, "--bounds", "-10:10", "--calibration", "zcdp"], ["pay"]),
        (["--channel", "haar-wavelet", "--epsilon", 9, "--levels", 1, "--bounds", "-10:10"], ["pay_0_0", "pay_1_0", "pay_1_1"]),
        (["--channel", "discrete-laplace", "--epsilon", 2, "--bounds", "-10:10", "--keep-order"], ["pay"]),
        (
            [
                "--channel",
                "randomised-response",
                "--epsilon",
                1,
                "--categories",
                "a,b",
                "--column",
                "town",
                "--outside",
                "other",
            ],
            ["town"],
        ),
    ],
)
def test_other_channels(command, pay, words, columns):
    here = pay.parent
    named = [] if "--column" in words else ["--column", "pay"]
    done = command("privatise", pay, *words, *named, "-o", here / "out", "--format", "parquet", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["certificate"]["mechanism"]["name"] == f"local-{words[1]}"
    assert answer["certificate"]["columns"] == columns
    assert answer["certificate"]["ledger"] == {"used": False}
    assert pq.read_table(here / "out" / "data.parquet").column_names == columns
    assert json.loads(command("verify", here / "out", "--json").stdout) == {"valid": True, "reasons": []}


def test_a_changed_file_does_not_verify(command, pay):
    here = pay.parent
    command("privatise", pay, "--column", "pay", "--epsilon", 1, "--bounds", "-10:10", "-o", here / "out")
    file = here / "out" / "data.csv"
    file.write_text(file.read_text().replace("\n", "\n0\n", 1))
    verdict = command("verify", here / "out")
    assert verdict.returncode == 1
    assert "was changed" in verdict.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--column", "pay", "--epsilon", 1], 2, "--bounds LO:HI, or --categories LIST"),
        (["--column", "pay", "--epsilon", 1, "--bounds", "0-10"], 2, "Give LO:HI"),
        (["--column", "pay", "--epsilon", 1, "--bounds", "10:0"], 2, "are reversed or equal"),
        (["--column", "pay", "--epsilon", -1, "--bounds", "0:10"], 2, "epsilon must be positive"),
        (["--column", "nobody", "--epsilon", 1, "--bounds", "0:10"], 2, "no column 'nobody'"),
        (["--epsilon", 1, "--bounds", "0:10"], 2, "several columns"),
        (["--column", "town", "--epsilon", 1, "--bounds", "0:10"], 2, "holds text"),
        (["--column", "pay", "--epsilon", 1, "--bounds", "0:10", "--channel", "magic"], 2, "not known"),
        (["--column", "pay", "--epsilon", 1, "--bounds", "0:10", "--format", "xlsx"], 2, "format 'xlsx'"),
        (
            ["--column", "pay", "--epsilon", 1, "--bounds", "0:10", "--levels", 2],
            2,
            "has no --levels: that is for haar-wavelet",
        ),
        (["--column", "pay", "--epsilon", 1, "--bounds", "0:10", "--channel", "haar-wavelet"], 2, "needs --levels"),
        (["--column", "town", "--epsilon", 1, "--categories", "a,b", "--nulls", "lower"], 2, "error or cell"),
        (
            ["--column", "pay", "--epsilon", 5, "--delta", 0.1, "--bounds", "0:1", *CLASSICAL],
            3,
            "up to 1 only",
        ),
    ],
)
def test_refusals(command, pay, words, code, message):
    done = command("privatise", pay, *words, "-o", pay.parent / "out")
    assert done.returncode == code
    assert message in done.stderr
    assert not (pay.parent / "out").exists()


def test_no_record_is_ever_shown(command, tmp_path):
    (tmp_path / "p.csv").write_text(f"x\n{SECRET}\nnot a number\n\n5\n")
    words = ["privatise", tmp_path / "p.csv", "--column", "x", "--epsilon", 1, "--bounds", "0:10"]
    refused = command(*words, "-o", tmp_path / "out")  # an empty field is a missing value
    assert refused.returncode == 2
    assert "--nulls lower" in refused.stderr
    done = command(*words, "--nulls", "lower", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    shown = refused.stdout + refused.stderr + done.stdout + done.stderr
    shown += "".join(file.read_text() for file in (tmp_path / "out").iterdir())
    assert SECRET not in shown
    assert "not a number" not in shown


def test_seeded_and_empty(command, tmp_path):
    pq.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / "x.parquet")
    words = ["--epsilon", 1, "--bounds", "0:10", "-o", tmp_path / "out"]
    done = command("privatise", tmp_path / "x.parquet", *words, "--seed", 1)
    assert "NOT private" in done.stdout
    assert command("verify", tmp_path / "out").returncode == 1
    pq.write_table(pa.table({"x": pa.array([], pa.float64())}), tmp_path / "none.parquet")
    empty = command("privatise", tmp_path / "none.parquet", "--epsilon", 1, "--bounds", "0:10", "-o", tmp_path / "two")
    assert empty.returncode == 2
    assert "empty" in empty.stderr


def test_several_columns_share_epsilon(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{'ab'[i % 2]},{'fm'[i % 2]},{i}\n" for i in range(200))
    (tmp_path / "people.csv").write_text(f"town,sex,id\n{rows}")
    lists = ["--categories", "town=a,b", "--categories", "sex=f,m"]
    words = ["privatise", "people.csv", "--channel", "randomised-response", "--epsilon", 80, "--no-ledger"]
    done = command(*words, "--column", "town", "--column", "sex", *lists, "--keep-order", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "each by itself (local-randomised-responses)" in done.stdout
    assert "40 for each of 2 columns" in done.stdout
    read = (tmp_path / "out" / "data.csv").read_text().replace('"', "").split()
    assert read == ["town,sex", *(["a,f", "b,m"] * 100)]  # changed with probability below 1e-14
    assert command("verify", "out").returncode == 0
    for wrong, words_of_it in (
        (["--column", "town", "--column", "id", *lists], "do not match"),
        (["--column", "town", "--column", "sex", "--categories", "a,b"], "name before each"),
        (["--categories", "town=a,b", "--categories", "absent=f,m"], "no column 'absent'"),
    ):
        refused = command(*words, *wrong, "-o", "other")
        assert refused.returncode in (2, 3)
        assert words_of_it in refused.stderr
        assert not (tmp_path / "other").exists()
