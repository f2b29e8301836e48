"""A whole table through the command line, as a person goes: plan, release, verify, infer, records, report.

The noise is OpenDP's and has no seed: figures are compared with the truth at 6.5 deviations; nothing else depends on chance.
"""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from privurn.cli.main import app
from privurn.errors import PrivurnError

COLUMNS = [
    *("--bins", "age=18,30,45,60,90", "--categories", "sex=f,m", "--categories", "region=n,s,w"),
    *("--grid", "pay=0:90:10", "--categories", "paid=no,yes", "--nulls", "cell"),
]
SPENT = ["--mechanism", "noisy-marginals", "--epsilon", "4", "--delta", "1e-6", "--no-ledger"]


def people(n=1_500):
    rng = np.random.default_rng(1)
    age = rng.integers(18, 90, n)
    pay = np.clip((20 + 0.4 * age + rng.normal(0, 12, n)) // 10 * 10, 0, 90).astype(int)
    region = rng.choice(["n", "s", "w"], n).astype(object)
    region[rng.random(n) < 0.05] = None
    paid = np.where(rng.random(n) < 1 / (1 + np.exp(-(pay - 40) / 10)), "yes", "no")
    return pd.DataFrame({"age": age, "sex": rng.choice(["f", "m"], n), "region": region, "pay": pay, "paid": paid})


def call(folder, *words):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "200")  # no word of a table is broken
        return CliRunner().invoke(app, [str(word) for word in words])


def answer(folder, *words):
    done = call(folder, *words, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("table")
    people().to_csv(home / "people.csv", index=False)
    made = answer(home, "release", "people.csv", *COLUMNS, *SPENT, "-o", "out")
    assert made["certificate"]["synthetic"]["rows"] == 1_500
    return home


def test_a_release_verifies_and_its_records_look_like_the_table(folder):
    assert call(folder, "verify", "out").exit_code == 0
    made, given = pd.read_csv(folder / "out" / "data.csv"), pd.read_csv(folder / "people.csv")
    assert list(made.columns) == list(given.columns)  # in the table's order, not that of the options
    assert made["pay"].dropna().isin(range(0, 91, 10)).all()
    assert set(made["sex"].dropna()) <= {"f", "m", "other"}
    assert made["region"].isna().any()


def test_figures_are_near_the_truth_and_in_the_order_asked(folder):
    data = people()
    f, m = (data[data["sex"] == sex] for sex in ("f", "m"))
    truth = {
        "mean(pay | sex=f)": f["pay"].mean(),
        "mean(pay)": data["pay"].mean(),
        "P(paid=yes | sex=m) - P(paid=yes | sex=f)": (m["paid"] == "yes").mean() - (f["paid"] == "yes").mean(),
        "P(region=missing)": data["region"].isna().mean(),
        "median(pay)": data["pay"].median(),
    }
    words = [word for name in [*truth, "table(sex, paid)"] for word in ("--ask", name)]
    found = answer(folder, "infer", "out", *words, "--sample", "--seed", 1)["variables"]
    assert [each["name"] for each in found[: len(truth)]] == list(truth)
    for each, wanted in zip(found[:4], truth.values(), strict=False):
        assert abs(each["mean"] - wanted) < 6.5 * each["deviation"], each
    assert found[4]["mean"] in range(0, 91, 10)
    shares = {each["name"]: each["mean"] for each in found[len(truth) :]}
    assert len(shares) == 9  # of each column, missing values have a cell
    assert abs(shares["P(sex=f, paid=yes)"] - (f["paid"] == "yes").sum() / len(data)) < 0.1
    shown = call(folder, "infer", "out", "--ask", "mean(pay)", "--plot", "intervals=pay.svg")
    assert shown.exit_code == 0, (shown.output, shown.exception)
    assert "unbiased (+- its error)" in shown.output
    assert (folder / "pay.svg").read_text().lstrip().startswith("<?xml")


def test_regressions_are_typed_as_formulas(folder):
    found = answer(folder, "infer", "out", "--model", "logistic: paid=yes ~ pay + sex=m")["variables"]
    assert [each["name"] for each in found] == ["intercept", "pay", "sex=m"]
    assert abs(found[1]["mean"] - 0.1) < 6.5 * found[1]["deviation"]
    refused = call(folder, "infer", "out", "--model", "paid ~ pay")
    assert isinstance(refused.exception, PrivurnError)
    assert "not understood" in str(refused.exception)


def test_records_and_copies_go_into_a_new_folder(folder):
    found = answer(folder, "infer", "out", "--ask", "mean(pay)", "--synthetic", 200, "--seed", 3, "-o", "more")
    assert found["files"]["records"] == "more"
    stated = json.loads((folder / "more" / "synthetic.json").read_text())
    assert (stated["made_from"], stated["rows"], stated["copies"], stated["seed"]) == ("noisy-marginals", 200, 1, 3)
    assert list(pd.read_csv(folder / "more" / "data.csv").columns) == list(people().columns)
    answer(folder, "infer", "out", "--ask", "mean(pay)", "--copies", 2, "--seed", 3, "-o", "copies")
    copies = pd.read_csv(folder / "copies" / "data.csv")
    assert copies["copy"].value_counts().tolist() == [1_500, 1_500]


def test_the_report_shows_pairs_and_what_fits_worst(folder):
    done = call(folder, "report", "out")
    assert done.exit_code == 0, (done.output, done.exception)
    page = (folder / "out" / "report.html").read_text()
    for words in ("Pairs of columns", "age and sex", "What fits worst", "deviations above 1", "mean(pay)", "Column region"):
        assert words in page
    assert "nan" not in "".join(re.findall(r' d="([^"]*)"', page))
    assert page.count("<figure>") >= 12  # all ten pairs, and the two of the guarantee
    done = call(folder, "report", "out", "--data", "people.csv")
    assert done.exit_code == 0, (done.output, done.exception)
    confidential = (folder / "CONFIDENTIAL-report.html").read_text()
    assert "a resample of the data" in confidential
    assert "Pairs of columns that are furthest apart" in confidential
    assert call(folder, "verify", "out").exit_code == 0  # a page in the folder changes nothing
