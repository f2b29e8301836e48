"""Every kind of table gives the same counts, and whatever a record holds, nothing is raised on it."""

import math
import signal
from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privurn.domain import Bins, Categories, Grid, JointDomain
from privurn.errors import DomainError, FormatError
from privurn.tables import count_cells, count_labels, decode, open_table, to_kind

VALUES = [0.0, 1.2, 1.3, 9.9, 11.0, -5.0, math.nan, math.inf, -math.inf, 1e300]
SECRET = "424242"


def written(tmp_path: Path, name: str, table: pa.Table) -> str:
    path = tmp_path / name
    if name.endswith(".parquet"):
        pq.write_table(table, path)
    else:
        table.to_pandas().to_csv(path, index=False, na_rep="nan")
    return str(path)


MAKERS = {
    "pandas": lambda x, tmp: pd.DataFrame({"x": x}),
    "pandas series": lambda x, tmp: pd.Series(x, name="x"),
    "pandas objects": lambda x, tmp: pd.DataFrame({"x": pd.Series(x, dtype=object)}),
    "polars": lambda x, tmp: pl.DataFrame({"x": x}),
    "polars lazy": lambda x, tmp: pl.DataFrame({"x": x}).lazy(),
    "arrow": lambda x, tmp: pa.table({"x": x}),
    "record batch": lambda x, tmp: pa.RecordBatch.from_pydict({"x": x}),
    "duckdb": lambda x, tmp: duckdb.from_arrow(pa.table({"x": x})),
    "structured numpy": lambda x, tmp: np.array([(value,) for value in x], dtype=[("x", float)]),
    "parquet": lambda x, tmp: written(tmp, "t.parquet", pa.table({"x": x})),
    "csv": lambda x, tmp: written(tmp, "t.csv", pa.table({"x": x})),
}


@pytest.fixture(params=MAKERS)
def make(request, tmp_path):
    return lambda values: MAKERS[request.param](values, tmp_path)


def counted(data, domain):
    with open_table(data) as source:
        table = count_cells(source, domain)
    return dict(zip(table.values.tolist(), table.counts.tolist(), strict=True))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"outside": "null"}, {0: 2, 1: 1, 4: 2, 5: 5}),
        ({"outside": "other", "nulls": "cell"}, {0: 2, 1: 1, 4: 2, 5: 4, 6: 1}),
        ({"nulls": "cell"}, {0: 4, 1: 1, 4: 4, 5: 1}),
    ],
)
def test_every_table_gives_the_same_counts(make, policy, expected):
    assert counted(make(VALUES), JointDomain({"x": Grid(0, 10, 2.5, **policy)})) == expected


def test_numpy_columns_are_named():
    assert counted(np.array(VALUES), JointDomain({"value": Grid(0, 10, 2.5, nulls="cell")})) == {0: 4, 1: 1, 4: 4, 5: 1}
    two = np.array([[0, 1], [1, 1], [1, 0]])
    assert counted(two, JointDomain({"column_0": Grid(0, 1, 1), "column_1": Grid(0, 1, 1)})) == {1: 1, 2: 1, 3: 1}


def test_grid_points_are_rounded_to_the_nearest():
    x = [0.0, 0.04, 0.06, 0.14, 0.16, 0.96, 1.0]
    assert counted(pd.DataFrame({"x": x}), JointDomain({"x": Grid(0, 1, 0.1)})) == {0: 2, 1: 2, 2: 1, 10: 2}


def test_bins_are_half_open_and_the_last_closed():
    x = [-1.0, 0.0, 17.9, 18.0, 64.0, 65.0, 120.0, 121.0]
    assert counted(pl.DataFrame({"x": x}), JointDomain({"x": Bins([0, 18, 65, 120])})) == {0: 3, 1: 2, 2: 3}
    assert counted(pl.DataFrame({"x": x}), JointDomain({"x": Bins([0, 18, 65, 120], outside="other")})) == {
        0: 2,
        1: 2,
        2: 2,
        3: 2,
    }


def test_categories_compare_text_numbers_and_booleans():
    labels = ["a", "b", "zz", "a"]
    domain = JointDomain({"x": Categories(["a", "b"], outside="other")})
    for frame in (pd.DataFrame({"x": labels}), pl.DataFrame({"x": labels}), pd.DataFrame({"x": pd.Categorical(labels)})):
        assert counted(frame, domain) == {0: 2, 1: 1, 2: 1}
    for frame in (pl.DataFrame({"x": [1.0, 2.0, 7.0]}), pl.DataFrame({"x": [1, 2, 7]})):
        assert counted(frame, JointDomain({"x": Categories([1, 2], outside="other")})) == {0: 1, 1: 1, 2: 1}
        assert counted(frame, JointDomain({"x": Categories(["1", "2"], outside="null")})) == {0: 1, 1: 1, 2: 1}
    assert counted(
        pl.DataFrame({"x": [True, False, True]}), JointDomain({"x": Categories([True, False], outside="other")})
    ) == {0: 2, 1: 1}


