"""Noisy marginals of a release, verified."""

from pathlib import Path
from typing import Any

import numpy as np

from privurn.certificates.release import Release
from privurn.certificates.verify import SEEDED, check_certificate, verify
from privurn.domain import TableDomain, domain_from_json
from privurn.errors import CertificateError
from privurn.inference.tables.measured import MeasuredTable
from privurn.mechanisms.marginals import NoisyMarginals
from privurn.mechanisms.registry import rebuild
from privurn.privacy.certificate import Certificate
from privurn.tables.released import numbers, released_batches


def is_table(certificate: Certificate) -> bool:
    """Whether a release is of a whole table, column by column."""
    return bool(certificate["domain"]["kind"] == TableDomain.kind)


def read_table(source: Release | Path, certificate: Certificate) -> MeasuredTable:
    """Measurements of a release, or of its folder; one that does not verify is refused, but for being seeded."""
    found = check_certificate(certificate) if isinstance(source, Release) else list(verify(source).reasons)
    reasons = [each for each in found if each != SEEDED]
    if reasons:
        raise CertificateError(f"the release cannot be used: {reasons[0]}.", hint="Ask for the release again")
    stated = certificate["mechanism"]
    mechanism, domain = rebuild(stated["name"], stated["parameters"]), domain_from_json(certificate["domain"])
    assert isinstance(mechanism, NoisyMarginals)
    assert isinstance(domain, TableDomain)
    if isinstance(source, Release):
        counts = np.asarray(source.table.column("count").to_numpy(), np.float64)
    else:
        parts: list[Any] = [numbers(batch.column(2)) for batch in released_batches(source / certificate["output"]["file"])]
        counts = np.concatenate(parts).astype(np.float64)
    return MeasuredTable(mechanism, counts, domain)
