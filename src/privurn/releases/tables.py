"""Whole tables: count all marginals in one pass, pay, add noise, and make records from the noisy counts.

    data --(columns' domains)--> marginals --(ledger pays first)--> noisy counts --(public seed)--> synthetic table

Only the noisy counts cost anything. The synthetic table is made from them by anyone with the seed in the certificate.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from privurn.certificates.certify import certify
from privurn.certificates.folder import SyntheticTable
from privurn.certificates.release import Release
from privurn.counts import other_size
from privurn.domain import ColumnDomain, JointDomain, TableDomain
from privurn.errors import DomainError
from privurn.inference.tables.fit import Fit
from privurn.inference.tables.synthetic import synthetic_table
from privurn.mechanisms.choice import choose
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.marginal_counts import MarginalCounts, count_marginals
from privurn.mechanisms.recipe import Public, Recipe
from privurn.privacy.entropy import Entropy, SystemEntropy
from privurn.privacy.payer import LedgerChoice, Payer
from privurn.privacy.profile import Guarantee
from privurn.releases.payment import pay, tell_custodian
from privurn.releases.synthetic import public_seed
from privurn.tables import open_table
from privurn.tables.cell_batches import cell_batches
from privurn.tables.counting import check_rows
from privurn.tables.dialects import DUCKDB
from privurn.tables.marginals import count_sets
from privurn.tables.output import number_table
from privurn.tables.special_cells import SpecialCells

POOR_FIT = 1.1
"""Mean squared residual from which on the model does not follow what was measured."""

TOLD_EVERY = 50
"""Steps of a fit after which its progress is told."""


def release_table(
    data: Any,
    recipe: Recipe,
    *,
    domain: Any,
    guarantee: Guarantee,
    ledger: LedgerChoice = None,
    entropy: Entropy | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Release:
    """The measurements of a whole table and a synthetic one made from them; called by `release`."""
    declared = table_domain(domain)
    secret = guarantee.neighbouring == "add-remove"
    randomness = entropy or SystemEntropy()
    with open_table(data, sized=not secret) as source:
        payer = Payer.find(ledger, source)
        source.check_columns(list(declared.names))
        columns = declared.in_order(source.types)
        stated = columns.to_json()
        progress("planning")
        n = None if secret else source.size()
        if n is not None:
            check_rows(n)
        public = Public(n=n, cells=columns.size, guarantee=guarantee, table=columns, in_parts=source.tasks is not None)
        mechanism, remarks = choose(recipe, public)
        layout: Any = mechanism.layout  # type: ignore[attr-defined]  # of the only kind of mechanism for whole tables
        progress("counting")
        special = SpecialCells(columns.columns)
        if source.dialect is not DUCKDB:  # whose types the batches are in
            ranges = {each.place: each.starts(each.ranges_depth).tolist() for each in layout.fine}
            found = count_sets(source, columns, layout.sets, ranges=ranges, secret_size=secret, special=special)
            counts = MarginalCounts.from_sets(layout, *found)
        else:
            counts = count_marginals(cell_batches(source, columns, secret_size=secret, special=special), layout)
        if n is not None and counts.n != n:
            raise other_size()
        tell_custodian(special.remarks(counts.n))
        kind, tasks = source.kind, source.tasks
    payment = pay(payer, mechanism, guarantee, domain=stated, n=counts.n)
    progress("drawing")
    measured = mechanism.draw(counts, entropy=randomness)
    table: Any = replace(mechanism.likelihood(Numbers(measured.weights)), domain=columns)  # type: ignore[type-var]
    published = number_table(measured.columns())
    certificate = certify(
        mechanism,
        guarantee=guarantee,
        domain=stated,
        columns=published.column_names,
        entropy=randomness,
        payment=payment.stamp,
    )
    made = Release(published, kind, certificate, (*remarks, *payment.remarks), payer.ledger, measured=True)
    if secret:
        made = replace(made, remarks=(*made.remarks, *table.mechanism.drowned(table.n)))
    progress("fitting")
    notes: list[str] = []

    def told(done: int, total: int, misfit: float) -> None:
        if done % TOLD_EVERY == 0 or done == total:
            progress(f"fitting: {done} of {total}, misfit {misfit:.2f}")

    def records() -> SyntheticTable:
        seed = public_seed(randomness)
        copies: int = recipe.copies  # type: ignore[attr-defined]  # as above
        synthetic, fit = synthetic_table(table, records=recipe.records, copies=copies, seed=seed, progress=told, tasks=tasks)
        notes.extend(_fit_remarks(fit) if copies == 1 else ())
        return SyntheticTable(synthetic, copies, seed)

    made = made.with_records(records)
    return replace(made, remarks=(*made.remarks, *notes))


def table_domain(domain: Any) -> TableDomain:
    """Columns side by side, from what stands for them."""
    if isinstance(domain, TableDomain):
        return domain
    if isinstance(domain, JointDomain):
        return TableDomain(domain.columns)
    if isinstance(domain, Mapping) and not isinstance(domain, ColumnDomain):
        return TableDomain(domain)
    raise DomainError("a table's columns must be named.", hint="domain={'age': Grid(0, 99, 1), 'sex': Categories(['f', 'm'])}")


def _fit_remarks(fit: Fit) -> tuple[str, ...]:
    if fit.misfit < POOR_FIT:
        return ()
    return (
        f"The synthetic table does not follow the measurements closely: residuals are {fit.misfit:.2f} times what the noise "
        "explains. Figures from infer use the measurements, and are not affected.",
    )
