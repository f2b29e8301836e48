"""The main job on one page: count, plan, pay, draw, certify.

    data --(public domain)--> counts --(guarantee)--> mechanism --(ledger pays first)--> draws --> data + certificate

The order matters. Everything public is decided before the data are counted, except the number of records n, which is
public itself; the ledger is debited and flushed before the first random draw; nothing is written until `save`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from privurn.certificates.certify import certify, check_certifiable
from privurn.certificates.release import Release
from privurn.counts import CountTable
from privurn.domain import AnyDomain, Bins, ColumnDomain, JointDomain, OpenLabels
from privurn.errors import DomainError, FormatError
from privurn.exact_numbers import exact, float_up
from privurn.mechanisms.exponential_losses import LossName
from privurn.mechanisms.label_discovery import OTHER, DiscoveredUrn, LabelDiscovery, calibrate_discovery, kept_counts
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.models import Model
from privurn.mechanisms.perturbed_histogram import Publish
from privurn.mechanisms.pitman_yor import FreshLabels
from privurn.privacy.entropy import Entropy, SystemEntropy
from privurn.privacy.laws.noisy_counts import Noise
from privurn.privacy.ledger import Spent
from privurn.privacy.payer import LedgerChoice, Payer, Payment
from privurn.privacy.profile import Guarantee, Neighbouring
from privurn.releases.choose import Request, check_records, choose_mechanism, plan_records, rationals, urn_of, whole_weight
from privurn.releases.choose_for_domain import choose_for_domain
from privurn.releases.plan import explain
from privurn.tables import Source, count_cells, count_labels, decode, decode_labels, open_table
from privurn.tables.column_names import unused
from privurn.tables.output import Within

MechanismName = Literal[
    "auto",
    "dirichlet-multinomial",
    "dirichlet-process",
    "pitman-yor",
    "perturbed-histogram",
    "smoothed-histogram",
    "posterior-sample",
    "exponential",
    "pseudo-posterior",
]


def release(
    data: Any,
    *,
    domain: AnyDomain | ColumnDomain | Mapping[str, ColumnDomain],
    epsilon: float,
    delta: float = 0.0,
    column: str | None = None,
    n_records: int | None = None,
    mechanism: MechanismName = "auto",
    alpha: float | str | Fraction | Sequence[float | str | Fraction] | None = None,
    strength: float | str | Fraction = 1,
    discount: float | str | Fraction = 0,
    base_weights: Sequence[int] | None = None,
    old_values_only: bool = False,
    discovery_share: float = 0.5,
    noise: Noise | None = None,
    publish: Publish | None = None,
    weight: float | str | Fraction | None = None,
    draws: int | None = None,
    loss: LossName | None = None,
    model: Model | None = None,
    reference: Model | None = None,
    within: Within = "midpoint",
    contributions: int = 1,
    neighbouring: Neighbouring = "replace-one",
    ledger: LedgerChoice = None,
    entropy: Entropy | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Release:
    """Release synthetic records of one column, or of a few taken jointly, with a differential-privacy guarantee.

    Parameters
    ----------
    data
        A path (CSV, Parquet, globs), pandas, polars or Arrow table, NumPy array or DuckDB relation.
    domain
        Public knowledge: `Grid`, `Bins`, `Categories`, `OpenLabels`, or a mapping from columns to such (taken jointly).
    epsilon, delta
        The guarantee, for one replaced record. delta = 0 asks for pure epsilon-DP.
    column
        Which column a single domain belongs to; not needed where the table has one column and is no CSV file.
    n_records
        How many records to release. Left out: the number that planning.plan_default chooses from public quantities; as many
        as there are confidential ones for a histogram, and a million urn draws for a posterior sample.
    mechanism
        "auto" is the Dirichlet-multinomial urn on a public domain, and label discovery before it on open labels.
        "dirichlet-process" and "pitman-yor" draw from the open-domain urns. On a public domain also "perturbed-histogram"
        (noisy counts), "smoothed-histogram" (a mixture with the uniform), "posterior-sample" (cell probabilities),
        "exponential" (a histogram near the data's) and "pseudo-posterior" (records from a small parametric model).
    alpha
        Prior records in each cell (one number, or one for each cell). Left out: the smallest that the guarantee allows.
    noise, publish
        Of the perturbed histogram: "discrete-laplace" (default), "laplace" or "discrete-gaussian"; whether to publish "records"
        drawn from the noisy counts (default) or the "counts" themselves.
    weight
        Of the uniform: in the smoothed histogram, the smallest that the guarantee allows where left out; in the perturbed one,
        0 where left out.
    draws
        How many posterior samples.
    loss
        Of the exponential mechanism: "l1" (default), "l2", "l2-squared", "hellinger", "hellinger-squared" or "w1".
    model, reference
        Of the pseudo-posterior: a model from privurn.models, and a public guess of the same kind that weighs the records.
    within
        What a record in a bin becomes: its "midpoint", or a "uniform" number from the bin.
    strength, discount, base_weights, old_values_only
        Of the open-domain urns; base_weights are public whole weights of the cells that new values are drawn from.
    discovery_share
        Part of the budget that label discovery spends.
    contributions
        Most records that one person may own: the guarantee then covers all of them together.
    neighbouring
        "replace-one": one record replaced, the number of records is public. "add-remove": one record more or less, the
        number of records is secret; public domains only, and n_records must be given.
    ledger
        Pays before anything is drawn. Left out: FILE.ledger beside the data, where that stands. False: none, even where one
        stands. The certificate says which.
    entropy
        `SeededEntropy` for tests; its releases are marked "seeded: not private".

    Examples
    --------
    >>> import numpy as np, privurn
    >>> incomes = np.random.default_rng(0).gamma(4, 9000, size=20_000)
    >>> out = privurn.release(incomes, domain=privurn.Grid(0, 100_000, 2_000), epsilon=1, delta=1e-6)
    >>> len(out.data), out.certificate["mechanism"]["name"]
    (20000, 'dirichlet-multinomial')
    """
    request = Request(
        guarantee=Guarantee(epsilon=epsilon, delta=delta, contributions=contributions, neighbouring=neighbouring),
        mechanism=mechanism,
        n_records=n_records,
        alpha=rationals(alpha),
        strength=exact(strength, name="strength"),
        discount=exact(discount, name="discount"),
        base_weights=None if base_weights is None else tuple(whole_weight(weight) for weight in base_weights),
        old_values_only=old_values_only,
        discovery_share=discovery_share,
        noise=noise,
        publish=publish,
        weight=None if weight is None else exact(weight, name="weight"),
        draws=draws,
        loss=loss,
        model=model,
        reference=reference,
    )
    with open_table(data) as source:
        job = _Job(request, Payer.find(ledger, source), entropy or SystemEntropy(), progress, within)
        named = _named_domain(domain, column, source)
        if isinstance(named, str) and request.secret_size:
            raise DomainError("open labels need a public number of records.", hint="List the categories beforehand")
        _check_within(job, named)
        progress("counting")
        if isinstance(named, str):
            counts = count_labels(source, named)
        else:
            counts = count_cells(source, named, secret_size=request.secret_size)
        kind = source.kind
    progress("planning")
    if isinstance(named, JointDomain):
        return _public_domain(job, named, counts, kind)
    return _discovered_labels(job, named, counts, kind) if mechanism == "auto" else _open_labels(job, named, counts, kind)


def pay(payer: Payer, mechanism: Mechanism, guarantee: Guarantee, *, domain: dict[str, Any], n: int | None) -> Payment:
    """Debit the guarantee asked for, because that is what the certificate promises, for what can be certified."""
    check_certifiable(mechanism, domain)
    rho = mechanism.zcdp(guarantee)
    return payer.pay(Spent(guarantee=guarantee, rho=rho, description=mechanism.name, parameters=mechanism.parameters()), n=n)


@dataclass(frozen=True)
class _Job:
    """One release in the making."""

    request: Request
    payer: Payer
    entropy: Entropy
    progress: Callable[[str], None]
    within: Within

    def pay(self, mechanism: Mechanism, *, domain: dict[str, Any], n: int) -> Payment:
        """Debit what the certificate promises."""
        check_records(mechanism.records)
        return pay(self.payer, mechanism, self.request.guarantee, domain=domain, n=n)

    def finish(
        self,
        mechanism: Mechanism,
        *,
        table: Any,
        kind: str,
        domain: dict[str, Any],
        payment: Payment,
        remarks: tuple[str, ...],
    ) -> Release:
        """Certify what was drawn."""
        certificate = certify(
            mechanism,
            guarantee=self.request.guarantee,
            domain=domain,
            columns=table.column_names,
            entropy=self.entropy,
            payment=payment.stamp,
        )
        return Release(table, kind, certificate, (*remarks, *payment.remarks), self.payer.ledger)


def _public_domain(job: _Job, domain: JointDomain, counts: CountTable, kind: str) -> Release:
    mechanism, remarks = choose_for_domain(n=counts.n, domain=domain, request=job.request)
    stated = domain.to_json() | ({} if job.within == "midpoint" else {"within": job.within})
    payment = job.pay(mechanism, domain=stated, n=counts.n)
    job.progress("drawing")
    drawn = mechanism.draw(counts, entropy=job.entropy)
    table = decode(drawn.cells, domain, within=job.within, entropy=job.entropy, extra=drawn.columns())
    return job.finish(mechanism, table=table, kind=kind, domain=stated, payment=payment, remarks=remarks)


def _check_within(job: _Job, domain: JointDomain | str) -> None:
    """Before anything is counted or paid: only records in bins can be spread out."""
    if job.within not in ("midpoint", "uniform"):
        raise FormatError(f"within={job.within!r} is not known.", hint="midpoint or uniform")
    tables = job.request.publish == "counts" or job.request.mechanism == "posterior-sample"
    bins = isinstance(domain, JointDomain) and any(isinstance(each, Bins) for each in domain.columns.values())
    if job.within == "uniform" and (tables or not bins):
        raise DomainError("only records in bins can be spread out.", hint="Declare bins, or leave within (--within) out")


def _discovered_labels(job: _Job, column: str, counts: CountTable, kind: str) -> Release:
    """Open labels: pay for everything, discover the labels, then the urn on them and "other"."""
    discovery, rest = _split(job.request)
    whole = Spent(guarantee=job.request.guarantee, rho=None, description="label-discovery")  # the urn is not known yet
    payment = job.payer.pay(whole, n=counts.n)
    job.progress("drawing")
    labels, kept = kept_counts(counts, discovery.discover(counts))
    plan = plan_records(n=counts.n, cells=len(labels) + 1, guarantee=rest, n_records=job.request.n_records)
    urn = urn_of(plan)
    mechanism = DiscoveredUrn(n=counts.n, records=urn.records, discovery=discovery, urn=urn, urn_guarantee=rest)
    other = unused(OTHER, labels)
    names = np.array([*labels, other], dtype=object)
    table = decode_labels(names[mechanism.draw(kept, entropy=job.entropy).cells].tolist(), column)
    domain = {"kind": "open-labels", "column": column, "labels": labels, "other": other}
    remarks = explain(plan, guarantee=rest)
    return job.finish(mechanism, table=table, kind=kind, domain=domain, payment=payment, remarks=remarks)


def _split(request: Request) -> tuple[LabelDiscovery, Guarantee]:
    """The discovery step for its share of the budget, and what is left for the urn."""
    whole, share = request.guarantee, request.discovery_share
    k = whole.contributions
    discovery = calibrate_discovery(epsilon=whole.epsilon * share, delta=whole.delta * share, contributions=k)
    spent = discovery.guarantee(k)
    rest = [-float_up(Fraction(a) - Fraction(b)) for a, b in ((spent.epsilon, whole.epsilon), (spent.delta, whole.delta))]
    return discovery, Guarantee(epsilon=rest[0], delta=rest[1], contributions=k).per_record()


def _open_labels(job: _Job, column: str, counts: CountTable, kind: str) -> Release:
    """Open labels straight from the urn: old labels are copied, new ones get fresh names that none of them can have."""
    urn, remarks = choose_mechanism(n=counts.n, cells=None, request=job.request)
    domain = {"kind": "open-labels", "column": column}
    payment = job.pay(urn, domain=domain, n=counts.n)
    job.progress("drawing")
    cells = urn.draw(counts, entropy=job.entropy).cells
    n_new = max(0, int(cells.max(initial=-1)) + 1 - len(counts.values))
    base = FreshLabels()
    fresh = [f"{base.prefix}{i + 1}" for i in range(n_new)]
    names = np.array([*map(base.spelled, counts.values.tolist()), *fresh], dtype=object)
    table = decode_labels(names[cells].tolist(), column)
    return job.finish(urn, table=table, kind=kind, domain=domain, payment=payment, remarks=remarks)


def _named_domain(domain: Any, column: str | None, source: Source) -> JointDomain | str:
    """The domain with its columns' names; for open labels just the column."""
    if isinstance(domain, Mapping):
        if not any(isinstance(each, OpenLabels) for each in domain.values()):
            return JointDomain(domain)
        if len(domain) != 1:
            raise DomainError("open labels can only be released alone.", hint="List the categories to take columns jointly")
        column, domain = next(iter(domain.items()))
    if isinstance(domain, JointDomain):
        return domain
    column = source.the_column(column)
    if isinstance(domain, OpenLabels):
        return column
    if not isinstance(domain, ColumnDomain):
        raise DomainError("a domain is needed.", hint="Grid, Bins, Categories, OpenLabels, or a mapping from columns to them")
    return JointDomain({column: domain})
