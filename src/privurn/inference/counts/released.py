"""What a release says: its certificate checked, its mechanism rebuilt, its table turned back into numbers beside the cells.

Reading is strict. A published value that the domain does not hold is an error: the mechanism cannot have published it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Bins, Categories, ColumnDomain, Dates, JointDomain, domain_from_json, label_text
from privurn.errors import CertificateError, DomainError, ModelError
from privurn.inference.trees.approximation import approximate_posterior
from privurn.inference.verified import Verified, verified
from privurn.mechanisms.likelihood import NoisyCountsTerm, Numbers
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.tree_measurements import TreeMeasurements
from privurn.tables import Source
from privurn.tables.cells import MICROSECONDS_OF_A_DAY, cell_values, published_as

MISSING, OTHER_LABEL = "(missing)", "other (a label)"
"""How two discovered labels are called in functionals, where "other" is everything that was not named."""

OUTSIDE = "the release holds values outside the domain that its certificate states."


@dataclass(frozen=True, kw_only=True, eq=False)
class Observed:
    """A release, as inference needs it: public data only.

    `counts` holds for each cell of `domain` the released records, or the noisy counts where those were published; for posterior
    samples the probabilities, one row for each draw. Where the domain is open (fresh labels), `domain` is None, `labels` are
    the distinct released labels of `column` and `counts` their records. `discovered` says that the labels of the domain were
    themselves found by the mechanism. A noisy tree is `measured`; `counts` are then its cells' posterior means.
    """

    mechanism: Mechanism
    domain: JointDomain | None
    counts: NDArray[Any]
    labels: tuple[str | None, ...] = ()
    discovered: bool = False
    column: str | None = None
    measured: TreeMeasurements | None = None

    def __post_init__(self) -> None:
        size = len(self.labels) if self.domain is None else self.domain.size
        if self.counts.shape[-1:] != (size,) or not np.all(np.isfinite(self.counts)):
            raise ModelError("a release needs one number for each cell of its domain.")
        if self.publishes_records and int(self.counts.sum()) == self.mechanism.records == 1:  # not a part of more
            raise ModelError(
                "one released record says next to nothing about a distribution.",
                hint="Ask the custodian for a release of at least two records",
            )

    @property
    def publishes_records(self) -> bool:
        """Whether `counts` are counts of released records."""
        return not self.mechanism.beside

    @property
    def n(self) -> int | None:
        """Public number of confidential records; None where it is secret."""
        return self.mechanism.n

    @cached_property
    def term(self) -> Any:
        """The likelihood of the confidential counts, or the mechanism's refusal."""
        if self.measured is not None:
            return self.measured
        return self.mechanism.likelihood(Numbers(self.counts, self.labels))

    @property
    def shares(self) -> NDArray[np.float64]:
        """The release at face value: the share of each cell, noisy counts below 0 taken as 0."""
        weights = np.maximum(np.atleast_2d(self.counts).astype(np.float64).mean(axis=0), 0.0)
        total = float(weights.sum())
        return weights / total if total > 0.0 else np.full(len(weights), 1.0 / len(weights))

    @property
    def face_value(self) -> NDArray[np.float64]:
        """Counts that someone would read off who takes the release for the data themselves."""
        if self.publishes_records or self.measured is not None:
            return self.counts.astype(np.float64)
        if isinstance(self.term, NoisyCountsTerm):
            return np.maximum(self.counts.astype(np.float64), 0.0)
        return self.shares * float(self.mechanism.n or self.mechanism.records)


def observe(source: Any) -> Observed:
    """A release of counts, verified: a `Release`, a folder, or what is `Observed` already."""
    if isinstance(source, Observed):
        return source
    found = verified(source)
    read: list[Observed] = []
    for part in found.open_parts():
        with part as table:
            own = _read(table, found)
        read = [replace(read[0], counts=read[0].counts + own.counts) if read else own]
    return read[0]


