"""What a certificate could not state, or a reader would leave out, is refused before anything is paid."""

import json
import sqlite3
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import privurn
from privurn.errors import DomainError, FormatError, LedgerError, ModelError, PrivurnError
from privurn.mechanisms.choice import choose
from privurn.mechanisms.recipe import MOST_RECORDS, Public
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic
from privurn.privacy.certificate import Certificate, file_hash
from privurn.privacy.profile import Guarantee
from privurn.releases.statistics import release_statistics
from privurn.tables import count_cells, open_table
from privurn.tables.csv_lines import BLOCK, LONGEST_LINE

GRID = privurn.Grid(0, 4, 1)


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("size", [LONGEST_LINE + 1, 33_000_000])
def test_a_line_too_long_is_refused_wherever_it_stands(tmp_path, size, quote, end):
    """The reader leaves out a last line that is longer than its buffer, and one record less would be counted."""
    long = f"1,{quote}{'z' * size}{quote}"
    for name, text in {"last": f"x,note\n0,a\n0,a\n{long}{end}", "first": f"x,note\n{long}\n0,a\n0,a{end}"}.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(text)
        ledger = privurn.Ledger.create(tmp_path / f"{name}.csv.ledger", epsilon=1)
        with pytest.raises(FormatError, match="a line is longer than"):
            privurn.release(str(path), privurn.NoisyCounts(publish="counts"), domain={"x": GRID}, epsilon=1)
        assert ledger.entries() == []


@pytest.mark.parametrize("size", [BLOCK - 3, BLOCK, 3 * BLOCK, LONGEST_LINE - 4])
@pytest.mark.parametrize("quote", ["", '"'])
def test_long_lines_within_the_limit_are_read(tmp_path, size, quote):
    path = tmp_path / "long.csv"
    path.write_text(f"x,note\n0,a\n1,{quote}{'z' * size}{quote}\n")
    with open_table(str(path)) as source:
        assert count_cells(source, privurn.JointDomain({"x": GRID})).n == 2


def test_records_of_many_lines_are_counted_whole_or_refused(tmp_path):
    """Parts of a file are read at the same time, and may begin within a quoted field: never with a wrong count."""
    path = tmp_path / "quoted.csv"
    path.write_text("x,note\n" + "0,abc\n" * 1_500_000 + '1,"' + "3,q\n" * 200_000 + '"\n' + "2,abc\n" * 1_500_000)
    found = {0: 1_500_000, 1: 1, 2: 1_500_000}
    with suppress(FormatError), open_table(str(path)) as source:
        counts = count_cells(source, privurn.JointDomain({"x": GRID}))
        found = dict(zip(counts.values.tolist(), counts.counts.tolist(), strict=True))
    assert found == {0: 1_500_000, 1: 1, 2: 1_500_000}


@pytest.mark.parametrize("values", [[2**64, 1], [-(2**70), 1], ["\ud800", "a"]])
def test_categories_that_no_certificate_can_state_are_refused(values):
    with pytest.raises(DomainError):
        privurn.Categories(values, outside="other")


@pytest.mark.parametrize("outside", ["other", "null"])
@pytest.mark.parametrize("mechanism", [privurn.Urn, privurn.Smoothed, privurn.NoisyCounts, privurn.Exponential])
def test_whole_numbers_of_64_bits_are_released_and_verified(tmp_path, mechanism, outside):
    table = pa.table({"x": pa.array([2**64 - 1, 5, 5, 7] * 10, pa.uint64())})
    delta = 1e-3 if mechanism in (privurn.Urn, privurn.Smoothed) else 0.0
    domain = privurn.Categories([2**64 - 1, 5], outside=outside)
    made = privurn.release(table, mechanism(records=20), domain=domain, epsilon=2, delta=delta)
    made.save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out") == privurn.Verification(True, ())


def test_names_that_are_no_text_are_refused_before_payment(tmp_path):
    ledger = privurn.Ledger.create(tmp_path / "budget", epsilon=1)
    with pytest.raises(PrivurnError):
        privurn.release(
            np.zeros((9, 1)), privurn.NoisyCounts(publish="counts"), domain={"\ud800": GRID}, epsilon=1, ledger=ledger
        )
    assert ledger.entries() == []


def test_bins_have_midpoints_that_differ():
    with pytest.raises(DomainError, match="midpoints"):
        privurn.Bins([f"{2**52 + k}/{2**52}" for k in range(5)])
    assert privurn.Bins([f"{2**52 + 4 * k}/{2**52}" for k in range(5)]).size == 4


def test_the_limit_of_records_holds_for_chosen_numbers_too():
    public = Public(n=60, cells=None, guarantee=Guarantee(epsilon=0.5, delta=0.2))
    chosen, _ = choose(privurn.OpenUrn(strength=Fraction(10**9)), public)
    assert chosen.records == MOST_RECORDS


