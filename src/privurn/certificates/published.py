"""What a data file holds, against what its certificate states: columns, rows, and values that the mechanism can have published.

The file is read in batches, by whole columns; a statement says what is wrong and never quotes a value.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.certificates.certify import Certifiable
from privurn.domain import JointDomain, domain_from_json
from privurn.mechanisms.label_discovery import DiscoveredUrn
from privurn.mechanisms.local.local_release import LocalRelease
from privurn.mechanisms.local.randomised_responses import RESPONSES
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import FreshLabels, PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.privacy.certificate import Certificate
from privurn.privacy.laws.noisy_counts import STEPS
from privurn.tables.released import CellReader, fresh_labels, numbers, released_batches, released_columns, stray_labels

OUTSIDE = "holds values outside the domain"
NOT_NOISED = "holds numbers that the channel cannot have released"

Check = Callable[[Any], bool]
"""Whether a batch may be part of what is certified; it may remember the batches before."""


def check_published(file: Path, certificate: Certificate, mechanism: Certifiable) -> list[str]:
    """How a data file contradicts its certificate; a FormatError where it cannot be read at all."""
    if released_columns(file) != certificate["columns"]:
        return ["does not hold the columns that are stated"]
    wrong, content = _content(certificate, mechanism)
    rows, stated = 0, certificate["output"]["rows"]
    for batch in released_batches(file):
        rows += batch.num_rows
        if rows > stated:
            break
        if not content(batch):
            return [wrong]
    if rows != stated:
        return ["does not hold the rows that are stated"]
    return [] if content(None) else [wrong]


def _content(certificate: Certificate, mechanism: Certifiable) -> tuple[str, Check]:
    """What is said of a file whose content is wrong, and how to find out; the check gets None when the file has ended."""
    domain, columns = certificate["domain"], certificate["columns"]
    if isinstance(mechanism, LocalRelease) and not isinstance(mechanism.channel, RESPONSES):
        return NOT_NOISED, _noised(mechanism, columns)
    if isinstance(mechanism, DiscoveredUrn):
        allowed = [*domain["labels"], domain["other"]]
        return "holds labels that were not named", lambda batch: batch is None or not stray_labels(batch.column(0), allowed)
    if isinstance(mechanism, PitmanYor) and isinstance(mechanism.base, FreshLabels):
        return "holds new labels that are not numbered from 1 on", _Fresh(mechanism)
    joint = domain_from_json(domain)
    assert isinstance(joint, JointDomain)
    readers = [CellReader(each) for each in joint.columns.values()]
    if isinstance(mechanism, Mechanism) and mechanism.beside:
        return "is not the table of all cells and their numbers", _Table(joint, readers, mechanism)
    return OUTSIDE, lambda batch: batch is None or bool(all((each >= 0).all() for each in _cells(batch, readers)))


def _cells(batch: Any, readers: Sequence[CellReader]) -> list[NDArray[np.int64]]:
    return [reader.cells(batch.column(i)) for i, reader in enumerate(readers)]


def _noised(mechanism: LocalRelease, columns: Sequence[str]) -> Check:
    def possible(batch: Any) -> bool:
        found = [] if batch is None else [numbers(batch.column(i)) for i in range(len(columns))]
        return all(each is not None and mechanism.channel.possible(each).all() for each in found)

    return possible


class _Fresh:
    """Labels of an open urn: its own are new_1, ..., new_k, each used; none where only old values are published."""

    def __init__(self, mechanism: PitmanYor) -> None:
        assert isinstance(mechanism.base, FreshLabels)
        self.prefix, self.none = mechanism.base.prefix, mechanism.old_values_only
        self.found: set[str] = set()

    def __call__(self, batch: Any) -> bool:
        if batch is not None:
            self.found |= fresh_labels(batch.column(0), self.prefix)
            return True
        return self.found == {f"{self.prefix}{i + 1}" for i in range(0 if self.none else len(self.found))}


class _Table:
    """All cells in order, once for each draw, with a noisy count or a probability beside each."""

    def __init__(self, domain: JointDomain, readers: Sequence[CellReader], mechanism: Mechanism) -> None:
        self.domain, self.readers, self.mechanism = domain, readers, mechanism
        self.row = 0
        self.sums = np.zeros(getattr(mechanism, "draws", 1), np.int64)

    def __call__(self, batch: Any) -> bool:
        if batch is None:
            return not isinstance(self.mechanism, PosteriorSample) or bool((self.sums == self.mechanism.records).all())
        rows = np.arange(self.row, self.row + batch.num_rows)
        self.row += batch.num_rows
        draw, cell = np.divmod(rows, self.domain.size)
        for reader, found in zip(self.readers, _cells(batch, self.readers), strict=True):
            cell, own = np.divmod(cell, reader.domain.size)
            if not np.array_equal(found, own):
                return False
        beside = [numbers(batch.column(i)) for i in range(len(self.readers), batch.num_columns)]
        if any(each is None or not np.isfinite(each).all() for each in beside):
            return False
        return self._numbers(draw, *beside)  # type: ignore[arg-type]

    def _numbers(self, draw: NDArray[np.int64], *beside: NDArray[np.float64]) -> bool:
        mechanism = self.mechanism
        if isinstance(mechanism, PosteriorSample):
            if len(beside) > 1 and not np.array_equal(beside[0], draw + 1):
                return False
            counts = np.rint(beside[-1] * mechanism.records).astype(np.int64)
            np.add.at(self.sums, draw, counts)
            return bool((counts >= 0).all() and np.array_equal(counts / mechanism.records, beside[-1]))
        assert isinstance(mechanism, PerturbedHistogram)
        with np.errstate(over="ignore"):
            steps = beside[-1] * STEPS[mechanism.noise]
        return bool((steps == np.rint(steps)).all() and (np.abs(steps) <= 2.0**63).all())