def test_joint_cells_and_back():
    frame = pl.DataFrame({"age": [3, 40, 40, 90], "sex": ["f", "m", "m", None]})
    domain = JointDomain({"age": Bins([0, 18, 65, 120]), "sex": Categories(["f", "m"], outside="null", nulls="cell")})
    cells = counted(frame, domain)
    assert cells == {0: 1, 1 + 3 * 1: 2, 2 + 3 * 2: 1}
    back = decode(np.array(sorted(cells)), domain).to_pylist()
    assert back == [{"age": 9.0, "sex": "f"}, {"age": 41.5, "sex": "m"}, {"age": 92.5, "sex": None}]


def test_decoded_values_keep_their_type():
    whole = decode(np.array([0, 2]), JointDomain({"x": Grid(0, 10, 5)}))
    assert whole["x"].to_pylist() == [0, 10]
    tenths = decode(np.arange(11), JointDomain({"x": Grid(0, 1, 0.1)}))
    assert tenths["x"].to_pylist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    other = decode(np.array([0, 1]), JointDomain({"x": Categories(["a"], outside="other")}))
    assert other["x"].to_pylist() == ["a", "other"]
    numbers = decode(np.array([0, 1]), JointDomain({"x": Categories([7, 8], outside="null", nulls="cell")}))
    assert numbers["x"].to_pylist() == [7, 8]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "numpy", "duckdb"])
def test_frames_come_back_as_they_came(kind):
    table = pa.table({"x": [1, 2, 3]})
    out = to_kind(table, kind)
    home = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "arrow": pa.Table,
        "numpy": np.ndarray,
        "duckdb": duckdb.DuckDBPyRelation,
    }
    assert isinstance(out, home[kind])
    assert len(out) == 3


def test_pandas_keeps_dates_and_whole_numbers_where_some_are_missing():
    whole, days = pa.array([1, None, 2**62 + 1]), pa.array([None, date(2024, 2, 29), date(1600, 1, 1)])
    found = to_kind(pa.table({"all": [1, 2, 3], "some": whole, "share": [0.5, None, 1.0], "day": days}), "pandas")
    assert [str(found[name].dtype) for name in ("all", "some", "share")] == ["int64", "Int64", "float64"]
    assert found["some"].tolist()[::2] == [1, 2**62 + 1]  # no float in between
    assert found["some"].isna().tolist() == [False, True, False]
    assert found["day"].dtype.kind == "M"
    assert [each.date() for each in found["day"][1:]] == [date(2024, 2, 29), date(1600, 1, 1)]
    assert to_kind(pa.table({"x": pa.array([], pa.int64())}), "pandas")["x"].dtype == np.int64


def test_nulls_are_a_cell_or_an_error(tmp_path):
    frames = [
        pl.DataFrame({"x": [1.0, None]}),
        pd.DataFrame({"x": pd.array([1, None], dtype="Int64")}),
        pa.table({"x": [1, None]}),
    ]
    (tmp_path / "n.csv").write_text("x,y\n1,a\n,b\n")
    for frame in [*frames, str(tmp_path / "n.csv")]:
        with pytest.raises(DomainError, match="missing values in 'x'"):
            counted(frame, JointDomain({"x": Grid(0, 1, 1)}))
        assert counted(frame, JointDomain({"x": Grid(0, 1, 1, nulls="cell")})) == {1: 1, 2: 1}


def test_unreadable_text_among_numbers_follows_the_policy(tmp_path):
    (tmp_path / "t.csv").write_text(f"x\n1\nabc{SECRET}\n2\n1e999\n")
    with pytest.raises(DomainError, match="values in 'x' that are outside the domain, or no numbers") as caught:
        counted(str(tmp_path / "t.csv"), JointDomain({"x": Grid(0, 2, 1)}))
    assert SECRET not in str(caught.value)
    assert counted(str(tmp_path / "t.csv"), JointDomain({"x": Grid(0, 2, 1, nulls="cell")})) == {1: 1, 2: 2, 3: 1}
    assert counted(str(tmp_path / "t.csv"), JointDomain({"x": Grid(0, 2, 1, outside="other")})) == {1: 1, 2: 1, 3: 2}


def test_text_where_numbers_were_declared(tmp_path):
    (tmp_path / "t.csv").write_text(f"x\nabc{SECRET}\ndef\n")
    for data in (str(tmp_path / "t.csv"), pl.DataFrame({"x": [SECRET, "a"]}), pd.DataFrame({"x": ["a", SECRET]})):
        with pytest.raises(DomainError, match="holds text") as caught:
            counted(data, JointDomain({"x": Grid(0, 2, 1)}))
        assert SECRET not in str(caught.value)


