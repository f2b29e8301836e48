"""Noisy sums of a release that was verified."""

from typing import Any

import numpy as np

from privurn.errors import CertificateError, ModelError
from privurn.inference.verified import Verified, verified
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.sums.statistic import NoisyStatistics


def read_sums(given: Verified) -> NoisyStatistics:
    """The sums in the order in which they were published, and what is said of n."""
    mechanism: Any = given.mechanism
    column = str(given.certificate["columns"][-1])
    with given.open() as table:
        query = f"SELECT TRY_CAST({table.reference(column)} AS DOUBLE) AS value FROM t"
        numbers = np.ma.filled(np.ma.asarray(table.connection.sql(query).fetchnumpy()["value"], np.float64), np.nan)
    if len(numbers) != mechanism.rows or not np.isfinite(numbers).all():
        raise CertificateError("the published table does not hold a number for every sum.")
    sums, said = np.split(numbers, [mechanism.n_entries])
    noisy_n = float(said[0]) if len(said) else None
    found: NoisyStatistics = mechanism.likelihood(Numbers(sums, n=given.certificate["n"], noisy_n=noisy_n))
    return found


def released_sums(source: Any) -> NoisyStatistics:
    """What a release of noisy sums says: its folder, what `release` returned, or the numbers themselves."""
    if isinstance(source, NoisyStatistics):
        return source
    found = verified(source)
    if found.mechanism.inferred_from != "sums":
        raise ModelError(f"the release holds {found.mechanism.rows_are}, and no sums over records.")
    return read_sums(found)
