"""Open labels: a table in which every label is held by one record alone, and how many of them are published.

A label that is not in the table has no place in the output, so without its record it cannot be published: see
privacy/audit/support.py for what follows.
"""

from collections.abc import Callable

import numpy as np

from privurn.counts import CountTable
from privurn.privacy.audit.bets import Floats
from privurn.privacy.audit.findings import Claim
from privurn.privacy.audit.support import SupportAttack

LABELS, RUNS = 1_000, 300
"""Lone labels in a table whose size is free, and tables: 300,000 in all. A bet gains most where a table names a few of them."""
MOST_LABELS = 200_000


def lone_label_attack(
    published: Callable[[CountTable], float], *, event: str, claims: tuple[Claim, ...], labels: int | None = None
) -> SupportAttack:
    """An attack on what gives, for a table of lone labels, the share of them that is published."""
    size = LABELS if labels is None else labels
    table = CountTable.from_cells(np.arange(size), np.ones(size, np.int64))

    def shares(runs: int) -> Floats:
        return np.array([published(table) for _ in range(runs)])

    return SupportAttack("lone labels only", event, shares, size, RUNS, claims)
