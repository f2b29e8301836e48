"""Whatever engine counts a table, it counts the same, and refuses the same."""

import traceback
import tracemalloc

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privurn
from hostile_table import DOMAINS, REFUSED, SETS, TABLE, by_query, cells, hostile, labels, untyped
from privurn.domain import Bins, Categories, Dates, Grid, JointDomain, OpenLabels, TableDomain
from privurn.errors import DomainError, FormatError
from privurn.mechanisms.marginal_counts import MarginalLayout, count_marginals
from privurn.privacy.entropy import SeededEntropy
from privurn.releases.statistics import release_statistics
from privurn.tables import count_cells, open_table
from privurn.tables.cell_batches import cell_batches
from privurn.tables.figures import table_figures
from privurn.tables.marginals import count_sets
from privurn.tables.special_cells import SpecialCells
from spark_session import local_session, spark_frame
from statistics_in_sql import REFUSED_SUMS, STATISTICS, WHOLE, sums

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")


@pytest.fixture(scope="module")
def engines():
    """The hostile table in both engines, in a session whose time zone has gaps."""
    session = local_session()
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    table = hostile()
    return untyped(table), spark_frame(table)


@pytest.mark.parametrize("domain", DOMAINS, ids=["text and numbers", "whole numbers and times", "dates", "dates as text"])
def test_engines_agree_on_every_record_of_a_hostile_table(engines, domain):
    here, there = engines
    expected = cells(here, domain)
    assert len(expected[0]) > 15  # the records are told apart, so that an exchange of two would be seen
    assert cells(there, domain) == expected


def test_a_list_that_no_record_can_be_on_is_counted_as_others(engines):
    here, there = engines
    domain = {"small": Categories(["0.5", "north"], outside="other", nulls="cell")}
    assert cells(there, domain) == cells(here, domain) == ([2, 3], [68, 17])


@pytest.mark.long
def test_nothing_of_a_users_session_is_in_the_way_or_left_behind(engines):
    session = local_session()
    session.range(3).createOrReplaceTempView("t")
    before = {each.name for each in session.catalog.listTables()}
    here, there = engines
    domain = {"yes": Categories([True, False], outside="other", nulls="cell")}
    assert cells(there, domain) == cells(here, domain)
    assert {each.name for each in session.catalog.listTables()} == before


def test_a_failing_frame_is_refused_without_the_record_that_spark_quotes():
    local_session()
    bad = spark_frame(pa.table({"x": ["1", "PLANTED-4711"]})).selectExpr("CAST(x AS INT) AS x")
    with pytest.raises(Exception, match="PLANTED"):
        bad.toArrow()
    with pytest.raises(FormatError) as refused:
        privurn.release(bad, domain=Grid(0, 9, 1), epsilon=1)
    assert "PLANTED" not in "".join(traceback.format_exception(refused.value))


def by_streaming(data, domain):
    """Marginals as they are counted from records that pass by, and what stands for no value."""
    special = SpecialCells(domain.columns)
    with open_table(data) as source:
        found = count_marginals(cell_batches(source, domain, special=special), MarginalLayout(domain.sizes, SETS))
    return found.counts.tolist(), found.n, special.found


def test_marginals_counted_by_a_query_are_those_of_records_passing_by():
    table = untyped(hostile())
    assert by_query(table, TableDomain(TABLE)) == by_streaming(table, TableDomain(TABLE))


def test_marginals_are_the_same_in_both_engines(engines):
    here, there = engines
    expected = by_query(here, TableDomain(TABLE))
    assert by_query(there, TableDomain(TABLE)) == expected
    assert expected[2]["number", "below"] > 0 < expected[2]["label", "other"]


def test_ranges_of_fine_columns_are_the_same_in_both_engines(engines):
    fine = TABLE | {"number": Grid(0, 9, "0.05", nulls="cell"), "text": Grid(0, 9, "0.25", outside="other", nulls="cell")}
    found = []
    for each in engines:
        with open_table(each) as source:
            counts, n = count_sets(source, TableDomain(fine), SETS, ranges={0: [0, 10, 50, 120, 181], 2: [0, 1, 20, 37, 38]})
        found.append((counts.tolist(), n))
    assert found[1] == found[0]
    assert sum(each > 0 for each in found[0][0][-39:]) > 4  # values of a column are told apart, not its ranges alone


@pytest.mark.long
def test_a_custodian_is_told_the_same_of_both_engines(engines):
    found = []
    for each in engines:
        with open_table(each) as source:
            found.append(
                table_figures(source, {**TABLE, "day": Dates("2000-01-01", "2030-01-01", "year"), "small": OpenLabels()})
            )
    assert found[0] == found[1]


