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

    bits = np.uint64((size - 1).bit_length())
    low = (np.uint64(1) << bits) - np.uint64(1)
    while groups is None and 3 * bits <= 64:  # sorting a word with its place in the last bits is faster than sorting places
        keys = (words(size) & ~low) | np.arange(size, dtype=np.uint64)
        keys.sort()
        ranked = keys >> bits
        if not (ranked[1:] == ranked[:-1]).any():
            return (keys & low).astype(np.int64)
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


def drawn_records(rows: Any, held: Any, more: Any, key: bytes) -> Any:
    """A block of records that are known by how often each of the distinct `rows` is there."""
    import pyarrow as pa

    words = key_stream(key)
    own, counts = held
    places = arranged(own, counts, words)
    return spread_out(rows.take(pa.array(places)), more[0], [places] * rows.num_columns, words)


def spread_out(table: Any, widths: Any, places: Any, words: Callable[[int], Any]) -> Any:
    """Records in bins, drawn uniformly within them: at the middle of one of 2^20 equal parts of the bin.

    `widths` are those of the bins by the place of a column, and there by the place in it that each record is from.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute

    for j, own in widths.items():
        steps = (words(table.num_rows) >> np.uint64(44)).astype(np.int64)
        offsets = own[places[j]] * ((2 * steps + 1 - 2**20) / 2**21)
        numbers = pa.compute.add(table.column(j), pa.array(offsets))
        table = table.set_column(j, table.schema.field(j), numbers)
    return table


def side_by_side(rows: Any, held: Any, more: Any, key: bytes) -> Any:
    """A block of a whole table, whose columns are known class by class, and independent of each other within a class.

    `held` are the number of records of each class, for each column the counts of its cells, a row for each class, and those of
    fine columns, which are counted by ranges there, in place of which cells are put at random. `more` is what records in
    structurally empty cells are drawn again by, if there are such cells, the number of a copy, if there are copies, and how
    records are spread out in bins. `rows` has what a column's cells stand for, and where there are copies, their numbers before
    that.
    """
    import numpy as np
    import pyarrow as pa

    (classes, columns, fine), (redraw, copy, widths) = held, more
    words, size = key_stream(key), int(classes.sum())
    own = np.repeat(np.arange(len(classes)), classes)
    numbers = (np.broadcast_to(np.arange(each.shape[1], dtype=np.uint16), each.shape) for each in columns)
    first, *others = (np.repeat(each.ravel(), counts.ravel()) for each, counts in zip(numbers, columns, strict=True))
    cells = [first, *(each[arrangement(size, words, own)] for each in others)]  # each is paired with the first
    if redraw is not None:
        zeros, weights, ends = redraw

        def uniforms(number: int) -> Any:
            return (words(number) >> np.uint64(11)) * 2.0**-53

        if not leave_empty(cells, zeros, weights, ends, uniforms, 100_000):  # paid for: tried longer than before payment
            raise ValueError("the structural zeros leave next to no room for records.")
    for j, (counts, _) in fine.items():
        order, cells[j] = arrangement(size, words, cells[j]), np.empty(size, np.uint16)
        cells[j][order] = np.repeat(np.arange(len(counts), dtype=np.uint16), counts)
    if copy is not None:
        cells.insert(0, np.full(size, copy))
    order = arrangement(size, words)
    cells = [each[order] for each in cells]
    values = [column.take(pa.array(each)) for column, each in zip(rows.columns, cells, strict=True)]
    return spread_out(pa.table(values, schema=rows.schema), widths, cells, words)


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
