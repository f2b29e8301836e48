"""How Spark is asked for, and refused where it cannot do what was asked."""

import socket
from importlib.util import find_spec

import pytest

from privurn.errors import FormatError
from privurn.tables import spark_files
from privurn.tables.spark_files import SparkFiles
from spark_session import why_not


def test_only_one_kind_of_spark_can_be_asked_for(privurn_command, tmp_path):
    words = ["release", "x.parquet", "--column", "x", "--grid", "0:9:1", "--epsilon", "1", "-o", str(tmp_path / "out")]
    for extra, said in {
        ("--engine", "spark"): "needs a master",
        ("--engine", "spark", "--master", "local[2]", "--remote", "sc://127.0.0.1"): "needs a master",
        ("--engine", "spark", "--remote", "http://x"): "begins with sc://",
        ("--engine", "polars"): "is not known",
        ("--master", "local[2]"): "are Spark's",
    }.items():
        for typed in (words, ["compare", *words[1:-2]], ["verify", str(tmp_path)]):
            done = privurn_command(*typed, *extra)
            assert done.returncode == 2
            assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "master", ["local[0]", "local[]", "local[-1]", "local[two]", "local[2", "local[2,0]", "locals", "local-cluster", "local[٢]"]
)
def test_threads_are_a_whole_number(master):
    with pytest.raises(FormatError, match=r"at least one\.\s+For example local\[2\]"):
        SparkFiles("x.parquet", master=master)


@pytest.mark.parametrize(
    "master", ["host", "", "host:", ":7077", "host:x", "host:0", "host:70770", "a:7077,b", ",", "a:7077,", "[::1", "[::1]"]
)
def test_a_master_has_a_host_and_a_port(master):
    with pytest.raises(FormatError, match=r"host and a port\.\s+For example spark://host:7077"):
        SparkFiles("x.parquet", master=f"spark://{master}")


OTHERS = "local local[4] local[*] local[4,2] local-cluster[2,1,512] spark://a:1,b:2 spark://[::1]:7 yarn k8s://https://host:443"


@pytest.mark.parametrize("master", OTHERS.split())
def test_other_masters_are_sparks_own_affair(master):
    assert SparkFiles("x.parquet", master=master).master == master


def test_a_wrong_master_on_the_command_line_is_refused_at_once(privurn_command, tmp_path):
    words = ["release", "x.parquet", "--column", "x", "--grid", "0:9:1", "--epsilon", "1", "-o", str(tmp_path / "out")]
    for master, said in {"spark://host": "For example spark://host:7077", "local[0]": "For example local[2]"}.items():
        for typed in (words, ["verify", str(tmp_path)]):
            done = privurn_command(*typed, "--engine", "spark", "--master", master)
            assert done.returncode == 2
            assert said in " ".join(done.stderr.split())


def refused(**where):
    with pytest.raises(FormatError) as refusal, SparkFiles("x.parquet", **where).session():
        pass
    return str(refusal.value)


@pytest.fixture
def no_session(monkeypatch):
    """Another test may have left one, which would be refused before any address is looked at."""
    if reason := why_not():
        pytest.skip(reason)
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", classmethod(lambda kind: None))
    if find_spec("grpc") is not None:
        monkeypatch.setattr("pyspark.sql.connect.session.SparkSession.getActiveSession", classmethod(lambda kind: None))


@pytest.fixture
def port():
    """Where nobody listens, and nobody else will."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.mark.usefixtures("no_session")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_an_address_where_nobody_listens_is_refused(port):
    assert "nobody answers" in refused(master=f"spark://127.0.0.1:{port}")
    assert "nobody answers" in refused(master=f"spark://127.0.0.1:{port},127.0.0.1:{port}")
    if find_spec("grpc") is not None:
        assert "nobody answers" in refused(remote=f"sc://127.0.0.1:{port}")
        assert "nobody answers" in refused(remote="sc://:1")


@pytest.mark.usefixtures("no_session")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_who_listens_and_is_no_connect_server_is_not_waited_for(monkeypatch):
    if find_spec("grpc") is None:
        pytest.skip("the client of Spark Connect is not installed: pip install 'privurn[spark]'")
    monkeypatch.setattr(spark_files, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert "nobody answers" in refused(remote=f"sc://127.0.0.1:{other.getsockname()[1]}")


def test_whole_tables_are_not_compared_by_spark(privurn_command):
    words = "compare x.parquet --mechanism noisy-marginals --grid a=0:9:1 --grid b=0:9:1 --epsilon 1"
    done = privurn_command(*words.split(), "--engine", "spark", "--master", "local[2]")
    assert done.returncode == 2
    assert "compared on this computer" in " ".join(done.stderr.split())


def test_spark_on_this_computer_cannot_be_reached_from_others():
    for master in ("local", "local[4]", "spark://127.0.0.1:7077", "spark://localhost:7077"):
        assert spark_files.settings(master)["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.bindAddress" not in spark_files.settings("spark://cluster.example:7077")
    assert all(spark_files.settings(each)["spark.ui.enabled"] == "false" for each in ("local", "yarn"))
