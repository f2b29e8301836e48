"""Time and memory of a release of a whole table from Parquet: 20 columns, at most 200 cells in all.

    python -m benchmarks.table_speed --rows 1e6

Everything is in it: reading and counting, calibration, noise, the fit, and as many synthetic records as confidential ones,
written into a folder. The file is made first, and not counted.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import privurn

SIZES = (2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 20, 25)
"""Categories have a cell for missing values as well: 200 cells in all."""
AT_ONCE = 1_000_000


def domain() -> dict[str, privurn.Grid | privurn.Categories]:
    """Grids and categories by turns."""
    return {
        f"c{j}": privurn.Grid(0, size - 1, 1) if j % 2 else privurn.Categories([f"v{i}" for i in range(size)], outside="null")
        for j, size in enumerate(SIZES)
    }


def write_parquet(path: Path, rows: int) -> None:
    """Eight classes, in each of which columns are independent."""
    rng = np.random.default_rng(0)
    laws = [rng.dirichlet(np.full(size, 0.8), 8) for size in SIZES]
    writer = None
    for first in range(0, rows, AT_ONCE):
        count = min(AT_ONCE, rows - first)
        classes, columns = rng.integers(0, 8, count), {}
        for j, law in enumerate(laws):
            ends = np.cumsum(law, axis=1)[classes]
            cells = np.minimum((rng.random(count)[:, None] > ends).sum(axis=1), SIZES[j] - 1)
            columns[f"c{j}"] = cells if j % 2 else pa.array([f"v{i}" for i in range(SIZES[j])]).take(pa.array(cells))
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--records", type=float, help="synthetic records; left out, as many as rows")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.parquet"
        write_parquet(file, int(given.rows))
        print(
            f"{int(given.rows):,} rows, {len(SIZES)} columns, {sum(each.size for each in domain().values())} cells", flush=True
        )
        marks: list[tuple[str, float, float]] = []

        def progress(stage: str) -> None:
            """Each stage, with what it took, when it has ended; steps within one are not told apart."""
            if marks and stage.startswith(marks[-1][0]):
                return
            marks.append((stage, time.perf_counter(), time.process_time()))
            if len(marks) > 1:
                (name, wall, processor), (_, wall_end, processor_end) = marks[-2:]
                print(f"{name:10s} {wall_end - wall:8.1f} s   processor {processor_end - processor:8.1f} s", flush=True)

        progress("start")
        recipe = privurn.Marginals(records=None if given.records is None else int(given.records))
        made = privurn.release(file, recipe, domain=domain(), epsilon=1, delta=1e-6, ledger=False, progress=progress)
        progress("writing")
        made.save(Path(folder) / "out", file_format="parquet")
        progress("end")
        print(f"in all     {marks[-1][1] - marks[0][1]:8.1f} s   processor {marks[-1][2] - marks[0][2]:8.1f} s")
        print(f"most memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
