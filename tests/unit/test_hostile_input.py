"""Files, certificates, ledgers and requests that are made to mislead are refused, or do no harm."""

import gzip
import json
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pytest

import privurn
from privurn.domain import JointDomain
from privurn.errors import DomainError, FormatError, ModelError
from privurn.privacy.certificate import Certificate
from privurn.privacy.ledger import Ledger
from privurn.tables import count_cells, open_table


def counted(data, domain):
    with open_table(data) as source:
        table = count_cells(source, JointDomain(domain))
    return dict(zip(table.values.tolist(), table.counts.tolist(), strict=True))


@pytest.mark.parametrize("last", ["'O',1", '"O",1', "#,1", "x;y;z|,1"])
def test_one_record_never_changes_how_the_others_are_read(tmp_path, last):
    rows = ["'O',1", "'P',2"] * 1000
    domain = {"name": privurn.Categories(["'O'", "'P'"], outside="other")}
    (tmp_path / "a.csv").write_text("name,v\n" + "\n".join(rows) + "\n")
    (tmp_path / "b.csv").write_text("name,v\n" + "\n".join([*rows[:-1], last]) + "\n")
    before, after = counted(str(tmp_path / "a.csv"), domain), counted(str(tmp_path / "b.csv"), domain)
    assert sum(before.values()) == sum(after.values()) == 2000
    assert sum(abs(before.get(cell, 0) - after.get(cell, 0)) for cell in range(3)) <= 2


@pytest.mark.parametrize("record", ["1,2,3", "1", '"1,2', '1,"a"b'])
def test_malformed_lines_are_refused_without_being_shown(tmp_path, record):
    (tmp_path / "a.csv").write_text("a,b\n" + "1,2\n" * 3000 + record.replace("1", "424242") + "\n")
    with pytest.raises(FormatError, match="cannot be read") as caught:
        counted(str(tmp_path / "a.csv"), {"a": privurn.Grid(0, 9, 1)})
    assert "424242" not in str(caught.value)


def test_a_file_without_a_header_does_not_show_its_first_record(tmp_path):
    (tmp_path / "a.csv").write_text("SECRET,123\nOTHER,456\n")
    with pytest.raises(DomainError, match="no column") as caught:
        counted(str(tmp_path / "a.csv"), {"a": privurn.Grid(0, 9, 1)})
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_dialects_that_the_header_shows(tmp_path, delimiter, ending):
    lines = [delimiter.join(["x", "y z"]), delimiter.join(["1", '"a,b;c"']), delimiter.join(["2", '"q ""q"""'])]
    content = ("\ufeff" + ending.join(lines) + ending).encode()
    (tmp_path / "a.csv").write_bytes(content)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(content))
    for name in ("a.csv", "a.csv.gz"):
        assert counted(str(tmp_path / name), {"x": privurn.Grid(0, 2, 1)}) == {1: 1, 2: 1}
        assert counted(str(tmp_path / name), {"y z": privurn.Categories(["a,b;c", 'q "q"'], outside="other")}) == {0: 1, 1: 1}


def test_categories_that_are_written_alike_are_one():
    with pytest.raises(DomainError, match="twice"):
        privurn.Categories([True, "true"], outside="other")
    with pytest.raises(DomainError, match="called 'other'"):
        privurn.Categories(["other", "a"], outside="other")
    assert privurn.Categories([np.int64(3), pd.Timestamp("2024-01-01").date()], outside="other").values == (3, "2024-01-01")


@pytest.mark.parametrize(("epsilon", "delta", "share"), [(3.27, 3e-7, 0.3), (1.8, 1e-5, 1 / 3), (0.7, 1e-6, 0.9)])
def test_the_two_steps_of_label_discovery_add_up(tmp_path, epsilon, delta, share):
    labels = pd.DataFrame({"x": ["a"] * 3000 + ["b"] * 3000})
    out = privurn.release(labels, privurn.Discover(share=share), domain=privurn.OpenLabels(), epsilon=epsilon, delta=delta)
    out.save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").valid, privurn.verify(tmp_path / "out").reasons


def resealed(folder, edit):
    data = json.loads((folder / "certificate.json").read_text())
    edit(data)
    (folder / "certificate.json").write_text(Certificate.seal(data).to_json())
    return privurn.verify(folder)


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d["output"].update(rows=7),
        lambda d: d.update(randomness="seeded: not private"),
        lambda d: d["privacy_unit"].update(unit="up to 1000 records of one person"),
        lambda d: d.update(assumptions=["Nobody is protected."]),
        lambda d: d.update(columns=["other"]),
        lambda d: d["domain"].update(within="uniform"),
        lambda d: d["domain"]["columns"]["value"].update(within="uniform"),
        lambda d: d.update(profile=[]),
        lambda d: d["achieved"].update(rho=0.0),
        lambda d: d["privacy_unit"].update(contributions=True),
        lambda d: d["privacy_unit"].update(contributions=10**9),
        lambda d: d.update(ledger=None),
        lambda d: d["mechanism"]["parameters"].update(alpha="1e99999999"),
        lambda d: d["domain"]["columns"]["value"].update(high="1e99999999"),
    ],
)
def test_a_resealed_certificate_must_still_tell_the_truth(tmp_path, edit):
    privurn.release(np.arange(500) % 4, domain=privurn.Grid(0, 3, 1), epsilon=1, delta=1e-5).save(tmp_path / "out")
    assert not resealed(tmp_path / "out", edit).valid


