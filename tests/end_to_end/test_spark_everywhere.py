"""The conformance suite on Spark as people have it: a standalone cluster, and through Spark Connect."""

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from examples.spark_demo import HERE, cluster, free_port, listens

from spark_session import LITTLE, MASTER, why_not

pytestmark = pytest.mark.long

TESTS = Path(__file__).parent
SUITE = ("test_engines.py", "test_engine_files.py", "test_engine_types.py", "test_spark_output.py")
AT_LEAST = 106
"""Tests of the suite."""


@contextmanager
def connect_server(logs):
    """Address of a Spark Connect server on two threads of this computer, which ends with the test."""
    import pyspark

    home, port = Path(pyspark.__file__).parent, free_port()
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    settings = {
        "spark.connect.grpc.binding.address": HERE,
        "spark.connect.grpc.binding.port": port,
        "spark.driver.bindAddress": HERE,
        "spark.driver.host": HERE,
        "spark.driver.extraJavaOptions": LITTLE,
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": 2,
        "spark.ui.enabled": "false",
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    command = [str(home / "bin" / "spark-submit"), "--class", server, "--master", "local[2]", *words]
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HERE, "PYSPARK_PYTHON": sys.executable}
    with logs.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            deadline = time.monotonic() + 600
            while not listens(port):
                assert process.poll() is None, logs.read_text()
                assert time.monotonic() < deadline, "the server does not start"
                time.sleep(0.2)
            yield f"sc://{HERE}:{port}"
        finally:
            process.terminate()
            process.wait(60)


def conform(address):
    """Run the suite there, in a process of its own: a session is for a whole process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *(str(TESTS / each) for each in SUITE)]
    environment = {**kept, MASTER: address, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-m", "pytest", *words]
    options = {"cwd": TESTS.parents[1], "env": environment, "capture_output": True, "text": True, "timeout": 1_800}
    done = subprocess.run(command, check=False, **options)
    last = done.stdout.strip().splitlines()[-1]
    passed = re.search(r"(\d+) passed", last)
    assert done.returncode == 0, done.stdout
    assert passed is not None, done.stdout
    assert int(passed[1]) >= AT_LEAST
    assert "skipped" not in last


def test_a_standalone_cluster_conforms(tmp_path):
    if reason := why_not():
        pytest.skip(reason)
    with cluster(tmp_path / "logs", cores=2) as address:  # one for the suite's session, one for commands that it starts
        conform(address)
    written = b"".join(each.read_bytes() for each in (tmp_path / "logs").rglob("*") if each.is_file())
    assert b"executor" in written.lower()
    assert "其他".encode() not in written  # labels of the hostile table that no domain lists
    assert b"so uth" not in written


def test_spark_connect_conforms(tmp_path):
    if reason := why_not():
        pytest.skip(reason)
    if find_spec("grpc") is None:
        pytest.skip("the client of Spark Connect is not installed: pip install 'privurn[spark]'")
    with connect_server(tmp_path / "log") as address:
        conform(address)
