"""`privurn infer --model NAME`: every model that Python has for a release, and in words which there are."""

import json

import pytest

QUICK = ["--draws", "30", "--warm-up", "10", "--chains", "2", "--seed", "1"]
PAID = ["--epsilon", "1", "--seed", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch, command):
    """Records of an urn, whole noisy counts, records of the exponential mechanism, sums and a whole table."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{k % 10},{'fm'[k % 2]},{'ab'[k % 3 // 2]}" for k in range(120)]
    (tmp_path / "people.csv").write_text("x,sex,kind\n" + "\n".join(rows) + "\n")
    grid = ["--column", "x", "--grid", "0:9:1"]

    def made(*words):
        done = command(*words, *PAID)
        assert done.returncode == 0, done.stderr

    made("release", "people.csv", *grid, "--mechanism", "dirichlet-multinomial", "--delta", "1e-3", "-o", "urn")
    noisy = ["--mechanism", "perturbed-histogram", "--publish", "counts"]
    made("release", "people.csv", "--column", "x", "--bins", "0,2,4,6,8,10", *noisy, "-o", "noisy")
    made("release", "people.csv", *grid, "--mechanism", "exponential", "--delta", "1e-3", "-o", "drawn")
    made("statistics", "people.csv", "--model", "normal", "--y", "x", "--bounds", "0:9", "-o", "sums")
    table = ["--grid", "x=0:9:1", "--categories", "sex=f,m", "--categories", "kind=a,b"]
    made("release", "people.csv", *table, "--mechanism", "noisy-marginals", "--delta", "1e-3", "-o", "table")
    return tmp_path


def test_models_by_name(folder, command):
    for release in ("urn", "noisy"):
        done = command("infer", release, "--model", "tree", "--ask", "mean", "--json", *QUICK)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["variables"][0]["name"] == "mean"
    headed = command("infer", "noisy", "--model", "mixture", *QUICK).stdout
    assert "behind the perturbed-histogram mechanism" in " ".join(headed.split())
    refused = {
        ("urn", "regression"): ["not for counts of cells, which were published", "--model counts or tree; or leave it out"],
        ("noisy", "sums"): ["--model counts or tree or mixture; or leave it out"],
        ("sums", "counts"): ["not for noisy sums, which were published", "--model normal; or leave it out"],
        ("table", "mixture"): ["not for noisy marginals, which were published", "--model 'linear: FORMULA' or 'logistic"],
        ("table", "linear"): ["the regression 'linear' is not understood"],
    }
    for (release, model), said in refused.items():
        done = command("infer", release, "--model", model)
        assert done.returncode == 2
        assert all(words in done.stderr for words in said), done.stderr
    assert command("infer", "drawn", "--model", "regression").stderr == command("infer", "drawn").stderr


def test_records_of_sums_go_into_a_folder_and_the_users_words_stay(folder, command):
    done = command("infer", "sums", *QUICK, "--synthetic", "20", "-o", "new")
    assert done.returncode == 0, done.stderr
    assert len((folder / "new" / "data.csv").read_text().splitlines()) == 21
    assert json.loads((folder / "new" / "synthetic.json").read_text())["made_from"] == "noisy-normal-statistics"
    assert "there are no draws of 'P(x=3)'" in command("infer", "sums", "--ask", "P(x=3)").stderr
