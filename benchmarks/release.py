"""What does a release cost beside the bare GROUP BY that it cannot do without?

12 million rows with 30,000 distinct values in one Parquet column: count, release 100,000 records, certify and save.
Target: at most 1.5 times a bare DuckDB GROUP BY of that column plus 1 second, and less than 1 GiB of extra memory.

    python -m benchmarks.release
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROWS, DISTINCT, RECORDS = 12_000_000, 30_000, 100_000

PEAK = """
took = time.perf_counter() - start
status = open("/proc/self/status").read().split()
print(took, int(status[status.index("VmHWM:") + 1]) / 2**20)
"""
RELEASE = """
import time
import privurn
start = time.perf_counter()
domain = {{"x": privurn.Grid(0, 999_999, 1)}}
out = privurn.release({file!r}, privurn.Urn(records={records}), domain=domain, epsilon=1, delta=1e-6)
out.save({folder!r}, file_format="parquet")
{peak}"""
BARE = """
import time, duckdb
start = time.perf_counter()
duckdb.sql("SELECT x, count(*) FROM read_parquet({file!r}) GROUP BY x").to_arrow_table()
{peak}"""


def make(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    values = np.sort(rng.choice(1_000_000, DISTINCT, replace=False))
    rows = values[np.minimum(rng.zipf(1.2, ROWS), DISTINCT) - 1].astype(np.float64)
    rows[:DISTINCT] = values
    pq.write_table(pa.table({"x": rng.permutation(rows)}), path)


def measured(code: str) -> tuple[float, float]:
    """Seconds of the work and GiB at the peak, in a process of its own."""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return float(out[-2]), float(out[-1])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.parquet"
        make(file)
        runs = []
        for i in range(4):
            bare = measured(BARE.format(file=str(file), peak=PEAK))
            ours = measured(RELEASE.format(file=str(file), folder=f"{folder}/out{i}", records=RECORDS, peak=PEAK))
            runs.append((bare, ours))
    bare_seconds = float(np.median([bare[0] for bare, _ in runs[1:]]))  # the first run compiles and warms the disk
    seconds = float(np.median([ours[0] for _, ours in runs[1:]]))
    memory = max(ours[1] - bare[1] for bare, ours in runs)
    limit = 1.5 * bare_seconds + 1.0
    print(f"bare GROUP BY            {bare_seconds:6.2f} s")
    print(f"count + release + save   {seconds:6.2f} s   limit {limit:.2f} s   share of the limit {seconds / limit:.2f}")
    peak = max(ours[1] for _, ours in runs)
    print(f"memory at the peak       {peak:6.2f} GiB, {memory:.2f} GiB more than the bare query (limit 1 GiB)")


if __name__ == "__main__":
    main()