@pytest.mark.parametrize("epsilon", [1e-320, 1e-310, 9e-101])
@pytest.mark.parametrize("mechanism", [None, privurn.NoisyCounts(), privurn.PosteriorDraws(), privurn.Smoothed()])
def test_epsilons_beyond_the_floats_are_refused_in_words(epsilon, mechanism):
    with pytest.raises(ModelError, match="epsilon must be at least"):
        privurn.release(np.arange(5), domain=GRID, epsilon=epsilon, delta=1e-6, mechanism=mechanism)


def test_numbers_of_draws_and_weights_are_checked_first():
    with pytest.raises(ModelError, match="draws must be at least 1"):
        privurn.release(np.arange(5), privurn.PosteriorDraws(draws=-1), domain=GRID, epsilon=1, delta=1e-6)
    with pytest.raises(ModelError, match="whole numbers"):
        privurn.release(
            np.arange(5), privurn.OpenUrn(base_weights=[1.9, 2, 3, 1, 1], records=1), domain=GRID, epsilon=1, delta=0.9
        )


@pytest.mark.parametrize("more", ["CREATE TRIGGER z AFTER INSERT ON events BEGIN SELECT 1; END", "CREATE TABLE other (x)"])
def test_a_ledger_that_holds_more_than_its_events_is_refused(tmp_path, more):
    path = tmp_path / "budget"
    privurn.Ledger.create(path, epsilon=1)
    with sqlite3.connect(path) as connection:
        connection.execute(more)
    connection.close()
    with pytest.raises(LedgerError, match="more than its events"):
        privurn.Ledger(path)


@pytest.fixture
def counts(tmp_path):
    privurn.release(np.arange(50) % 5, privurn.NoisyCounts(publish="counts"), domain=GRID, epsilon=1, ledger=False).save(
        tmp_path / "out", file_format="parquet"
    )
    return tmp_path / "out"


def resealed(folder, **changes):
    data = json.loads((folder / "certificate.json").read_text())
    data |= changes
    data["output"]["sha256"] = file_hash(folder / "data.parquet")
    (folder / "certificate.json").write_text(Certificate.seal(data).to_json())
    return privurn.verify(folder)


@pytest.mark.parametrize("count", [1e300, 1e19, -1e300])
def test_noisy_counts_beyond_64_bits_are_convicted(counts, count):
    table = pyarrow.parquet.read_table(counts / "data.parquet")
    pyarrow.parquet.write_table(
        table.set_column(1, "count", pa.array([count, *table["count"].to_pylist()[1:]], pa.float64())), counts / "data.parquet"
    )
    assert not resealed(counts).valid


def test_binary_columns_are_no_numbers(counts):
    table = pyarrow.parquet.read_table(counts / "data.parquet")
    binary = pa.array([str(each).encode() for each in table.column(0).to_pylist()], pa.binary())
    pyarrow.parquet.write_table(table.set_column(0, table.column_names[0], binary), counts / "data.parquet")
    assert not resealed(counts).valid


def test_hidden_metadata_is_convicted(counts):
    table = pyarrow.parquet.read_table(counts / "data.parquet")
    assert resealed(counts).valid
    pyarrow.parquet.write_table(table.replace_schema_metadata({"ssn": "123"}), counts / "data.parquet")
    assert not resealed(counts).valid


def test_no_delta_and_a_tiny_one_are_different_claims(tmp_path):
    privurn.privatise(np.arange(9), privurn.Gaussian(), domain=privurn.Bounds(0, 8), epsilon=1, delta=1e-6).save(
        tmp_path / "out"
    )
    data = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert data["profile"][-1]["delta"] > 0.0
    data["profile"][-1]["delta"] = 0.0
    (tmp_path / "out" / "certificate.json").write_text(Certificate.seal(data).to_json())
    assert not privurn.verify(tmp_path / "out").valid


def test_an_empty_table_has_no_statistics():
    budget = Budget(epsilon=1, neighbouring="replace-one")
    made = BernoulliStatistic.calibrated(column="x", budget=budget)
    with pytest.raises(DomainError, match="empty"):
        release_statistics(pa.table({"x": pa.array([], pa.int64())}), mechanism=made, budget=budget)


def test_the_largest_budgets_are_accounted_for():
    domain = privurn.Categories([5, 1], outside="null")
    made = privurn.release(
        np.tile([1, 5, 0], 20),
        privurn.PosteriorDraws(),
        domain=domain,
        epsilon=600,
        delta=0.999999999,
        neighbouring="add-remove",
    )
    assert made.certificate["achieved"]["delta"] <= 0.999999999
