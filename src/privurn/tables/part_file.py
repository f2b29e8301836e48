"""A part of a release, from the counts of its block: expanded, put into random order, written to a file of its own.

Executors of a cluster run this, where privurn need not be installed: it is sent to them as it is. So it imports NumPy and Arrow
alone, and inside its functions. All of it is public: the counts were drawn before, and the order is drawn without them.
"""

from collections.abc import Callable
from typing import Any


def key_stream(key: bytes) -> Callable[[int], Any]:
    """Words of 64 bits from a key (SHAKE-256), the same whenever they are asked for: a task that runs twice does the same."""
    import hashlib

    import numpy as np

    asked = 0

    def words(size: int) -> Any:
        nonlocal asked
        asked += 1
        return np.frombuffer(hashlib.shake_256(key + asked.to_bytes(8, "big")).digest(8 * size), np.uint64)

    return words


def arrangement(size: int, words: Callable[[int], Any]) -> Any:
    """Places 0..size-1 in random order: sorted by independent words. Ties are redrawn, so all orders are equally likely."""
    import numpy as np

    while True:
        keys = words(size)
        order = np.argsort(keys)
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order


def arranged(places: Any, counts: Any, words: Callable[[int], Any]) -> Any:
    """Each place as often as it is counted, in random order."""
    import numpy as np

    return np.repeat(places, counts)[arrangement(int(counts.sum()), words)]


def write_part(rows: Any, places: Any, counts: Any, key: bytes, folder: str, suffix: str) -> tuple[str, int, str]:
    """Write the records of a block into a file with a name of its own; its name, its number of records and its SHA-256."""
    import pyarrow as pa

    return write_records(rows.take(pa.array(arranged(places, counts, key_stream(key)))), folder, suffix)


def write_records(table: Any, folder: str, suffix: str) -> tuple[str, int, str]:
    """The same for records that are there."""
    import hashlib
    import os
    from uuid import uuid4

    import pyarrow.csv
    import pyarrow.parquet

    name = f"{uuid4().hex}.{suffix}"
    path = os.path.join(folder, name)
    if suffix == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.csv.write_csv(table, path)
    with open(path, "rb") as handle:
        os.fsync(handle.fileno())
        return name, table.num_rows, hashlib.file_digest(handle, "sha256").hexdigest()