def check_same_data(found: Sequence[Observed]) -> None:
    """Several releases are of the same cells and, where it is public, of the same number of records."""
    first = found[0]
    for each in found[1:]:
        if first.domain is None or each.domain is None:
            raise ModelError("releases with open labels can only be analysed one at a time.")
        if each.domain != first.domain:
            raise ModelError(
                "the releases have different domains, and so different cells.",
                hint="Combine releases of the same columns over the same domain",
            )
    if len({each.n for each in found} - {None}) > 1:
        raise ModelError("the releases were made from different numbers of records, so not from the same data.")


def _read(table: Source, given: Verified) -> Observed:
    mechanism, certificate = given.mechanism, given.certificate
    described = certificate["domain"]
    if described["kind"] == "open-labels":
        return _read_labels(table, mechanism, described)
    domain = domain_from_json(described)
    if not isinstance(domain, JointDomain):
        raise CertificateError("the certificate's domain names no columns.")
    extra = [str(name) for name in certificate["columns"][len(domain.columns) :]]
    table.check_columns([*domain.columns, *extra])
    if mechanism.measures:
        return _read_tree(table, mechanism, domain, extra[-1])
    places, numbers = _places(table, domain, extra)
    if not extra:
        counts = np.bincount(places, weights=numbers, minlength=domain.size)
        return Observed(mechanism=mechanism, domain=domain, counts=np.rint(counts).astype(np.int64))
    draws = max(1, (mechanism.rows or 0) // domain.size)
    if not np.array_equal(places, np.tile(np.arange(domain.size), draws)):
        raise CertificateError("the published table does not hold every cell of the domain once and in order.")
    return Observed(mechanism=mechanism, domain=domain, counts=numbers.reshape(draws, domain.size)[0 if draws == 1 else ...])


def _read_tree(table: Source, mechanism: Any, domain: JointDomain, column: str) -> Observed:
    """Noisy counts of a tree's nodes, in the order in which they were published."""
    numbers = table.connection.sql(f"SELECT TRY_CAST({table.reference(column)} AS BIGINT) AS beside FROM t").fetchnumpy()
    noisy = np.ma.filled(np.ma.asarray(numbers["beside"], np.int64), 0)
    if np.ma.is_masked(numbers["beside"]) or len(noisy) != mechanism.rows:
        raise CertificateError("the published table does not hold a whole number for every node of the tree.")
    measured = mechanism.likelihood(Numbers(noisy))
    found = approximate_posterior(measured)
    return Observed(
        mechanism=mechanism, domain=domain, counts=measured.in_domain(found.counts, found.special), measured=measured
    )


def _places(table: Source, domain: JointDomain, extra: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Joint cells and the number beside each: how many records, or what the last of the extra columns says."""
    names = list(domain.columns)
    columns = {name: published_as(each) for name, each in domain.columns.items()}
    fields = [_field(table.reference(name), columns[name], f"v{i}") for i, name in enumerate(names)]
    beside = f"TRY_CAST({table.reference(extra[-1])} AS DOUBLE)" if extra else "CAST(count(*) AS DOUBLE)"
    query = f"SELECT {', '.join(fields)}, {beside} AS beside FROM t" + ("" if extra else " GROUP BY ALL")
    found = table.connection.sql(query).fetchnumpy()
    places = np.zeros(len(found["beside"]), np.int64)
    radix = 1
    for i, name in enumerate(names):
        places += radix * _cells(found[f"v{i}"], found[f"v{i}_missing"], columns[name])
        radix *= columns[name].size
    if np.ma.is_masked(found["beside"]):
        raise DomainError("the release holds something that is no number where numbers are published.")
    return places, np.asarray(found["beside"], np.float64)


def _field(value: str, domain: ColumnDomain, alias: str) -> str:
    missing = f"{value} IS NULL AS {alias}_missing"
    if isinstance(domain, Dates):
        return f"epoch_us(TRY_CAST({value} AS TIMESTAMP)) / {MICROSECONDS_OF_A_DAY} AS {alias}, {missing}"
    if isinstance(domain, Categories):
        return f"CAST({value} AS VARCHAR) AS {alias}, {missing}"
    return f"TRY_CAST({value} AS DOUBLE) AS {alias}, {missing}"


def _cells(values: Any, missing: Any, domain: ColumnDomain) -> NDArray[np.int64]:
    """The cell of each released value of one column: the inverse of how they were written."""
    absent = np.asarray(missing, bool)
    if absent.any() and domain.null_cell is None:
        raise DomainError(OUTSIDE, hint="There are missing values, and the domain has none")
    if isinstance(domain, Categories):
        found = _label_cells(np.ma.filled(np.ma.asarray(values, dtype=object), ""), domain)
    else:
        unreadable = np.ma.getmaskarray(np.ma.asarray(values)) & ~absent
        if unreadable.any():
            raise DomainError(OUTSIDE, hint="There is text among numbers")
        numbers = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
        found = _number_cells(numbers, domain)
    if domain.null_cell is not None:
        found[absent] = domain.null_cell
    if np.any(found < 0):
        raise DomainError(OUTSIDE, hint="Is this the file that the certificate was made for?")
    return found


def _number_cells(numbers: NDArray[np.float64], domain: ColumnDomain) -> NDArray[np.int64]:
    known = cell_values(domain)[: domain.n_values]
    if isinstance(domain, Bins) and domain.within == "uniform":
        edges = np.array([float(edge) for edge in domain.edges])
        place = np.searchsorted(edges, numbers, side="right") - 1
        found = np.where((numbers >= edges[0]) & (numbers <= edges[-1]), np.minimum(place, domain.n_values - 1), -1)
    else:
        place = np.minimum(np.searchsorted(known, numbers), domain.n_values - 1)
        found = np.where(known[place] == numbers, place, -1)
    other = -1 if domain.other_cell is None else domain.other_cell
    return np.where(np.isnan(numbers), other, found).astype(np.int64)


def _label_cells(labels: NDArray[Any], domain: Categories) -> NDArray[np.int64]:
    known = {label_text(value): i for i, value in enumerate(domain.values)}
    if all(isinstance(value, bool) for value in domain.values):  # a file may write True for true
        known |= {str(value): i for i, value in enumerate(domain.values)}
    if domain.other_cell is not None:
        known["other"] = domain.other_cell
    numeric: dict[float, int] = {}
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in domain.values):
        numeric = {float(value): i for i, value in enumerate(domain.values)}  # a file may write 1.0 as 1
    cells = {}
    for label in set(labels.tolist()):
        cell = known.get(label, -1)
        if cell < 0 and numeric:
            try:
                cell = numeric.get(float(label), -1)
            except ValueError:
                cell = -1
        cells[label] = cell
    return np.array([cells[label] for label in labels.tolist()], np.int64)


def _read_labels(table: Source, mechanism: Mechanism, described: dict[str, Any]) -> Observed:
    """Open labels: those that label discovery named and "other", or whatever the urn's own labels are."""
    column = str(described["column"])
    table.check_columns([column])
    label = f"CAST({table.reference(column)} AS VARCHAR)"
    rows = table.connection.sql(f"SELECT {label}, count(*) FROM t GROUP BY ALL").fetchall()
    counts = {label: int(count) for label, count in rows}
    if described.get("labels") is None:
        labels = tuple(sorted(counts, key=lambda label: (label is None, str(label))))
        return Observed(
            mechanism=mechanism, domain=None, counts=np.array([counts[label] for label in labels]), labels=labels, column=column
        )
    named = [*described["labels"], described["other"]]
    if not set(counts) <= set(named):
        raise DomainError(OUTSIDE)
    return Observed(
        mechanism=mechanism,
        domain=_named_labels(column, list(described["labels"])),
        counts=np.array([counts.get(label, 0) for label in named], np.int64),
        discovered=True,
    )


def _named_labels(column: str, labels: list[str | None]) -> JointDomain:
    """Discovered labels as a domain, "other" behind them; a missing value that was found is a label like the others."""
    if not labels:
        raise ModelError("no label was discovered: everything in this release is 'other', and nothing can be concluded.")
    shown = [MISSING if label is None else OTHER_LABEL if label == "other" else label for label in labels]
    return JointDomain({column: Categories(shown, outside="other")})
