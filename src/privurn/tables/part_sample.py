"""How the records of a release fall into its parts: samples without replacement, in exact integers, of counts alone.

All orders of the records are equally likely, so that the first half of them is a sample of all without replacement, and so is
the first half of that. A part is found by halving what is left of the blocks until one block is left; every halving has random
words of its own, from the key and the blocks that it is about. So whoever knows the counts and the key finds any part, and the
same one each time, and nobody needs to know them all. As `part_file`, this is sent to executors as it is. It is public: the
counts were drawn before. Why samples are exact: docs/proofs/integer-urn.md.
"""

from collections.abc import Callable
from typing import Any

from privurn.tables.part_file import key_stream

FEW, MANY = 32, 2**17
"""Records that are picked one by one: so few, or up to so many where they are a small share; else coins are thrown."""
WORDS_AT_ONCE = 2**17


def halves(counts: Any, words: Callable[[int], Any]) -> Any:
    """How many of each kind have heads, if a fair coin is thrown for every record: the ones among as many random bits."""
    import numpy as np

    found = np.zeros(len(counts), np.int64)
    held = np.flatnonzero(counts)
    needed = -(-counts[held] // 64)
    ends, beyond = np.cumsum(needed), (64 * needed - counts[held]).astype(np.uint64)
    for first in range(0, int(ends[-1]) if len(ends) else 0, WORDS_AT_ONCE):
        last = min(first + WORDS_AT_ONCE, int(ends[-1]))
        drawn = words(last - first).copy()
        own = slice(int(np.searchsorted(ends, first, side="right")), int(np.searchsorted(ends, last)) + 1)
        whole = ends[own] <= last
        drawn[ends[own][whole] - first - 1] >>= beyond[own][whole]  # bits beyond the last record
        starts = np.maximum(ends[own] - needed[own] - first, 0)
        found[held[own]] += np.add.reduceat(np.bitwise_count(drawn), starts, dtype=np.int64)
    return found


def below(bounds: Any, words: Callable[[int], Any]) -> Any:
    """Independent integers, each uniform on [0, bound), for bounds of at most 63 bits."""
    import numpy as np

    bounds = bounds.astype(np.uint64)
    most = np.uint64(2**63) - np.uint64(2**63) % bounds  # words beyond would favour the smallest, and are drawn again
    drawn = words(len(bounds)) >> np.uint64(1)
    again = np.flatnonzero(drawn >= most)
    while len(again):
        drawn[again] = words(len(again)) >> np.uint64(1)
        again = again[drawn[again] >= most[again]]
    return (drawn % bounds).astype(np.int64)


def sample(counts: Any, sizes: Any, words: Callable[[int], Any], starts: Any = (0,)) -> Any:
    """How many of each kind are among so many records that are taken at random from all of them, without putting any back.

    Kinds may be in several groups, one after the other, which begin at `starts` and are sampled by themselves, `sizes` of each.
    """
    import numpy as np

    totals, sizes = np.add.reduceat(counts, starts), np.asarray(sizes)
    if (sizes < 0).any() or (sizes > totals).any():
        raise ValueError("there are not so many records.")
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(counts))))
    left_out = sizes > totals - sizes
    wanted = np.where(left_out, totals - sizes, sizes)
    few = wanted <= np.maximum(FEW, np.minimum(totals >> 7, MANY))
    found = picked(np.where(few[group], counts, 0), np.where(few, wanted, 0), words, starts)
    if not few.all():
        others = np.where(few[group], 0, counts)
        heads = halves(others, words)  # given how many they are, any so many records are equally likely to have them
        number = np.add.reduceat(heads, starts)
        enough = number >= wanted
        missing = np.where(few, 0, np.where(enough, wanted, wanted - number))
        found += sample(np.where(enough[group], heads, others - heads), missing, words, starts)
        found += np.where(enough[group], 0, heads)
    return np.where(left_out[group], counts - found, found)


def picked(counts: Any, sizes: Any, words: Callable[[int], Any], starts: Any) -> Any:
    """The same, one record after the other; one that was picked before is picked again in vain."""
    import numpy as np

    ends = np.cumsum(counts)
    firsts = np.append(ends[np.asarray(starts)] - counts[np.asarray(starts)], ends[-1])
    found, missing = np.empty(0, np.int64), sizes
    while missing.any():
        own = np.repeat(np.arange(len(sizes)), missing)
        found = np.unique(np.concatenate([found, firsts[own] + below(np.diff(firsts)[own], words)]))
        missing = sizes - np.diff(np.searchsorted(found, firsts))
    return np.bincount(np.searchsorted(ends, found, side="right"), minlength=len(counts)).astype(np.int64)


def halved_records(held: Any, size: int, words: Callable[[int], Any]) -> tuple[Any, Any]:
    """So many of records that are known by the places of distinct ones and their counts; and the rest."""
    places, counts = held
    own = sample(counts, [size], words)
    rest = counts - own
    return (places[own > 0], own[own > 0]), (places[rest > 0], rest[rest > 0])


def halved_table(held: Any, size: int, words: Callable[[int], Any]) -> tuple[Any, Any]:
    """So many records of a whole table, and the rest.

    It is known by the counts of its classes, those of each column's cells within each class, and those of the cells of fine
    columns, whose ranges begin at the given places: columns are paired at random within a class, and so are the cells of a
    range with the records that are in it, so that each is sampled by itself.
    """
    import numpy as np

    classes, columns, fine = held
    own = sample(classes, [size], words)
    taken = [sample(each.ravel(), own, words, np.arange(0, each.size, each.shape[1])).reshape(each.shape) for each in columns]
    cells = {j: (sample(counts, taken[j].sum(axis=0), words, starts), starts) for j, (counts, starts) in fine.items()}
    rest = {j: (fine[j][0] - counts, starts) for j, (counts, starts) in cells.items()}
    others = [each - part for each, part in zip(columns, taken, strict=True)]
    return (own, taken, cells), (classes - own, others, rest)


def node_key(key: bytes, first: int, last: int) -> bytes:
    """For what concerns the blocks from the first to before the last: halving them, and the order within a single one."""
    return key + first.to_bytes(8, "big") + last.to_bytes(8, "big")


def halved(held: Any, halve: Callable[..., Any], key: bytes, first: int, last: int, size: int) -> tuple[Any, Any]:
    """What is in the first half of some blocks, all of `size` records but perhaps the last, and in the second."""
    return halve(held, (last - first) // 2 * size, key_stream(node_key(key, first, last)))  # type: ignore[no-any-return]


def block_of(held: Any, halve: Callable[..., Any], key: bytes, first: int, last: int, size: int, number: int) -> Any:
    """What is in one of the blocks from the first to before the last, by its number."""
    while last - first > 1:
        left, right = halved(held, halve, key, first, last, size)
        middle = first + (last - first) // 2
        held, first, last = (left, first, middle) if number < middle else (right, middle, last)
    return held


def expanded(rows: Any, group: tuple[Any, ...], number: int) -> Any:
    """The records of a block."""
    (held, halve, key, first, last, size), expand, more = group
    return expand(rows, block_of(held, halve, key, first, last, size, number), more, node_key(key, number, number + 1))
