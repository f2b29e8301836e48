"""Which files are read: the ones that were named, each once, and no others."""

import gzip
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privurn
from privurn.domain import Grid, JointDomain
from privurn.errors import FormatError
from privurn.tables import count_cells, open_table

DECOYS = ["d1.csv", "qsecret.csv", "wz.csv", "ab.csv", "ac.csv", "xx.csv", "b.csv", "a.csv", "[x].csv", "\\[x].csv", "\\b.csv"]
NAMES = [
    "d[1].csv",
    "q*.csv",
    "w?.csv",
    "**.csv",
    "a{b,c}.csv",
    "[!a].csv",
    "[^a].csv",
    "[a-c].csv",
    "[*].csv",
    "[[].csv",
    "x[.csv",
    "]x.csv",
    "back\\slash.csv",
    "\\[y].csv",
    "p%20c.csv",
    "-dash.csv",
    "sp ace.csv",
    "new\nline.csv",
    "quo'te.csv",
    'double"quote.csv',
    "x.csv?foo=1.csv",
    "x.csv#part.csv",
    "$HOME.csv",
    "~x.csv",
    "a=1.csv",
    "file:x.csv",
    "s3:x.csv",
    "C:x.csv",
    "ü 数.csv",
    os.fsdecode(b"\xff.csv"),
]


def records(path):
    """What is read, as text."""
    with open_table(path) as source:
        return sorted(row[0] for row in source.connection.execute("SELECT * FROM t").fetchall())


