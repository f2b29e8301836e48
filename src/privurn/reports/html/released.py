"""What a release and a confidential table say about each column: the share of every cell, or of every label."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.domain import Bins, ColumnDomain, Dates, Grid, JointDomain, domain_from_json
from privurn.errors import CertificateError, DomainError
from privurn.exact_numbers import decimal_text, exact
from privurn.privacy.certificate import Certificate
from privurn.reports.comparison.joint import column_cells
from privurn.reports.comparison.samples import Sample, cell_values, grouped, is_numeric
from privurn.tables import Source, count_cells, count_labels, open_table
from privurn.tables.cells import published_as
from privurn.tables.released import open_released

MISSING = "(missing)"


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Joint cells of a public domain and a weight for each: counts of records, noisy counts or probabilities."""

    domain: JointDomain
    cells: NDArray[np.int64]
    weights: NDArray[Any]
    size: float
    """How many records the weights speak for: what the smoothness of a density follows."""

    def column(self, name: str) -> "Column":
        """One column alone."""
        domain = self.domain.columns[name]
        own = column_cells(self.cells, domain=self.domain)[name]
        weights = grouped(own, np.maximum(self.weights, 0), size=domain.size)
        return Column(domain=domain, shares=weights / max(float(weights.sum()), 1e-300), size=self.size)

    def counts(self) -> CountTable:
        """Whole counts in the same proportions; shares are counted in parts of 2^-50."""
        weights = np.maximum(self.weights, 0)
        if not np.issubdtype(weights.dtype, np.integer):
            weights = np.rint(weights * (2.0**50 / max(float(weights.sum()), 1e-300)))
        return CountTable.from_cells(self.cells, weights.astype(np.int64))


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """Share of every cell of a column."""

    domain: ColumnDomain
    shares: NDArray[np.float64]
    size: float

    def sample(self) -> Sample | None:
        """The numbers that cells stand for; None where there are none."""
        if not is_numeric(self.domain):
            return None
        numbers = cell_values(self.domain)
        weights = self.shares * self.size
        return Sample.from_weights(numbers, weights) if (weights[~np.isnan(numbers)] > 0.0).any() else None


def labels_of(domain: ColumnDomain) -> list[str]:
    """A name for each cell."""
    if isinstance(domain, Bins):
        edges = [decimal_text(exact(edge, name="bin edge")) for edge in domain.edges]
        proper = [f"{low} to {high}" for low, high in pairwise(edges)]
    elif isinstance(domain, Dates):
        proper = [domain.label(cell) for cell in range(domain.n_values)]
    elif isinstance(domain, Grid):
        proper = [f"{value:,.12g}" for value in cell_values(domain)[: domain.n_values]]
    else:
        proper = [str(value) for value in getattr(domain, "values", ())]
    edges_of = ["other"] * (domain.other_cell is not None) + [MISSING] * (domain.null_cell is not None)
    return [*proper, *edges_of]


def read_release(folder: Path, certificate: Certificate) -> Cells | dict[str | None, float]:
    """The released table, from the folder alone: shares of cells, or of labels nobody had listed."""
    stated, synthetic = certificate["domain"], certificate["synthetic"]
    with open_released(folder / (synthetic or certificate["output"])["file"]) as source:
        if stated["kind"] == "open-labels":
            return _label_shares(source, stated["column"])
        domain = _joint(certificate)
        extra = [] if synthetic else certificate["columns"][len(domain.columns) :]
        if not extra:
            published = JointDomain({name: published_as(each) for name, each in domain.columns.items()})
            counts = count_cells(source, published, secret_size=True)
            return Cells(domain, counts.values, counts.counts, float(counts.n))
        weights = _weights(source, str(extra[-1]), domain.size)
        size = max(1.0, float(np.maximum(weights, 0.0).sum())) if certificate["n"] is None else float(certificate["n"])
        return Cells(domain, np.arange(domain.size), weights, size)


def read_data(data: Any, certificate: Certificate) -> Cells | dict[str | None, float]:
    """The confidential table, counted by the same rule that the release used."""
    stated, n = certificate["domain"], certificate["n"]
    with open_table(data) as source:
        if stated["kind"] == "open-labels":
            counts = count_labels(source, stated["column"])
            _check_size(counts, n)
            return dict(zip(counts.values.tolist(), (counts.counts / counts.n).tolist(), strict=True))
        domain = _joint(certificate)
        counts = count_cells(source, domain, secret_size=n is None)
    _check_size(counts, n)
    return Cells(domain, counts.values, counts.counts, float(counts.n))


def _check_size(counts: CountTable, n: int | None) -> None:
    if n is not None and counts.n != n:
        raise DomainError(
            f"the data do not hold the {n:,} records that the certificate says the release was made from.",
            hint="Give the table that was released, such as data='people.csv'",
        )


def _joint(certificate: Certificate) -> JointDomain:
    domain = domain_from_json(certificate["domain"])
    if not isinstance(domain, JointDomain):
        raise CertificateError("the certificate's domain names no columns.")
    return domain


def _label_shares(source: Source, column: str) -> dict[str | None, float]:
    source.check_columns([column])
    label = f"CAST({source.reference(column)} AS VARCHAR)"
    rows = source.connection.sql(f"SELECT {label}, count(*) FROM t GROUP BY ALL").fetchall()
    total = sum(count for _, count in rows)
    return {label: count / total for label, count in rows}


def _weights(source: Source, name: str, size: int) -> NDArray[np.float64]:
    """The numbers beside the cells of a published table, which holds all cells in order, once or for several draws."""
    source.check_columns([name])
    query = f"SELECT coalesce(TRY_CAST({source.reference(name)} AS DOUBLE), 0) AS weight FROM t"
    weights = np.asarray(source.connection.sql(query).fetchnumpy()["weight"], np.float64)
    if len(weights) == 0 or len(weights) % size:
        raise CertificateError("the published table does not hold every cell of the domain.")
    mean: NDArray[np.float64] = weights.reshape(-1, size).mean(axis=0)
    return mean
