"""Noisy marginals of a release that was verified."""

from dataclasses import replace
from typing import cast

import numpy as np

from privurn.domain import TableDomain, domain_from_json
from privurn.errors import CertificateError
from privurn.inference.verified import Verified
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.table_measurements import MeasuredTable


def read_table(given: Verified) -> MeasuredTable:
    """The measurements, in the order in which they were published."""
    column = str(given.certificate["columns"][-1])
    with given.open() as table:
        query = f"SELECT TRY_CAST({table.reference(column)} AS DOUBLE) AS beside FROM t"
        counts = np.ma.filled(np.ma.asarray(table.connection.sql(query).fetchnumpy()["beside"], np.float64), np.nan)
    domain = domain_from_json(given.certificate["domain"])
    if not isinstance(domain, TableDomain) or not np.all(np.isfinite(counts)):
        raise CertificateError("the published table does not hold a number for every measured cell.")
    found = cast(MeasuredTable, given.mechanism.likelihood(Numbers(counts)))
    return replace(found, domain=domain)