@pytest.fixture
def crowded(tmp_path, monkeypatch):
    """A folder in which every name is a trap for another."""
    for name in DECOYS:
        (tmp_path / name).write_text("x\nsecret\n")
    for i, name in enumerate(NAMES):
        (tmp_path / name).write_text(f"x\n{i}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_file_that_exists_is_taken_literally(crowded, name):
    expected = [str(NAMES.index(name))]
    for spelling in (name, Path(name), str(crowded / name), f"./{name}"):
        assert records(spelling) == expected


@pytest.mark.parametrize("name", ["d[1].parquet", "q*.parquet", "a=1.parquet", "new\nline.pq"], ids=ascii)
def test_parquet_files_are_taken_literally(tmp_path, name):
    for other in ("d1.parquet", "qsecret.parquet"):
        pq.write_table(pa.table({"x": ["secret"]}), tmp_path / other)
    pq.write_table(pa.table({"x": ["mine"]}), tmp_path / name)
    assert records(tmp_path / name) == ["mine"]


def test_folders_that_exist_are_taken_literally(tmp_path):
    for name, value in (("f[1]", "mine"), ("f1", "secret")):
        (tmp_path / name / "in").mkdir(parents=True)
        (tmp_path / name / "x.csv").write_text(f"x\n{value}\n")
        (tmp_path / name / "in" / "y.csv").write_text(f"x\n{value}\n")
    assert records(tmp_path / "f[1]" / "x.csv") == ["mine"]
    assert records(f"{tmp_path}/f[1]/*.csv") == ["mine"]
    assert records(f"{tmp_path}/f[1]/*/y.csv") == ["mine"]
    assert records(f"{tmp_path}/f[1-9]/x.csv") == ["secret"]  # no such folder: a pattern, and it matches f1 alone


def test_what_does_not_exist_is_a_glob(crowded):
    assert records("d[1-9].csv") == ["secret"]
    assert records("qs*.csv") == ["secret"]
    with open_table("[!q]?.csv") as source:
        listed = {path.name for path in source.files}
    assert listed == {each for each in [*DECOYS, *NAMES] if len(each) == 6 and each[0] != "q"}


def test_folders_that_look_like_partitions_add_no_column(tmp_path):
    (tmp_path / "a=1").mkdir()
    (tmp_path / "a=1" / "x.csv").write_text("x\n3\n")
    pq.write_table(pa.table({"x": [3]}), tmp_path / "a=1" / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        with open_table(tmp_path / "a=1" / name) as source:
            assert list(source.types) == ["x"]
            assert source.connection.execute("SELECT * FROM t").fetchall() in ([("3",)], [(3,)])


def test_a_file_reached_twice_is_read_once(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n2\n3\n")
    (tmp_path / "b.csv").symlink_to("a.csv")
    os.link(tmp_path / "a.csv", tmp_path / "c.csv")
    (tmp_path / "d.csv").write_text("x\n4\n")
    assert records(f"{tmp_path}/*.csv") == ["1", "2", "3", "4"]
    with open_table(f"{tmp_path}/*.csv") as source:
        assert source.files == ((tmp_path / "a.csv").resolve(), (tmp_path / "d.csv").resolve())
        assert count_cells(source, JointDomain({"x": Grid(0, 9, 1)})).n == 4


def test_the_name_asked_for_says_the_format(tmp_path):
    """A link may point to a file of any name; and a reader may not look at the name it points to."""
    (tmp_path / "blob").write_text("x;y\n1;2\n")
    (tmp_path / "t.csv").symlink_to("blob")
    assert records(tmp_path / "t.csv") == ["1"]
    with gzip.open(tmp_path / "packed", "wt") as out:
        out.write("x\ty\n5\t6\n")
    (tmp_path / "t.TSV.GZ").symlink_to("packed")
    assert records(tmp_path / "t.TSV.GZ") == ["5"]
    with pytest.raises(FormatError, match="not known"):
        records(tmp_path / "blob")


def test_other_spellings_stand_for_the_real_file(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "d.csv").write_text("x\n1\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "d.csv")
    (tmp_path / "folder").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    for spelling in ("d.csv", "./in/../d.csv", "d.cs[v]", "d*.csv", "link.csv", "folder/d.csv", "folder/l*.csv"):
        with open_table(spelling) as source:
            assert source.files == ((tmp_path / "d.csv").resolve(),)


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:9/x.csv",
        "https://example.org/x*.parquet",
        "s3://bucket/x.csv",
        "S3://b/x.csv",
        "gs://b/x.csv",
        "hf://x.csv",
        "file:///etc/x.csv",
    ],
)
def test_addresses_are_refused(tmp_path, monkeypatch, address):
    """Also where folders of that name exist: `s3://` is never taken for the folder `s3:`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:" / "bucket").mkdir(parents=True)
    (tmp_path / "s3:" / "bucket" / "x.csv").write_text("x\n1\n")
    with pytest.raises(FormatError, match="is an address"):
        records(address)
    assert records("s3:/bucket/x.csv") == ["1"]


def test_nothing_is_fetched():
    with open_table(pa.table({"x": [1]})) as source:
        settings = "('autoload_known_extensions', 'autoinstall_known_extensions', 'allow_community_extensions')"
        values = source.connection.execute(f"SELECT value FROM duckdb_settings() WHERE name IN {settings}").fetchall()
        assert values == [("false",)] * 3
        loaded = source.connection.execute("SELECT extension_name FROM duckdb_extensions() WHERE loaded").fetchall()
        assert "httpfs" not in {name for (name,) in loaded}


@pytest.mark.parametrize(
    "bad", ["no\0thing.csv", "n" * 5000 + ".csv", "circle.csv", "dangling.csv", "folder.csv", "", "*.none", "fold*.csv"]
)
def test_what_is_no_file(tmp_path, monkeypatch, bad):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "circle.csv").symlink_to("circle.csv")
    (tmp_path / "dangling.csv").symlink_to("nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FormatError, match="there is no file"):
        records(bad)


def test_files_of_two_kinds(tmp_path):
    (tmp_path / "x.csv").write_text("x\n1\n")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    with pytest.raises(FormatError, match="CSV and for Parquet"):
        records(f"{tmp_path}/x.*")
    (tmp_path / "x.csv.bak").write_text("x\n1\n")
    with pytest.raises(FormatError, match="not known"):
        records(tmp_path / "x.csv.bak")


def test_links_of_ours_are_removed_and_need_a_plain_folder(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    (tmp_path / "d[1].csv").write_text("x\n1\n")
    with open_table(tmp_path / "d[1].csv"):
        assert len(list(folder.iterdir())) == 1
    assert list(folder.iterdir()) == []
    odd = tmp_path / "t*"
    odd.mkdir()
    for place in (odd, tmp_path / "nowhere"):
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        with pytest.raises(FormatError, match="temporary files"):
            records(tmp_path / "d[1].csv")
    assert list(odd.iterdir()) == []


def test_a_release_reads_the_file_that_was_named(tmp_path):
    (tmp_path / "d[1].csv").write_text("x\n" + "1\n" * 50)
    (tmp_path / "d1.csv").write_text("x\n" + "2\n" * 70)
    made = privurn.release(tmp_path / "d[1].csv", domain={"x": Grid(0, 3, 1)}, epsilon=1, delta=1e-6)
    assert made.certificate["n"] == 50
    made.save(tmp_path / "out[1]")
    assert privurn.verify(tmp_path / "out[1]").valid
