"""The main job on a Spark cluster that this script starts on this computer and stops again: one master, two workers.

`make spark-demo` runs this. Nothing is installed on the workers; they count, and the driver does the rest.
"""

import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

FOLDER = Path("spark-demo-output")
ROWS = 2_000_000
HERE = "127.0.0.1"
LIGHT = {"SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""A master and workers that live for a minute need no code that is compiled well."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(role: str, words: list[str], logs: Path) -> Iterator[None]:
    """A process of Spark's own, ended with the work."""
    import pyspark

    home = Path(pyspark.__file__).parent
    settings = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": HERE, "SPARK_DAEMON_MEMORY": "256m", **LIGHT}
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{role.lower()}.{role}", *words]
    with (logs / f"{role}-{time.monotonic_ns()}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **settings})
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def cluster(logs: Path, *, cores: int = 1) -> Iterator[str]:
    """The master's address; workers have as many cores each, and their logs and those of executors are below the folder."""
    logs.mkdir(parents=True)
    port = free_port()
    with ExitStack() as stack:
        stack.enter_context(started("Master", ["--host", HERE, "--port", str(port), "--webui-port", str(free_port())], logs))
        deadline = time.monotonic() + 120
        while not listens(port):
            if time.monotonic() > deadline:
                raise TimeoutError("Spark's master does not start; see its log")
            time.sleep(0.2)
        for i in range(2):
            words = ["--host", HERE, "--webui-port", str(free_port()), "--cores", str(cores), "--memory", f"{cores}g"]
            where = ["--work-dir", str((logs / f"worker-{i}").absolute())]
            stack.enter_context(started("Worker", [*words, *where, f"spark://{HERE}:{port}"], logs))
        yield f"spark://{HERE}:{port}"


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HERE, port)) == 0


def privurn(words: str) -> None:
    print(f"$ privurn {words}", flush=True)
    subprocess.run([sys.executable, "-m", "privurn", *shlex.split(words)], check=True, cwd=FOLDER)


def make_visits(path: Path, rows: int) -> None:
    """A table of ages and regions, simulated, in eight files."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(1)
    for i in range(8):
        age = np.minimum(rng.gamma(4.0, 10.0, rows // 8), 110.0)
        region = pa.array(["north", "south", "east", "west"]).take(pa.array(rng.integers(0, 4, rows // 8)))
        parquet.write_table(pa.table({"age": age, "region": region}), path / f"visits-{i}.parquet")


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    make_visits(FOLDER, ROWS)
    print(f"{ROWS:,} simulated records in eight Parquet files; a master and two workers on {HERE}", flush=True)
    with cluster(FOLDER / "logs") as master:
        privurn("ledger init visits.ledger --epsilon 3 --delta 1e-5")
        privurn(
            f"release 'visits-*.parquet' --engine spark --master {master} --grid age=0:110:1 "
            "--categories region=north,south,east,west --mechanism dirichlet-multinomial --records 100000 "
            "--epsilon 1 --delta 1e-6 --ledger visits.ledger -o released"
        )
    privurn("verify released")


if __name__ == "__main__":
    main()
