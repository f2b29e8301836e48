"""Which marginals of a table are measured, and with how much noise: from public quantities only.

A layout that followed the data, or a secret number of records, would itself be a release. How the rule was chosen:
docs/proofs/marginals.md.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from privurn.cell_tree import CellTree
from privurn.domain import Categories, TableDomain
from privurn.domain.coarser import coarser, typed
from privurn.errors import ModelError
from privurn.mechanisms.fine_columns import MOST_VALUES, FineColumn
from privurn.mechanisms.marginal_counts import LARGEST_SET, Columns
from privurn.mechanisms.tree_layout import SPACING, spread
from privurn.privacy.laws.noisy_tree import TreeNoise
from privurn.tables.cells import is_numeric

THREE_WAY_SHARE = 0.4
"""Of the budget (rho) for marginals of three columns, where there are any."""

ONE_WAY_SHARE = 0.05
"""Of the rest, for single columns; pairs have what is left."""

CLASSES = 4
"""Different amounts of noise among the marginals of one order: losses of one scale compose exactly and fast."""

MOST_THREE_WAY_CELLS = 2_000_000
"""Of the marginals of three columns that the rule takes, the smallest first: more would take minutes to fit."""

MOST_COLUMNS = 60
"""Side by side: with more, the noise on each of their pairs would leave little."""

MOST_TRIPLES = 5_000
"""Marginals of three columns that the rule takes: each is counted, whatever its size."""

MOST_CELLS = 5_000_000
"""Every cell gets noise, the empty ones too, at some microseconds each."""

MOST_COPIES = 100
"""Synthetic tables drawn from the posterior: each is a fit of its own, which may take seconds."""

MOST_COLUMN_CELLS = 400
"""Of one column in pairs and triples: finer ones would drown in noise."""


PLENTY = 30
"""Cells of a column that are plenty for pairs and triples: what a finer column is told to become."""

RANGES_DEPTH = 5
"""Of the tree over the values of a column with more than 32 of them in order, whose 32 ranges there pairs and triples have."""


def fine_values(domain: TableDomain) -> dict[int, int]:
    """Columns that have more values in order than there are ranges, by place, and how many.

    What public knowledge speaks of keeps its cells.

    >>> from privurn.domain import Bins, Grid
    >>> fine_values(TableDomain({"pay": Grid(0, 5000, 10), "age": Bins(range(0, 100, 10))}))
    {0: 501}
    """
    named = {j for each in domain.zero_cells for j, _ in each} | {j for places in domain.known_shares for j in places}
    ordered = {j: each.n_values for j, each in enumerate(domain.columns.values()) if is_numeric(each)}
    return {j: values for j, values in ordered.items() if 2**RANGES_DEPTH < values <= MOST_VALUES and j not in named}


def fine_column(place: int, *, values: int, special: int, noise: TreeNoise) -> FineColumn:
    """Depths spread evenly from the root to the ranges, and from those to the values, as far apart as a noisy tree's.

    >>> fine_column(0, values=1000, special=0, noise="discrete-gaussian").depths
    (3, 8, 10)
    """
    below = CellTree((values,)).depth - RANGES_DEPTH
    above = spread(float(RANGES_DEPTH), SPACING[noise])[:-1]
    depths = (*above, *(RANGES_DEPTH + each for each in spread(float(below), SPACING[noise])))
    return FineColumn(place=place, values=values, special=special, ranges_depth=RANGES_DEPTH, depths=depths)


def ranged_sizes(sizes: Sequence[int], fine: Mapping[int, int]) -> tuple[int, ...]:
    """Cells of each column in pairs and triples."""
    return tuple(2**RANGES_DEPTH + size - fine[j] if j in fine else size for j, size in enumerate(sizes))


def measurable(domain: TableDomain) -> bool:
    """Whether no column is too fine to be counted with others."""
    return max(ranged_sizes(domain.sizes, fine_values(domain))) <= MOST_COLUMN_CELLS


def check_sizes(domain: TableDomain) -> None:
    """Columns that marginals can be taken of."""
    sizes, names = ranged_sizes(domain.sizes, fine_values(domain)), domain.names
    fine = [name for name, size in zip(names, sizes, strict=True) if size > MOST_COLUMN_CELLS]
    if fine:
        raise ModelError(
            f"{_listed(fine)} {'has' if len(fine) == 1 else 'have'} more than {MOST_COLUMN_CELLS} cells, "
            "and a marginal of so many would be noise.",
            hint=f"{_coarsening(domain, fine)}; about {PLENTY} cells a column are plenty; of numbers and dates {MOST_VALUES:,} "
            "are possible where no structural zero or known marginal names them",
        )
    order = sorted(range(len(sizes)), key=lambda j: sizes[j])
    kept = max(k for k in range(1, len(sizes) + 1) if _pair_cells([sizes[j] for j in order[:k]]) <= MOST_CELLS)
    if len(sizes) > MOST_COLUMNS:
        dropped = [names[j] for j in reversed(order[min(kept, MOST_COLUMNS) :])]
        raise ModelError(
            f"{len(sizes)} columns are too many: at most {MOST_COLUMNS} can be measured side by side.",
            hint=f"Leave out {_listed(dropped)}, or release several tables",
        )
    if kept < len(sizes):
        raise ModelError(
            f"{len(sizes)} columns have {_pair_cells(sizes):,} cells by pairs; at most {MOST_CELLS:,} can be measured.",
            hint=f"Leave out {_listed([names[j] for j in reversed(order[kept:])])}, or make them coarser",
        )


def check_workload(domain: TableDomain, sets: Sequence[Columns]) -> None:
    """Before noise is calibrated for it: not more cells than can be measured."""
    sizes = ranged_sizes(domain.sizes, fine_values(domain))
    total = sum(_cells(sizes, each) for each in sets)
    if total > MOST_CELLS:
        largest = max(sets, key=lambda each: _cells(sizes, each))
        raise ModelError(
            f"the workload has {total:,} cells; at most {MOST_CELLS:,} can be measured.",
            hint=f"Leave out {'*'.join(domain.names[j] for j in largest)}, which has {_cells(sizes, largest):,}, "
            "or make its columns coarser",
        )


def _coarsening(domain: TableDomain, fine: Sequence[str]) -> str:
    """What to type for columns that are too fine."""
    typed_ones = [
        f"{name!r} as {typed(found)}" for name in fine[:6] if (found := coarser(domain.columns[name], PLENTY)) is not None
    ]
    grouped = [repr(name) for name in fine[:6] if isinstance(domain.columns[name], Categories)]
    words = [f"Declare {', '.join(typed_ones)}"] * bool(typed_ones)
    return "; ".join([*words, *[f"group the rare categories of {', '.join(grouped)}"] * bool(grouped)])


def _pair_cells(sizes: Sequence[int]) -> int:
    return (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2


def _listed(names: Sequence[str]) -> str:
    shown = [repr(name) for name in names[:6]]
    return ", ".join(shown) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def every_set(sizes: Sequence[int], *, order: int) -> tuple[Columns, ...]:
    """All sets of up to `order` columns; of three, those with the fewest cells as far as there is room.

    A column of one cell tells nothing: it is in no set.

    >>> every_set((2, 3, 1, 2), order=2)
    ((0,), (1,), (3,), (0, 1), (0, 3), (1, 3))
    """
    if not 1 <= order <= LARGEST_SET:
        raise ModelError("marginals have one, two or three columns.", hint="order=3")
    told = [j for j, size in enumerate(sizes) if size > 1]
    found = [each for r in range(1, min(order, 2) + 1) for each in combinations(told, r)]
    if order == 3:
        room = MOST_THREE_WAY_CELLS
        kept: list[Columns] = []
        for each in sorted(combinations(told, 3), key=lambda places: (_cells(sizes, places), places)):
            room -= _cells(sizes, each)
            if room < 0 or len(kept) == MOST_TRIPLES:
                break
            kept.append(each)
        found += sorted(kept)
    return tuple(found)


def _cells(sizes: Sequence[int], places: Columns) -> int:
    return math.prod(sizes[j] for j in places)


def precisions(
    sizes: Sequence[int],
    sets: Sequence[Columns],
    *,
    noise: TreeNoise,
    weights: Mapping[Columns, float] | None = None,
    fine: Collection[int] = (),
) -> tuple[float, ...]:
    """Relative precision (1/scale) of each marginal.

    Shares of rho: 0.4 to the marginals of three columns, in proportion to cells^(1/3); of the rest 0.05 to single columns and
    0.95 to pairs, equally. Columns that are `fine`, or stand for a depth of one, count as a pair where they stand alone. An
    order that is not measured leaves its share to the others. Shares are multiplied by `weights`, and rounded to few classes.
    With Laplace noise shares of epsilon are those of rho to the power 2/3: what minimises a weighted sum of variances under
    either noise is related so.
    """
    given = weights or {}
    order_of = {each: 2 if len(each) == 1 and each[0] in fine else len(each) for each in sets}
    orders = set(order_of.values())
    budget = {
        1: (1.0 - THREE_WAY_SHARE) * ONE_WAY_SHARE,
        2: (1.0 - THREE_WAY_SHARE) * (1.0 - ONE_WAY_SHARE),
        3: THREE_WAY_SHARE,
    }
    found: dict[Columns, float] = {}
    for order in sorted(orders):
        own = [each for each in sets if order_of[each] == order]
        raw = [(_cells(sizes, each) ** (1.0 / 3.0) if order == 3 else 1.0) * given.get(each, 1.0) for each in own]
        raw = _in_classes(raw)
        total = sum(raw) * sum(budget[each] for each in orders)
        found |= {each: budget[order] * share / total for each, share in zip(own, raw, strict=True)}
    power = 2.0 / 3.0 if noise == "discrete-laplace" else 0.5
    return tuple(found[each] ** power for each in sets)


def _in_classes(shares: list[float]) -> list[float]:
    """Shares on a geometric grid of a few points."""
    low, high = math.log(min(shares)), math.log(max(shares))
    if high - low < 1e-9:
        return [1.0] * len(shares)
    step = (high - low) / (CLASSES - 1)
    return [math.exp(low + step * round((math.log(share) - low) / step)) for share in shares]