def test_globs_and_several_files(tmp_path):
    for i in range(3):
        pq.write_table(pa.table({"x": [i, i]}), tmp_path / f"part{i}.parquet")
    assert counted(str(tmp_path / "part*.parquet"), JointDomain({"x": Grid(0, 2, 1)})) == {0: 2, 1: 2, 2: 2}
    with pytest.raises(FormatError, match="no file"):
        counted(str(tmp_path / "nothing*.parquet"), JointDomain({"x": Grid(0, 2, 1)}))


def test_open_labels_count_nulls_as_a_label():
    with open_table(pl.DataFrame({"x": ["b", "a", None, "b"]})) as source:
        table = count_labels(source, "x")
    assert dict(zip(table.values.tolist(), table.counts.tolist(), strict=True)) == {"a": 1, "b": 2, None: 1}


@pytest.mark.parametrize("data", [pl.DataFrame({"x": []}, schema={"x": pl.Float64}), pl.DataFrame({"x": [1.0]})])
def test_no_one_hides_in_an_empty_table_or_alone(data):
    with pytest.raises(DomainError, match=r"empty|one record"):
        counted(data, JointDomain({"x": Grid(0, 1, 1)}))


def test_broken_files_do_not_show_what_is_in_them(tmp_path):
    (tmp_path / "latin.csv").write_bytes(f"x\n1\n{SECRET}é\n".encode("latin1"))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1" + SECRET.encode())
    (tmp_path / "t.xyz").write_text(SECRET)
    for name, words in [
        ("latin.csv", "UTF-8"),
        ("broken.parquet", "cannot be read"),
        ("t.xyz", "kind of file"),
        ("none.csv", "no file"),
    ]:
        with pytest.raises(FormatError, match=words) as caught:
            counted(str(tmp_path / name), JointDomain({"x": Grid(0, 1, 1)}))
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None


def test_strange_column_names_are_only_names(tmp_path):
    name = 'a"; DROP TABLE t; --'
    assert counted(pl.DataFrame({name: [0, 1]}), JointDomain({name: Grid(0, 1, 1)})) == {0: 1, 1: 1}


def test_a_count_table_never_prints_its_values():
    with open_table(pl.DataFrame({"x": [1, 1, 0]})) as source:
        assert repr(count_cells(source, JointDomain({"x": Grid(0, 1, 1)}))) == "CountTable(confidential)"


def test_ctrl_c_in_the_middle_of_a_query_is_ctrl_c():
    """DuckDB has words of its own for it, which would otherwise be taken for a fault or for an unreadable table."""

    def pressed(*_):
        raise KeyboardInterrupt

    def query():
        with open_table(pa.table({"x": [1.0]})) as source:
            source.connection.execute("SET threads = 1")  # else DuckDB listens only now and then
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            source.connection.execute("SELECT count(*) FROM range(1000000000000), t").fetchall()

    before = signal.signal(signal.SIGALRM, pressed)
    try:
        with pytest.raises(KeyboardInterrupt):
            query()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(RuntimeError, match="ours"), open_table(pa.table({"x": [1.0]})):
        raise RuntimeError("ours")


@pytest.mark.parametrize("kind", ["numpy", "pandas", "arrow"])
def test_floats_of_16_bits_are_read_from_every_frame_as_from_files(kind, tmp_path):
    halves = np.array([0.1, 2.5, 2.5], np.float16)
    pq.write_table(pa.table({"value": halves}), tmp_path / "x.parquet")
    made = {"numpy": halves, "pandas": pd.DataFrame({"value": halves}), "arrow": pa.table({"value": halves})}
    domain = JointDomain({"value": Bins([0, 0.1, 2.5, 3])})
    found = []
    for data in (made[kind], str(tmp_path / "x.parquet")):
        with open_table(data) as source:
            counts = count_cells(source, domain)
        found.append((counts.values.tolist(), counts.counts.tolist()))
    assert found == [([0, 2], [1, 2])] * 2  # the nearest to 0.1 is below it


def test_decimals_of_256_bits_are_read_up_to_38_digits():
    values = [Decimal("0.5"), Decimal("2.5"), None]
    domain = JointDomain({"x": Categories(["0.5"], outside="other", nulls="cell")})
    with open_table(pa.table({"x": pa.array(values, pa.decimal256(38, 10))})) as source:
        assert count_cells(source, domain).values.tolist() == [0, 1, 2]
    longer = pa.table({"x": pa.array(values, pa.decimal256(39, 10))})
    with (
        pytest.raises(FormatError, match=r"'x' has decimals of more than 38 digits\.\n  Cast it to doubles"),
        open_table(longer),
    ):
        pass
