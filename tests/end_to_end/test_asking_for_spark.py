"""How Spark is asked for, and refused where it cannot do what was asked."""

from privurn.tables import spark_files


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
