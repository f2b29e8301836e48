"""Audit our own mechanisms, a certificate or a user's function, on neighbours chosen to be as revealing as possible.

    mechanism, certificate or function --> sampler + pairs of neighbours --> privacy.audit.audit --> AuditResult

Nothing confidential is touched: the data sets are made here, from public sizes alone.
"""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.choosing import plan_records, unit_profile, urn_of
from privurn.counts import CountTable
from privurn.errors import CertificateError, FormatError, PrivurnError
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.exponential import ExponentialHistogram
from privurn.mechanisms.label_discovery import DiscoveredUrn, kept_counts
from privurn.mechanisms.mechanism import Drawn, Mechanism
from privurn.mechanisms.pitman_yor import FiniteBase, FreshLabels, PitmanYor
from privurn.mechanisms.registry import mechanism_from_parameters
from privurn.mechanisms.slots import guided
from privurn.privacy.audit import RAISED, SMALLEST_AUDIT, AuditResult, Pair, Progress, Sampler, audit, each_call
from privurn.privacy.audit_neighbours import neighbouring_tables
from privurn.privacy.certificate import Certificate
from privurn.privacy.entropy import Entropy, SeededEntropy
from privurn.privacy.profile import Guarantee, Neighbouring

Takes = Literal["records", "counts"]
WORDS_AT_ONCE = 2**21
PATIENCE = 20_000_000
"""Released records, on each data set, that take some minutes to draw and look at."""
NAMED = 2**40
"""Added to a kept label's number, so that "the label was named" differs from "the label was drawn"."""

SECRET_SIZE = 10
"""Records in the made-up tables where the number is secret: small tables tell most."""


def audit_mechanism(
    mechanism: Mechanism,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    samples: int = 100_000,
    failure_probability: float = 1e-3,
    contributions: int = 1,
    seed: int | None = None,
    progress: Progress = lambda done, wanted: None,
) -> AuditResult:
    """Try to refute that `mechanism` is (epsilon, delta)-DP. Left out, epsilon is what its profile claims at delta.

    >>> from fractions import Fraction
    >>> urn = DirichletMultinomial(n=4, cells=2, alpha=Fraction(1), records=1)
    >>> audit_mechanism(urn, epsilon=0.3, samples=20_000, seed=1).convicted  # its epsilon is log 2 = 0.69
    True
    >>> audit_mechanism(urn, epsilon=0.7, samples=20_000, seed=1).convicted
    False
    """
    profile = mechanism.profile
    if epsilon is None:
        unit = Guarantee(epsilon=1.0, delta=delta, contributions=contributions)  # its epsilon is not looked at
        epsilon = unit_profile(profile, unit).epsilon(delta)
    cells, differing = _public_cells(mechanism)
    found = neighbouring_tables(
        n=SECRET_SIZE if mechanism.n is None else mechanism.n,
        cells=cells,
        neighbouring=profile.neighbouring,
        contributions=contributions,
        differing=differing,
    )
    return audit(
        mechanism_sampler(mechanism, entropy=SeededEntropy(secrets.randbits(128) if seed is None else seed)),
        pairs=[Pair(each.name, each.first_counts(), each.second_counts(), (each.left, each.right)) for each in found],
        epsilon=epsilon,
        delta=delta,
        samples=samples,
        failure_probability=failure_probability,
        progress=progress,
    )


