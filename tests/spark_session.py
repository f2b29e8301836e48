"""One Spark session for a test process: starting it takes longer than what is tested."""

import os
import shutil
import sys
import warnings
from functools import cache
from importlib.util import find_spec

import pytest

MASTER = "PRIVURN_TEST_MASTER"
"""Environment variable: another Spark than two threads of this computer, spark://... or sc://..."""

LITTLE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For Java: what runs for seconds need not be compiled well."""


def why_not():
    """Why Spark cannot be tested here; None where it can."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'privurn[spark]'"
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        return "there is no Java, which Spark needs"
    return None


def where():
    """The Spark that is tested."""
    return os.environ.get(MASTER, "local[2]")


def asked():
    """The same for `SparkFiles`."""
    return {"remote" if where().startswith("sc://") else "master": where()}


@cache
def local_session():
    """Two threads of this computer, or a cluster on it; nothing that others can reach."""
    if reason := why_not():
        pytest.skip(reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own about the version of pandas
        from pyspark.sql import SparkSession

        from privurn.tables.spark_files import settings

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the first python3 that Spark finds
        master = where()
        if master.startswith("sc://"):
            return SparkSession.builder.remote(master).getOrCreate()
        builder = SparkSession.builder.master(master)
        for key, value in settings(master).items():
            builder = builder.config(key, value)
        few = {
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": LITTLE,
            "spark.executor.extraJavaOptions": LITTLE,
            "spark.executor.memory": "512m",
            "spark.cores.max": "2",  # of a cluster: a command that a test starts must find some, too
            "spark.sql.adaptive.enabled": "false",
        }
        for key, value in few.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


def spark_frame(table):
    """An Arrow table as a Spark frame."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return local_session().createDataFrame(table)
