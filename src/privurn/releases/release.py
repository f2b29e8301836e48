"""The main job on one page: count, plan, pay, draw, certify.

    data --(public domain)--> counts --(guarantee)--> mechanism --(ledger pays first)--> draws --> data + certificate

The order matters. Everything public is decided before the data are counted, except the number of records n, which is
public itself; the ledger is debited and flushed before the first random draw; nothing is written until `save`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privurn.certificates.certify import certify
from privurn.certificates.folder import SyntheticTable
from privurn.certificates.release import Release
from privurn.counts import CountTable
from privurn.domain import AnyDomain, Bounds, ColumnDomain, JointDomain, OpenLabels, TableDomain, several_columns
from privurn.errors import DomainError
from privurn.mechanisms.base_measures import FreshLabels
from privurn.mechanisms.choice import check_recipe, choose, offering, settle
from privurn.mechanisms.label_discovery import OTHER, kept_counts
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.recipe import Public, Recipe, check_records, most_records
from privurn.privacy.entropy import Entropy, SystemEntropy
from privurn.privacy.ledger import Spent
from privurn.privacy.payer import LedgerChoice, Payer, Payment
from privurn.privacy.profile import Guarantee, Neighbouring
from privurn.releases.payment import pay, tell_custodian
from privurn.releases.usual import usual
from privurn.tables import Source, blocks, count_cells, count_labels, decode, decode_labels, open_table
from privurn.tables.blocks import Blocks
from privurn.tables.column_names import unused
from privurn.tables.engine import Tasks
from privurn.tables.output import decode_rows
from privurn.tables.special_cells import SpecialCells

if TYPE_CHECKING:
    from privurn.mechanisms.local.recipe import ChannelRecipe
    from privurn.mechanisms.sums.recipe import Sums


def release(
    data: Any,
    mechanism: "Recipe | ChannelRecipe | Sums | None" = None,
    *,
    domain: AnyDomain | TableDomain | ColumnDomain | Bounds | Mapping[str, ColumnDomain | OpenLabels | Bounds],
    epsilon: float,
    delta: float = 0.0,
    contributions: int = 1,
    neighbouring: Neighbouring = "replace-one",
    ledger: LedgerChoice = None,
    entropy: Entropy | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Release:
    """Release synthetic records of one column, or of a few taken jointly, with a differential-privacy guarantee.

    Or every record through a channel by itself, or noisy sums: `privatise` and `release_statistics` are short for these.

    Parameters
    ----------
    data
        A path (CSV, Parquet, globs), pandas, polars or Arrow table, list, NumPy array, DuckDB relation or Spark data frame.
    mechanism
        Left out: on one or two columns of numbers and on other public domains whichever of `NoisyTree` (columns of numbers
        only: noisy measurements, and records from their posterior), `NoisyCounts`, `Urn` and `Smoothed` has the least expected
        error; `Marginals` on other tables of several columns with more than 100 joint cells (measurements and records
        likewise), `Discover` on open labels. `OpenUrn` and
        `PitmanYorUrn` draw from the open-domain urns. On a public domain also `NoisyCounts` (a perturbed histogram), `Smoothed`
        (a mixture with the uniform), `PosteriorDraws` (cell probabilities), `Exponential` (a histogram near the data's) and
        `Pseudo` (records from a small parametric model). `Marginals` takes up to about 30 columns side by side. `Laplace` and
        the other channels publish every record with noise of its own (`privatise`), `Sums` noisy sums for a model. What a
        mechanism leaves open is the best that the guarantee allows.
    domain
        Public knowledge: a mapping from columns to `Grid`, `Bins`, `Dates`, `Categories` (several are taken jointly, but by
        `Marginals`) or one to `OpenLabels`; one of those alone where the table has one column and is no CSV file. `Bounds` of
        numbers that channels and sums leave numbers.
    epsilon, delta
        The guarantee, for one replaced record. delta = 0 asks for pure epsilon-DP.
    contributions
        Most records that one person may own: the guarantee then covers all of them together.
    neighbouring
        "replace-one": one record replaced, the number of records is public. "add-remove": one record more or less, the
        number of records is secret; public domains only, and the mechanism's number of records must be given.
    ledger
        Pays before anything is drawn. Left out: FILE.ledger beside the data, where that stands. False: none, even where one
        stands. The certificate says which.
    entropy
        `SeededEntropy` for tests; its releases are marked "seeded: not private".
    progress
        Is told each stage of the work.

    Examples
    --------
    >>> import numpy as np, privurn
    >>> incomes = np.random.default_rng(0).gamma(4, 9000, size=20_000)
    >>> out = privurn.release(incomes, domain=privurn.Grid(0, 100_000, 2_000), epsilon=1, delta=1e-6)
    >>> len(out.data), out.certificate["mechanism"]["name"]
    (20000, 'noisy-tree')
    >>> counts = privurn.NoisyCounts(publish="counts")
    >>> len(privurn.release(incomes, counts, domain=privurn.Grid(0, 100_000, 2_000), epsilon=1).data)
    51
    >>> limits = {"value": privurn.Bounds(0, 100_000)}
    >>> len(privurn.release(incomes, privurn.Laplace(), domain=limits, epsilon=2).data)
    20000
    >>> len(privurn.release(incomes, privurn.Sums("normal", response="value"), domain=limits, epsilon=1).data)
    2
    """
    guarantee = Guarantee(epsilon=epsilon, delta=delta, contributions=contributions, neighbouring=neighbouring)
    making: dict[str, Any] = {"domain": domain, "ledger": ledger, "entropy": entropy, "progress": progress}
    other = _OTHERS.get(getattr(mechanism, "reads", "cells"))
    if other is not None:
        return other(data, mechanism, guarantee, **making)
    asked: Any = _usual_of_several(domain) if mechanism is None else mechanism
    if asked is not None:
        check_recipe(asked)
        if asked.whole_tables:
            from privurn.releases.tables import release_table

            return release_table(data, asked, guarantee=guarantee, **making)
    secret = neighbouring == "add-remove"
    with open_table(data) as source:
        payer = Payer.find(ledger, source)
        named = _named_domain(domain, source)
        if isinstance(named, str) and secret:
            raise DomainError("open labels need a public number of records.", hint="List the categories beforehand")
        recipe: Recipe = asked or usual(named if isinstance(named, JointDomain) else None)()
        if isinstance(named, JointDomain):
            _check_spread(recipe, named)
        progress("counting")
        if isinstance(named, str):
            counts = count_labels(source, named)
        else:
            special = SpecialCells(named.columns)
            counts = count_cells(source, named, secret_size=secret, special=special)
            tell_custodian(special.remarks(counts.n))
        kind, tasks = source.kind, source.tasks
    progress("planning")
    size = named.size if isinstance(named, JointDomain) else None
    public = Public(
        n=None if secret else counts.n,
        cells=size,
        guarantee=guarantee,
        domain=named if isinstance(named, JointDomain) else None,
        in_parts=tasks is not None,
    )
    job = _Job(settle(recipe, public), public, counts, payer, entropy or SystemEntropy(), progress, kind, tasks)
    if isinstance(named, JointDomain):
        return _public_domain(job, named)
    return _discovered_labels(job, named) if recipe.discovers else _open_labels(job, named)


def _records(data: Any, channel: "ChannelRecipe", guarantee: Guarantee, **making: Any) -> Release:
    """Every record by itself; how many there are is published with them."""
    from privurn.releases.privatise import privatise

    if guarantee.neighbouring != "replace-one":
        raise DomainError("every privatised record is published: their number is no secret.", hint="Leave neighbouring out")
    making |= {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "contributions": guarantee.contributions}
    return privatise(data, channel, **making)


def _sums(data: Any, sums: "Sums", guarantee: Guarantee, *, domain: Any, progress: Any, **paid: Any) -> Release:
    """Sums over all records."""
    from privurn.releases.statistics import release_statistics

    budget = sums.budget(guarantee)
    made = sums.calibrate(domain, budget)
    progress("adding up")
    return release_statistics(data, mechanism=made, budget=budget, **paid)


_OTHERS: dict[str, Callable[..., Release]] = {"records": _records, "sums": _sums}
"""What reads something else than counts of cells."""


@dataclass(frozen=True)
class _Job:
    """One release in the making."""

    recipe: Recipe
    public: Public
    counts: CountTable
    payer: Payer
    entropy: Entropy
    progress: Callable[[str], None]
    kind: str
    tasks: Tasks | None

    def chosen(self, *, domain: dict[str, Any]) -> tuple[Mechanism, tuple[str, ...], Payment]:
        """The mechanism, remarks on it, and the debit of what the certificate promises."""
        mechanism, remarks = choose(self.recipe, self.public)
        return mechanism, remarks, pay(self.payer, mechanism, self.public.guarantee, domain=domain, n=self.counts.n)

    def finish(
        self, mechanism: Mechanism, *, table: Any, domain: dict[str, Any], payment: Payment, remarks: tuple[str, ...]
    ) -> Release:
        """Certify what was drawn."""
        certificate = certify(
            mechanism,
            guarantee=self.public.guarantee,
            domain=domain,
            columns=table.column_names,
            entropy=self.entropy,
            payment=payment.stamp,
        )
        return Release(table, self.kind, certificate, (*remarks, *payment.remarks), self.payer.ledger)


def _public_domain(job: _Job, domain: JointDomain) -> Release:
    stated = domain.to_json()
    mechanism, remarks, payment = job.chosen(domain=stated)
    job.progress("drawing")
    if (parts := _in_blocks(job, mechanism, job.counts, lambda cells: decode_rows(cells, domain))) is not None:
        return job.finish(mechanism, table=parts, domain=stated, payment=payment, remarks=remarks)
    drawn = mechanism.draw(job.counts, entropy=job.entropy)
    if not mechanism.measures:
        table = decode(drawn.cells, domain, entropy=job.entropy, extra=drawn.columns())
        return job.finish(mechanism, table=table, domain=stated, payment=payment, remarks=remarks)
    table = decode(drawn.cells, domain.whole_bins(), extra=drawn.columns())
    made = job.finish(mechanism, table=table, domain=stated, payment=payment, remarks=remarks)
    job.progress("making records")
    return replace(made, measured=True).with_records(lambda: _synthetic(job, mechanism, drawn, domain))


def _in_blocks(job: _Job, mechanism: Mechanism, counts: CountTable, decode: Callable[[Any], Any]) -> Blocks | None:
    """Records for a cluster to write, where the table is on one and they are too many for this computer."""
    if job.tasks is None or mechanism.records <= blocks.SIZE or not mechanism.draws_blocks:
        return None
    drawn = CountTable(np.empty(0, np.int64), np.empty(0, np.int64))
    for each in mechanism.draw_blocks(counts, size=blocks.SIZE, entropy=job.entropy):
        drawn = drawn.plus(each)
        job.progress(f"drawing: {drawn.n:,} of {mechanism.records:,} records")
    return Blocks.drawn([drawn], decode=decode, words=job.entropy.words, tasks=job.tasks)


def _synthetic(job: _Job, mechanism: Any, drawn: Any, domain: JointDomain) -> SyntheticTable:
    """Records from what was drawn, without another look at the data."""
    from privurn.releases.synthetic import public_seed, synthetic_table

    recipe: Any = job.recipe
    measured = mechanism.measurements(drawn.counts)
    records, seed = recipe.records or (measured.total if recipe.copies == 1 else None), public_seed(job.entropy)
    return synthetic_table(measured, domain=domain, records=records, copies=recipe.copies, seed=seed, tasks=job.tasks)


def _check_spread(recipe: Recipe, domain: JointDomain) -> None:
    """Before anything is counted or paid: only records can be spread out in their bins."""
    if domain.spread and not recipe.publishes_records:
        raise DomainError("only records in bins can be spread out.", hint="Leave within='uniform' out")


def _discovered_labels(job: _Job, column: str) -> Release:
    """Open labels: pay for everything, discover the labels, then the urn on them and "other"."""
    recipe: Any = job.recipe
    in_parts = job.public.in_parts
    with offering(recipe, job.public):
        discovery, rest = recipe.split(job.public.guarantee)
        check_records(recipe.records or job.counts.n, in_parts=in_parts)
    whole = Spent(guarantee=job.public.guarantee, rho=None, description=recipe.alias)  # the urn is not known yet
    payment = job.payer.pay(whole, n=job.counts.n)
    job.progress("drawing")
    labels, kept = kept_counts(job.counts, discovery.discover(job.counts))
    mechanism, remarks = recipe.then(discovery, rest, n=job.counts.n, labels=len(labels))
    if mechanism.records > (most := most_records(in_parts=in_parts)):  # chosen, and known only after payment
        mechanism, remarks = replace(recipe, records=most).then(discovery, rest, n=job.counts.n, labels=len(labels))
    other = unused(OTHER, labels)
    names = np.array([*labels, other], dtype=object)

    def decoded(cells: Any) -> Any:
        return decode_labels(names[cells].tolist(), column)

    table = _in_blocks(job, mechanism.urn, kept, lambda cells: (decoded(cells), {}))
    if table is None:
        table = decoded(mechanism.draw(kept, entropy=job.entropy).cells)
    domain = {"kind": "open-labels", "column": column, "labels": labels, "other": other}
    return job.finish(mechanism, table=table, domain=domain, payment=payment, remarks=remarks)


def _open_labels(job: _Job, column: str) -> Release:
    """Open labels straight from the urn: old labels are copied, new ones get fresh names that none of them can have."""
    domain = {"kind": "open-labels", "column": column}
    urn, remarks, payment = job.chosen(domain=domain)
    job.progress("drawing")
    cells, old = urn.draw(job.counts, entropy=job.entropy).cells, job.counts.values
    n_new = max(0, int(cells.max(initial=-1)) + 1 - len(old))
    base = FreshLabels()
    fresh = [f"{base.prefix}{i + 1}" for i in range(n_new)]
    names = np.array([*map(base.spelled, old.tolist()), *fresh], dtype=object)
    table = decode_labels(names[cells].tolist(), column)
    return job.finish(urn, table=table, domain=domain, payment=payment, remarks=remarks)


def named_columns(domain: Any, source: Source) -> dict[str, ColumnDomain | OpenLabels]:
    """The domain of each column, under its name."""
    if isinstance(domain, (JointDomain, TableDomain)):
        domain = domain.columns
    if isinstance(domain, Mapping):
        found = dict(domain)
    elif isinstance(domain, (ColumnDomain, OpenLabels)):
        found = {source.the_column(None): domain}
    else:
        found = {}
    if not found or not all(isinstance(each, (ColumnDomain, OpenLabels)) for each in found.values()):
        raise DomainError("a domain is needed.", hint="Grid, Bins, Dates, Categories, OpenLabels, or columns mapped to them")
    return found


def _usual_of_several(domain: Any) -> Recipe | None:
    """What is made of several columns where nothing is asked for; None where there is one, or where the table must say."""
    if isinstance(domain, Mapping) and all(isinstance(each, ColumnDomain) for each in domain.values()):
        domain = several_columns(domain)
    return usual(domain)() if isinstance(domain, (JointDomain, TableDomain)) and len(domain.columns) > 1 else None


def _named_domain(domain: Any, source: Source) -> JointDomain | str:
    """The domain with its columns' names; for open labels just the column."""
    if isinstance(domain, TableDomain):
        raise DomainError(
            "the columns' joint cells are too many to be released together.", hint="For whole tables: mechanism=Marginals()"
        )
    found = named_columns(domain, source)
    if not any(isinstance(each, OpenLabels) for each in found.values()):
        return JointDomain(found)  # type: ignore[arg-type]
    if len(found) != 1:
        raise DomainError("open labels can only be released alone.", hint="List the categories to take columns jointly")
    [column] = found
    source.check_columns([column])
    return column