def audit_certificate(
    certificate: Certificate | str | Path,
    *,
    samples: int | None = None,
    failure_probability: float = 1e-3,
    seed: int | None = None,
    progress: Progress = lambda done, wanted: None,
) -> AuditResult:
    """Run the mechanism that a certificate describes on made-up neighbours, against the guarantee it promises.

    Left out, `samples` is 10,000, or fewer where a release is so long that this would take many minutes.
    """
    if not isinstance(certificate, Certificate):
        certificate = Certificate.read(certificate)
    try:
        stated, target = certificate["mechanism"], certificate["target"]
        mechanism = mechanism_from_parameters(stated["name"], stated["parameters"])
        claim = {"epsilon": float(target["epsilon"]), "delta": float(target["delta"])}
        contributions = int(certificate["privacy_unit"]["contributions"])
    except (KeyError, TypeError, ValueError):
        raise CertificateError("the certificate does not say what was promised.") from None
    if samples is None:
        samples = min(10_000, max(SMALLEST_AUDIT, PATIENCE // _effort(mechanism)))
    return audit_mechanism(
        mechanism,
        **claim,
        samples=samples,
        failure_probability=failure_probability,
        contributions=contributions,
        seed=seed,
        progress=progress,
    )


def _effort(mechanism: Mechanism) -> int:
    """What a release costs, in records of an urn: an exact decimal weight of a cell takes some hundred times longer."""
    if isinstance(mechanism, ExponentialHistogram):
        return max(mechanism.records, mechanism.cells * mechanism.records // 4)
    return mechanism.records


def audit_callable(
    function: Callable[[Any], Any],
    *,
    n: int,
    cells: int,
    epsilon: float | None,
    delta: float = 0.0,
    takes: Takes = "records",
    neighbouring: Neighbouring = "replace-one",
    contributions: int = 1,
    samples: int = 20_000,
    failure_probability: float = 1e-3,
    progress: Progress = lambda done, wanted: None,
) -> AuditResult:
    """Try to refute that a user's `function` is (epsilon, delta)-DP.

    It gets a NumPy array, either the cell number of each of n records or the count of each cell, and may return a number,
    an array or anything hashable; its randomness is its own. Under add-remove the neighbour has n - 1 records.
    """
    found = neighbouring_tables(n=n, cells=cells, neighbouring=neighbouring, contributions=contributions)
    pairs = []
    for i, each in enumerate(found):
        sides = each.records(i) if takes == "records" else (each.dense(each.first, cells), each.dense(each.second, cells))
        pairs.append(Pair(each.name, *sides, (each.left, each.right)))
    _check_runs(function, pairs[0])
    return audit(
        each_call(function),
        pairs=pairs,
        epsilon=epsilon,
        delta=delta,
        samples=samples,
        failure_probability=failure_probability,
        progress=progress,
    )


def _check_runs(function: Callable[[Any], Any], pair: Pair) -> None:
    """A function that cannot run at all is a mistake on the command line, not a mechanism."""
    outputs = [each_call(function)(data, size=1)[0] for data in (pair.first, pair.second)]
    if all(isinstance(output, str) and output.startswith(RAISED) for output in outputs):
        raise FormatError(
            f"the function {outputs[0]} on both tables.", hint="It gets one NumPy array: the records, or the counts (takes)"
        )


def _public_cells(mechanism: Mechanism) -> tuple[int | None, tuple[int, int] | None]:
    """Size of the public domain (None: open) and the two cells with the least prior mass."""
    if isinstance(mechanism, DirichletMultinomial) and isinstance(mechanism.alpha, tuple):
        alphas = mechanism.alpha
        left, right = sorted(range(len(alphas)), key=lambda cell: alphas[cell])[:2] if len(alphas) > 1 else (0, 0)
        return mechanism.cells, (left, right)
    if isinstance(mechanism, PitmanYor):
        return (mechanism.base.cells if isinstance(mechanism.base, FiniteBase) else None), None
    cells = getattr(mechanism, "cells", None)
    return (int(cells) if cells is not None else None), None


def mechanism_sampler(mechanism: Mechanism, *, entropy: Entropy) -> Sampler:
    """Many independent releases of a mechanism.

    Our urns run in one compiled loop that gives, word for word, what `draw` would (tests/statistical/test_audit.py); any
    other mechanism is asked for many releases of the same table.
    """
    if type(mechanism) is DirichletMultinomial:
        return lambda data, /, *, size: _cell_releases(mechanism, data, size, entropy)
    if type(mechanism) is PitmanYor and isinstance(mechanism.base, FreshLabels) and not mechanism.old_values_only:
        return lambda data, /, *, size: _table_releases(mechanism, data, size, entropy)
    if isinstance(mechanism, DiscoveredUrn):
        return lambda data, /, *, size: [_discovered(mechanism, data, entropy) for _ in range(size)]
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
    from privurn._kernels.releases import update_cell_releases

    urn.check(counts)
    slots = urn.slots(counts)
    if slots.long:
        return np.stack([each.cells for each in urn.draw_many(counts, size=size, entropy=entropy)])
    fixed = (slots.total, slots.per_ball, slots.uniform, slots.per_cell, *guided(slots.ends), slots.cells)
    return _released(lambda words, out: int(update_cell_releases(words, *fixed, out)), urn.records, size, entropy)


def _table_releases(urn: PitmanYor, counts: CountTable, size: int, entropy: Entropy) -> NDArray[np.int64]:
    from privurn._kernels.releases import update_table_releases

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


def _discovered(mechanism: DiscoveredUrn, counts: CountTable, entropy: Entropy) -> Any:
    """What a release of open labels publishes: the labels that were named, and the records. The noise is OpenDP's own."""
    kept = mechanism.discovery.discover(counts)
    labels, table = kept_counts(counts, kept)
    try:
        plan = plan_records(
            n=counts.n, cells=len(labels) + 1, guarantee=mechanism.urn_guarantee, n_records=mechanism.urn.records
        )
        cells = urn_of(plan).draw(table, entropy=entropy).cells
    except PrivurnError as error:  # a refusal is an output
        return f"refused: {type(error).__name__}"
    names = np.append(counts.values[kept].astype(np.int64), -1)
    return np.concatenate([names[cells], NAMED + names[:-1]])
