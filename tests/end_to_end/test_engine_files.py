"""Files that either engine reads give the same records, and are refused alike."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privurn
from csv_cases import AMBIGUOUS, CASES
from privurn.domain import Categories
from privurn.errors import DomainError, FormatError
from privurn.tables import open_table, spark_files
from spark_session import asked, local_session, why_not

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")


@pytest.fixture
def planted(tmp_path):
    """Parquet files with text that must not be seen anywhere else."""
    table = pa.table(
        {"label": ["PLANTED-4711", "north", "south", "north"] * 50, "number": [0.5, 1e300, float("nan"), 3.0] * 50}
    )
    for i in range(2):
        pq.write_table(table, tmp_path / f"part-{i}.parquet")
    return tmp_path


@pytest.mark.long
def test_files_read_by_spark_give_the_release_that_duckdb_gives(planted):
    if reason := why_not():
        pytest.skip(reason)
    files, made = str(planted / "*.parquet"), {}
    [(kind, address)] = asked().items()
    for engine in (["--engine", "spark", f"--{kind}", address], []):
        folder = planted / f"out-{len(engine)}"
        domain = [
            "--column",
            "label",
            "--categories",
            "north,south",
            "--outside",
            "other",
            "--mechanism",
            "dirichlet-multinomial",
        ]
        words = ["release", files, *domain, "--epsilon", "1", "--delta", "1e-6", "--seed", "1", "-o", str(folder), *engine]
        done = subprocess.run([sys.executable, "-m", "privurn", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "PLANTED" not in done.stdout + done.stderr
        made[len(engine)] = (folder / "data.csv").read_bytes()
        assert privurn.verify(folder).reasons == ("the release was made with seeded randomness: not private",)
    assert made[0] == made[4]


def test_files_that_spark_would_pass_over_are_noticed(planted):
    (planted / "part-0.parquet").rename(planted / "_part-0.parquet")
    local_session()
    files = spark_files.SparkFiles(str(planted / "*.parquet"), **asked())
    with pytest.raises(DomainError, match="every record of the table once"):
        privurn.release(files, privurn.Urn(), domain={"label": Categories(["north"], outside="other")}, epsilon=1, delta=1e-6)


def read(data):
    """All records of a table, compared as they are compared with categories, or that it is refused."""
    try:
        with open_table(data) as source:
            wanted = ", ".join(f"{source.value(name)} AS v{i}" for i, name in enumerate(source.types))
            found = source.connection.sql(f"SELECT {wanted} FROM t").to_arrow_table().to_pylist()
            return list(source.types), source.untyped, sorted(map(repr, found)), source.size()
    except FormatError:
        return "refused"


QUICK = ("quotes", "a long line")


@pytest.mark.parametrize("name", [each if each in QUICK else pytest.param(each, marks=pytest.mark.long) for each in CASES])
def test_csv_files_are_read_alike(tmp_path, name):
    local_session()
    path = tmp_path / "x.csv"
    path.write_bytes(CASES[name])
    there = read(spark_files.SparkFiles(str(path), **asked()))
    assert there == ("refused" if name in AMBIGUOUS else read(str(path)))
    assert (there == "refused") is (name in [*AMBIGUOUS, "a short line", "a long line", "a blank line"])


@pytest.mark.long
def test_csv_files_of_one_column_are_left_to_duckdb(tmp_path):
    local_session()
    (tmp_path / "x.csv").write_bytes(b"a\n1\n\n2\n")
    assert read(str(tmp_path / "x.csv"))[3] == 3
    assert read(spark_files.SparkFiles(str(tmp_path / "x.csv"), **asked())) == "refused"
