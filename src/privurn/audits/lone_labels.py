"""Open labels: a table in which every label is held by one record alone, and how many of them are published.

A label that is not in the table has no place in the output, so without its record it cannot be published: see
privacy/audit_support.py for what follows.
"""

import numpy as np

from privurn.audits.drawing import mechanism_sampler
from privurn.counts import CountTable
from privurn.mechanisms.label_discovery import DiscoveredUrn, LabelDiscovery
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.pitman_yor import FreshLabels, PitmanYor
from privurn.privacy.audit.bets import Floats
from privurn.privacy.audit.findings import Claim
from privurn.privacy.audit.support import SupportAttack
from privurn.privacy.entropy import Entropy

LABELS, RUNS = 1_000, 300
"""Lone labels in a table, and tables: 300,000 in all. A bet gains most where a table names a few of its labels."""
MOST_LABELS = 200_000


def lone_label_attacks(mechanism: Mechanism, claim: Claim, *, entropy: Entropy) -> list[SupportAttack]:
    """For mechanisms that publish labels nobody listed; none for others."""
    if isinstance(mechanism, DiscoveredUrn):
        step = mechanism.discovery.guarantee()
        return [discovery_attack(mechanism.discovery, (claim, Claim(step.epsilon, step.delta, "label discovery")))]
    if isinstance(mechanism, PitmanYor) and isinstance(mechanism.base, FreshLabels) and mechanism.n <= MOST_LABELS:
        return [_urn_attack(mechanism, claim, entropy)]
    return []


def discovery_attack(discovery: LabelDiscovery, claims: tuple[Claim, ...]) -> SupportAttack:
    """Label discovery does not depend on the number of records: the table may be as large as is useful."""
    table = CountTable.from_cells(np.arange(LABELS), np.ones(LABELS, np.int64))

    def shares(runs: int) -> Floats:
        return np.array([np.mean(discovery.discover(table)) for _ in range(runs)])

    return SupportAttack("lone labels only", "a label held by one record is named", shares, LABELS, RUNS, claims)


def _urn_attack(urn: PitmanYor, claim: Claim, entropy: Entropy) -> SupportAttack:
    table = CountTable.from_cells(np.arange(urn.n), np.ones(urn.n, np.int64))
    sample = mechanism_sampler(urn, entropy=entropy)

    def shares(runs: int) -> Floats:
        outputs = (np.asarray(sample(table, size=1)[0]) for _ in range(runs))
        return np.array([len(np.unique(cells[cells >= 0])) / urn.n for cells in outputs])

    return SupportAttack("lone labels only", "a label held by one record is released", shares, urn.n, RUNS, (claim,))