def test_certificates_made_to_break_the_reader(tmp_path):
    for text in ("[" * 100_000, '{"schema": "privurn-certificate/1", "schema": "privurn-certificate/1"}'):
        (tmp_path / "certificate.json").write_text(text)
        assert not privurn.verify(tmp_path).valid


@pytest.mark.parametrize("value", [np.float64(0.5), np.float32(0.5)])
def test_numbers_of_numpy_are_numbers(tmp_path, value):
    ledger = Ledger.create(tmp_path / "l", epsilon=1.0, delta=1e-4)
    privurn.release(np.arange(500) % 4, domain=privurn.Grid(0, 3, 1), epsilon=value, delta=np.float64(1e-5), ledger=ledger)
    assert ledger.remaining()["epsilon"] == 0.5


@pytest.mark.parametrize(
    "arguments",
    [
        {"mechanism": privurn.Urn(records=2.5)},
        {"mechanism": privurn.Urn(records=10**12)},
        {"neighbouring": "foo"},
        {"contributions": 0},
        {"contributions": 1.5},
    ],
)
def test_requests_that_are_refused_before_anything_is_paid(tmp_path, arguments):
    ledger = Ledger.create(tmp_path / "l", epsilon=1.0, delta=1e-4)
    with pytest.raises(ModelError):
        privurn.release(np.arange(500) % 4, domain=privurn.Grid(0, 3, 1), epsilon=0.5, delta=1e-5, ledger=ledger, **arguments)
    assert ledger.entries() == []


@pytest.mark.parametrize(
    "arguments", [{"rho": float("inf")}, {"epsilon": 1.0, "contributions": 0}, {"epsilon": 1.0, "neighbouring": "x"}]
)
def test_ledgers_that_make_no_sense(tmp_path, arguments):
    with pytest.raises(privurn.errors.PrivurnError):
        Ledger.create(tmp_path / "l", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_text_that_is_no_unicode_is_not_raised_raw():
    frame = pd.DataFrame({"x": pd.Series(["a", "SECRET\ud800"], dtype=object)})
    with pytest.raises(FormatError) as caught:
        counted(frame, {"x": privurn.Categories(["a"], outside="other")})
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "frame", [np.array([1 + 1j, 2]), pd.DataFrame({"x": pd.arrays.SparseArray([1.0, 2.0])})], ids=["complex", "sparse"]
)
def test_a_frame_that_cannot_be_read_is_told_what_to_convert(frame):
    with pytest.raises(FormatError) as caught:
        counted(frame, {"x": privurn.Grid(0, 9, 1)})
    assert "Convert its columns" in caught.value.hint
    assert "file" not in caught.value.hint


def test_objects_that_python_will_not_write_or_convert_are_read():
    """Whole numbers of thousands of digits lie beyond the ends, and a NaN that signals is missing like any other."""
    values = [1, 10**5000, -(10**5000), Decimal("sNaN"), Decimal("NaN")]
    grid = privurn.Grid(0, 9, 1, nulls="cell")
    for frame in (pd.DataFrame({"value": pd.Series(values, dtype=object)}), values, np.array(values, dtype=object)):
        assert counted(frame, {"value": grid}) == {0: 1, 1: 1, 9: 1, 10: 2}


def test_a_relation_that_gives_other_records_each_time_is_refused_before_payment(tmp_path):
    """Its size is asked for first, and a mechanism planned for that many records has none for others."""
    asked = []

    def keep(i):
        asked.append(i)
        return len(asked) <= 40 or i > 0

    with duckdb.connect() as connection:
        connection.create_function("keep", keep, ["BIGINT"], "BOOLEAN", side_effects=True)
        relation = connection.sql("SELECT i % 2 AS a, i % 3 AS b FROM range(40) AS r(i) WHERE keep(i)")
        ledger = Ledger.create(tmp_path / "ledger.db", epsilon=5)
        domain = privurn.TableDomain({"a": privurn.Grid(0, 1, 1), "b": privurn.Grid(0, 2, 1)})
        with pytest.raises(DomainError, match="not every record"):
            privurn.release(relation, privurn.Marginals(), domain=domain, epsilon=1, ledger=ledger)
    assert ledger.entries() == []


def test_twice_the_same_column():
    with pytest.raises(FormatError, match="same name"):
        counted(pd.DataFrame([[1, 2], [3, 4]], columns=["x", "x"]), {"x": privurn.Grid(0, 9, 1)})


def test_fractions_may_be_typed_as_certificates_write_them():
    out = privurn.release(np.arange(500) % 4, privurn.Urn(alpha="81/2"), domain=privurn.Grid(0, 3, 1), epsilon=1, delta=1e-5)
    assert out.certificate["mechanism"]["parameters"]["alpha"] == "81/2"
    for text in ("1/0", "a/b", "1/2/3"):
        with pytest.raises(DomainError):
            privurn.release(np.arange(500) % 4, privurn.Urn(alpha=text), domain=privurn.Grid(0, 3, 1), epsilon=1, delta=1e-5)