@pytest.mark.parametrize("why", ["missing values", *(pytest.param(why, marks=pytest.mark.long) for why in list(REFUSED)[1:])])
def test_engines_refuse_alike(engines, why):
    here, there = engines
    expected = cells(here, REFUSED[why])
    assert issubclass(expected[0], DomainError)
    assert cells(there, REFUSED[why]) == expected
    if why != "no such column":
        with pytest.raises(DomainError) as by_streams, open_table(here) as source:
            list(cell_batches(source, TableDomain(REFUSED[why])))
        for each in engines:
            with pytest.raises(DomainError) as refusal, open_table(each) as source:
                count_sets(source, TableDomain(REFUSED[why]), ((0,),))
            assert str(refusal.value) == str(by_streams.value)


@pytest.mark.long
@pytest.mark.parametrize("column", hostile().column_names)
def test_labels_are_written_alike(engines, column):
    here, there = engines
    assert labels(there, column) == labels(here, column)


RANDOM = st.fixed_dictionaries(
    {
        "text": st.text(st.characters(codec="utf-8"), max_size=4)
        | st.text("0123456789.eE+-_ \tdfxnaiNI\x00", max_size=8)
        | st.none(),
        "number": st.floats() | st.none(),
        "whole": st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 12) | st.none(),
    }
)


@pytest.mark.long
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(RANDOM, min_size=2, max_size=200), listed=st.sets(st.text(max_size=3), min_size=1, max_size=5))
def test_engines_agree_on_random_tables(records, listed):
    kinds = {"text": pa.string(), "number": pa.float64(), "whole": pa.int64()}
    table = pa.table({name: pa.array([each[name] for each in records], kind) for name, kind in kinds.items()})
    policy = {"outside": "other", "nulls": "cell"}
    keep = [each for each in sorted(listed) if each.strip() and each.isprintable() and each != "other"] or ["a"]
    here, there = untyped(table), spark_frame(table)
    for domain in (
        {"text": Grid(0, 9, "0.1", **policy), "number": Grid(-5, 5, "0.4", **policy), "whole": Bins([0, 3, 10], **policy)},
        {"text": Categories(dict.fromkeys(each.strip() for each in keep), **policy)},
    ):
        assert cells(there, domain) == cells(here, domain)


@pytest.mark.long
def test_a_comparison_counts_by_either_engine(engines):
    from privurn.reports.comparison.comparison import Runs, compare

    domain = {"yes": Categories([True, False], outside="other", nulls="cell")}
    found = [
        compare(each, domain=domain, epsilon=1, delta=1e-6, runs=Runs(5, processes=1)).to_confidential() for each in engines
    ]
    assert found[0] == found[1]


@pytest.mark.long
def test_frames_come_out_as_frames_and_every_call_takes_them(engines):
    _, there = engines
    domain = {"yes": Categories([True, False], outside="other", nulls="cell")}
    out = privurn.release(there, privurn.Urn(records=9), domain=domain, epsilon=1, delta=1e-6, entropy=SeededEntropy(1))
    assert out.data.count() == 9
    privatised = privurn.privatise(there, domain=domain, epsilon=1)
    assert privatised.data.count() == privatised.table.num_rows == there.count()
    table = privurn.release(there, privurn.NoisyCounts(publish="counts"), domain=domain, epsilon=1)
    assert table.certificate["n"] == there.count()
    counts = release_statistics(there, mechanism=STATISTICS["whole counts"], budget=WHOLE)
    assert counts.certificate["n"] == there.count()


@pytest.mark.parametrize(
    "name", ["a logistic regression", *(pytest.param(name, marks=pytest.mark.long) for name in STATISTICS if name[:3] != "a l")]
)
def test_sums_are_the_same_to_the_last_unit(engines, name):
    here, there = engines
    assert sums(there, STATISTICS[name]) == sums(here, STATISTICS[name])


@pytest.mark.long
@pytest.mark.parametrize("why", REFUSED_SUMS)
def test_sums_are_refused_alike(engines, why):
    here, there = engines
    assert sums(there, REFUSED_SUMS[why]) == sums(here, REFUSED_SUMS[why])


def peak(work):
    """Bytes that Python has at most while it works: what Spark sends arrives in its strings of bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.long
def test_the_drivers_memory_follows_distinct_values():
    def frame(rows):
        return local_session().range(rows).selectExpr("id % 50 AS x")

    def count(rows):
        with open_table(frame(rows)) as source:
            assert count_cells(source, JointDomain({"x": Grid(0, 49, 1)})).n == rows

    def mark(rows):
        with open_table(frame(rows)) as source:
            assert count_sets(source, TableDomain({"x": Grid(0, 49, 1)}), ((0,),))[1] == rows

    fetched = peak(lambda: frame(2_000_000).toArrow())
    for work in (count, mark):
        few, many = (peak(lambda rows=rows, work=work: work(rows)) for rows in (2_000, 2_000_000))
        assert many < few + 2**20 < fetched  # the records themselves would be noticed: 16 times a megabyte
