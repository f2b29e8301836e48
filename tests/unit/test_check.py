"""The custodian sees how a table fits its domain, and is told where a column is mostly special cells; nobody else is."""

import json
import math
import warnings

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import privurn
from privurn.domain import Bins, Categories, Grid, OpenLabels, TableDomain
from privurn.errors import ConfidentialWarning, DomainError
from privurn.releases.plan import remarks

pytestmark = pytest.mark.usefixtures("few_simulated_tables")

PEOPLE = pd.DataFrame(
    {
        "hours": [40.0, 40.0, math.nan, -50.0, 99.0, 99.0, 99.0, 20.0],
        "sex": ["Male", " Female", "Male", "x", None, "Male", "Male", "Male"],
        "town": ["a", "b", "c", "a", None, "a", "a", "a"],
    }
)
DOMAIN = {"hours": Grid(0, 80, 20), "sex": Categories(["Male", "Female"])}


def test_shares_distinct_values_and_cells():
    found = privurn.check(PEOPLE, domain=DOMAIN)
    hours, sex = found.columns
    assert (found.n, found.cells) == (8, 10)
    assert [hours.missing, hours.unlisted, hours.below, hours.above] == [1 / 8, 0, 1 / 8, 3 / 8]
    assert [sex.missing, sex.unlisted, sex.below, sex.above] == [1 / 8, 1 / 8, 0, 0]
    assert [(each.distinct, each.cells) for each in found.columns] == [(4, 5), (3, 2)]
    assert found.refused == (
        "hours: missing values, declared absent",
        "sex: missing values, declared absent",
        "sex: values that match no category, declared absent",
    )
    assert found.remarks == ()
    cells = {(2, 0), (2, 1), (-1, 0), (0, -2), (4, -1), (4, 0), (1, 0)}  # of hours and sex; one combination occurs twice
    assert found.filled == len(cells)


def test_what_a_plan_says_for_as_many_records():
    found = privurn.check(PEOPLE, domain={"hours": Grid(0, 80, 20)}, epsilon=2, delta=1e-3)
    assert (found.options[0].mechanism, found.options[0].records) == ("noisy-tree", 8)
    assert {option.mechanism for option in found.options} >= {"dirichlet-multinomial", "perturbed-histogram"}
    assert privurn.check(PEOPLE, domain={"sex": Categories(["Male"])}).options[0].mechanism == "perturbed-histogram"
    wide = pd.DataFrame({str(i): [0, 1] for i in range(30)})
    columns = {name: Grid(0, 1, 1) for name in wide}
    many = privurn.check(wide, domain=columns)
    assert (many.cells, many.filled) == (2**30, 2)
    assert [each.mechanism for each in many.options] == ["noisy-marginals"]
    assert (many.side_by_side, found.side_by_side) == (2 * 30, None)
    assert many.to_confidential()["plan_remarks"] == list(many.plan_remarks)
    assert many.plan_remarks == remarks(n=2, cells=60, guarantee=many.guarantee, domain=TableDomain(columns))
    assert many.plan_remarks


def test_open_labels_and_every_kind_of_table(tmp_path):
    found = privurn.check(PEOPLE, domain={"town": OpenLabels()}, delta=1e-3)
    assert (found.columns[0].distinct, found.columns[0].missing, found.cells, found.filled) == (3, 1 / 8, None, 4)
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    relation = duckdb.from_arrow(pa.Table.from_pandas(PEOPLE))
    expected = privurn.check(PEOPLE, domain=DOMAIN)
    for data in (tmp_path / "people.csv", relation):
        assert privurn.check(data, domain=DOMAIN) == expected


def test_it_says_what_release_says():
    """What it calls refused is refused, and the rest is not."""
    for domain in (
        {"hours": Grid(0, 80, 20)},
        {"hours": Grid(0, 80, 20, nulls="cell")},
        {"hours": Bins([0, 100], outside="null")},
        {"hours": Grid(0, 80, 20, outside="error", nulls="cell")},
        {"sex": Categories(["Male", "Female"], nulls="cell")},
        {"sex": Categories(["Male"], outside="other", nulls="cell")},
        {"sex": Categories(["Male", "Female", "x"])},
    ):
        refused = privurn.check(PEOPLE, domain=domain).refused
        try:
            privurn.release(PEOPLE, privurn.NoisyCounts(), domain=domain, epsilon=1)
        except DomainError:
            assert refused
        else:
            assert not refused


def test_it_is_marked_and_prints_nothing_of_the_data():
    found = privurn.check(PEOPLE, domain=DOMAIN)
    assert repr(found) == "Check(confidential)"
    plain = json.loads(json.dumps(found.to_confidential()))
    assert plain["confidential"] is True
    assert plain["columns"][0]["above"] == 3 / 8


