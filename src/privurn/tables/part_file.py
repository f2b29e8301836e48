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


def arrangement(size: int, words: Callable[[int], Any], groups: Any = None) -> Any:
    """Places 0..size-1 in random order: sorted by independent words. Ties are redrawn, so all orders are equally likely.

    With `groups`, numbers of each place's group, one group after the other, and in random order within each.
    """
    import numpy as np

    while True:
        keys = words(size)
        if groups is not None:  # 14 bits of the group before 50 random ones
            keys = (groups.astype(np.uint64) << np.uint64(50)) | (keys >> np.uint64(14))
        order = np.argsort(keys)
        ranked = keys[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order


def arranged(places: Any, counts: Any, words: Callable[[int], Any]) -> Any:
    """Each place as often as it is counted, in random order."""
    import numpy as np

    return np.repeat(places, counts)[arrangement(int(counts.sum()), words)]


def drawn_records(rows: Any, places: Any, counts: Any, key: bytes) -> Any:
    """A block of records that are known by how often each of the distinct `rows` is there."""
    import pyarrow as pa

    return rows.take(pa.array(arranged(places, counts, key_stream(key))))


def side_by_side(rows: Any, classes: Any, columns: Any, fine: Any, redraw: Any, copy: Any, key: bytes) -> Any:
    """A block of a whole table, whose columns are known class by class, and independent of each other within a class.

    `classes` has the number of records of each class, `columns` cells and counts of each column, one class after the other. Of
    `fine` columns these are ranges, in place of which cells are put at random, as often as they are counted. `redraw` is what
    records in structurally empty cells are drawn again by, if there are such cells. `rows` has what a column's cells stand for,
    and where there are copies, their numbers before that.
    """
    import numpy as np
    import pyarrow as pa

    words, size = key_stream(key), int(classes.sum())
    own = np.repeat(np.arange(len(classes)), classes)
    first, *others = (np.repeat(*each) for each in columns)
    cells = [first, *(each[arrangement(size, words, own)] for each in others)]  # each is paired with the first
    if redraw is not None:
        zeros, weights, ends = redraw
        if not leave_empty(cells, zeros, weights, ends, lambda number: (words(number) >> np.uint64(11)) * 2.0**-53):
            raise ValueError("the structural zeros leave next to no room for records.")
    for j, each in fine.items():
        order, cells[j] = arrangement(size, words, cells[j]), np.empty(size, each[0].dtype)
        cells[j][order] = np.repeat(*each)
    if copy is not None:
        cells.insert(0, np.full(size, copy))
    order = arrangement(size, words)
    values = [column.take(pa.array(each[order])) for column, each in zip(rows.columns, cells, strict=True)]
    return pa.table(values, schema=rows.schema)


def leave_empty(cells: Any, zeros: Any, weights: Any, ends: Any, uniforms: Callable[[int], Any], most: int = 1_000) -> bool:
    """Draw records again, in place, until none is in a structurally empty cell; whether `most` times were enough for that.

    `cells` has an array for each column, `zeros` the columns and cells that no record has together, `weights` and `ends` the
    cumulated probabilities of the classes and, class by class, of each column's cells.
    """
    import numpy as np

    for tried in range(most + 1):
        wrong = np.zeros(len(cells[0]), bool)
        for each in zeros:
            wrong |= np.logical_and.reduce([cells[j] == cell for j, cell in each])
        again = np.flatnonzero(wrong)
        if len(again) == 0:
            return True
        if tried == most:
            break
        classes = np.searchsorted(weights / weights[-1], uniforms(len(again)), side="right")
        for column, own in zip(cells, ends, strict=True):
            drawn = (own[classes] < uniforms(len(again))[:, None]).sum(axis=1)
            column[again] = np.minimum(drawn, own.shape[1] - 1)
    return False


def write_records(table: Any, folder: str, suffix: str) -> tuple[str, int, str]:
    """Write records into a file with a name of its own; its name, its number of records and its SHA-256."""
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
