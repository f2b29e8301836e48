"""Many independent releases of a mechanism, as fast as the audit can use them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import PrivurnError
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.label_discovery import DiscoveredUrn, kept_counts
from privurn.mechanisms.mechanism import Drawn, Mechanism
from privurn.mechanisms.pitman_yor import FreshLabels, PitmanYor
from privurn.mechanisms.slots import guided
from privurn.mechanisms.urn_plan import plan_urn
from privurn.privacy.audit.attack import RAISED, Sampler
from privurn.privacy.entropy import Entropy

WORDS_AT_ONCE = 2**21
NAMED = 2**40
"""Added to a kept label's number, so that "the label was named" differs from "the label was drawn"."""


def mechanism_sampler(mechanism: Mechanism, *, entropy: Entropy) -> Sampler:
    """Many independent releases of a mechanism.

    Our urns run in one compiled loop that gives, word for word, what `draw` would (tests/statistical/test_audit.py); any
    other mechanism is asked for many releases of the same table. A table that could not be read, or that the mechanism
    fails on, gives the name of the exception: an output like any other.
    """
    draw = _sampler(mechanism, entropy=entropy)

    def sample(data: CountTable | str, /, *, size: int) -> Any:
        if isinstance(data, str):
            return [data] * size
        try:
            return draw(data, size=size)
        except Exception as error:
            return [f"{RAISED} {type(error).__name__}"] * size

    return sample


def _sampler(mechanism: Mechanism, *, entropy: Entropy) -> Sampler:
    if type(mechanism) is DirichletMultinomial:
        return lambda data, /, *, size: _cell_releases(mechanism, data, size, entropy)
    if type(mechanism) is PitmanYor and isinstance(mechanism.base, FreshLabels) and not mechanism.old_values_only:
        return lambda data, /, *, size: _table_releases(mechanism, data, size, entropy)
    if isinstance(mechanism, DiscoveredUrn):
        urn = lru_cache(lambda labels: _urn(mechanism, labels))
        return lambda data, /, *, size: [_discovered(mechanism, urn, data, entropy) for _ in range(size)]
    return lambda data, /, *, size: [_labelled(each, data) for each in mechanism.draw_many(data, size=size, entropy=entropy)]


def _labelled(drawn: Drawn, counts: CountTable) -> NDArray[Any]:
    """Released values. With open labels cells number the table's own values; new ones become -1, -2, ...

    A table of weights comes first, so that the weight of cell i is the entry at place i.
    """
    if drawn.weights is not None:
        return np.concatenate([drawn.weights, drawn.cells])
    if drawn.first_new is None:
        return drawn.cells
    n_new = max(0, int(drawn.cells.max(initial=-1)) + 1 - drawn.first_new)
    labels: NDArray[np.int64] = np.concatenate([counts.values.astype(np.int64), -1 - np.arange(n_new)])[drawn.cells]
    return labels


def _cell_releases(urn: DirichletMultinomial, counts: CountTable, size: int, entropy: Entropy) -> NDArray[np.int64]:
    from privurn._kernels.urns.releases import update_cell_releases

    urn.check(counts)
    slots = urn.slots(counts)
    if slots.long:
        return np.stack([each.cells for each in urn.draw_many(counts, size=size, entropy=entropy)])
    fixed = (slots.total, slots.per_ball, slots.uniform, slots.per_cell, *guided(slots.ends), slots.cells)
    return _released(lambda words, out: int(update_cell_releases(words, *fixed, out)), urn.records, size, entropy)


def _table_releases(urn: PitmanYor, counts: CountTable, size: int, entropy: Entropy) -> NDArray[np.int64]:
    from privurn._kernels.urns.releases import update_table_releases

    urn.check(counts)
    if urn.long(counts.n):
        return np.stack([_labelled(each, counts) for each in urn.draw_many(counts, size=size, entropy=entropy)])
    p, q, r = urn.slots()
    fixed = (p + q * counts.n, p, q, r, *guided(np.cumsum(counts.counts)))
    tables = _released(lambda words, out: int(update_table_releases(words, *fixed, out)), urn.records, size, entropy)
    labels = np.concatenate([counts.values.astype(np.int64), -1 - np.arange(urn.records)])
    return np.asarray(labels[tables])


def _released(
    fill: Callable[[NDArray[np.int64], NDArray[np.int64]], int], records: int, size: int, entropy: Entropy
) -> NDArray[np.int64]:
    """Rows of releases; `fill` turns rows of words into them and leaves out the few whose words must be redrawn."""
    out = np.empty((size, records), np.int64)
    per_row = records if records == 1 else 2 * records
    filled = 0
    while filled < size:
        rows = min(size - filled, max(1, WORDS_AT_ONCE // per_row))
        words = entropy.words(rows * per_row).reshape(rows, per_row)
        filled += fill(words, out[filled : filled + rows])
    return out


def _urn(mechanism: DiscoveredUrn, labels: int) -> DirichletMultinomial:
    """The second step is planned for the number of labels that were kept."""
    n, cells, records = mechanism.n, labels + 1, mechanism.urn.records
    plan = plan_urn(n=n, cells=cells, guarantee=mechanism.urn_guarantee, records=records)
    return DirichletMultinomial(n=n, cells=cells, alpha=plan.alpha, records=records)


def _discovered(
    mechanism: DiscoveredUrn, urn: Callable[[int], DirichletMultinomial], counts: CountTable, entropy: Entropy
) -> Any:
    """What a release of open labels publishes: the labels that were named, and the records. The noise is OpenDP's own."""
    kept = mechanism.discovery.discover(counts)
    labels, table = kept_counts(counts, kept)
    try:
        cells = urn(len(labels)).draw(table, entropy=entropy).cells
    except PrivurnError as error:  # a refusal is an output
        return f"refused: {type(error).__name__}"
    names = np.append(counts.values[kept].astype(np.int64), -1)
    return np.concatenate([names[cells], NAMED + names[:-1]])