MOSTLY = [
    ([math.nan] * 6 + [1.0] * 4, Grid(0, 5, 1, nulls="cell"), "have no value in 'x'"),
    ([99.0] * 6 + [1.0] * 4, Grid(0, 5, 1), "lie above the highest value of 'x'"),
    ([-9.0] * 6 + [1.0] * 4, Bins([0, 5, 9]), "lie below the lowest value of 'x'"),
    (["Male"] * 6 + ["m"] * 4, Categories(["m", "f"], outside="other"), "hold something in 'x' that its domain does not list"),
    (["Male"] * 6 + ["m"] * 4, Categories(["m", "f"], outside="null"), "have no value in 'x', or one that counts as missing"),
]


@pytest.mark.parametrize("recipe", [privurn.NoisyCounts(), privurn.Marginals(records=5)], ids=lambda each: each.alias)
@pytest.mark.parametrize(("values", "domain", "words"), MOSTLY, ids=[words for *_, words in MOSTLY])
def test_more_than_half_in_one_special_cell_is_told_to_the_custodian(values, domain, words, recipe):
    frame = pd.DataFrame({"x": values, "y": [0, 1] * 5})
    columns = {"x": domain, "y": Grid(0, 1, 1)}
    with pytest.warns(ConfidentialWarning, match=words) as told:
        made = privurn.release(frame, recipe, domain=columns, epsilon=1, delta=0.0)
    assert len(told) == 1
    assert words not in json.dumps(dict(made.certificate.data))
    assert not any(words in remark for remark in made.remarks)


def test_half_is_not_more_than_half():
    values = [math.nan] * 5 + [99.0] * 5
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        privurn.release(np.array(values), privurn.NoisyCounts(), domain=Grid(0, 5, 1, nulls="cell"), epsilon=1)
    assert not [each for each in told if issubclass(each.category, ConfidentialWarning)]


def test_nothing_is_paid_where_the_warning_is_an_error(tmp_path):
    ledger = privurn.Ledger.create(tmp_path / "l", epsilon=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConfidentialWarning):
            privurn.release(np.full(9, 99.0), domain=Grid(0, 5, 1), epsilon=1, ledger=ledger)
    assert ledger.entries() == []


def test_the_commands(privurn_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("sex,hours\n" + " Male,99\n" * 6 + "Female,40\n" * 4)
    asked = ["people.csv", "--column", "sex", "--categories"]
    done = privurn_command("check", *asked, "male,female")
    assert done.returncode == 0, done.stderr
    assert "CONFIDENTIAL" in done.stdout
    assert "confidential" in done.stderr
    assert "100.0%" in done.stdout
    assert "A release would be refused for sex: values that match no category" in done.stdout
    refused = privurn_command("release", *asked, "male,female", "--epsilon", 1, "-o", "out")
    assert refused.returncode == 2
    assert "--ignore-case" in refused.stderr
    assert "--outside other" in refused.stderr
    assert "Male" not in refused.stderr
    assert privurn_command("release", *asked, "male,female", "--ignore-case", "--epsilon", 1, "-o", "out").returncode == 0
    data = json.loads(privurn_command("check", *asked, "male,female", "--ignore-case", "--json").stdout)
    assert (data["confidential"], data["refused"], data["columns"][0]["unlisted"]) == (True, [], 0.0)
    done = privurn_command(
        "release", "people.csv", "--grid", "hours=0:80:10", "--mechanism", "perturbed-histogram", "--epsilon", 1, "-o", "hours"
    )
    assert "lie above the highest value of 'hours'" in done.stderr
    assert "above the highest" not in done.stdout + (tmp_path / "hours" / "certificate.json").read_text()
    assert "onfidential" in privurn_command("check", "--help").stdout


def test_an_empty_table_is_refused_in_words(tmp_path):
    file = tmp_path / "empty.csv"
    file.write_text("pay\n")
    with pytest.raises(DomainError, match="empty"):
        privurn.check(file, domain={"pay": privurn.Grid(0, 9, 1)})


def test_a_column_of_which_nothing_can_be_read_is_told_as_a_release_would_refuse_it():
    """With a cell for everything, too: that is most likely the wrong column."""
    domain = {"value": privurn.Grid(0, 9, 1, outside="other", nulls="cell")}
    assert privurn.check(["x", "y", None], domain=domain).refused != ()
    with pytest.raises(DomainError, match="holds text"):
        privurn.release(["x", "y", None], domain=domain, epsilon=1, ledger=False)
    assert privurn.check(["x", "1", None], domain=domain).refused == ()
    assert privurn.check([None, None], domain=domain).refused == ()
