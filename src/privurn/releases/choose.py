"""From what the custodian asked for to a mechanism that meets it, using public quantities only; or a refusal that helps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from privurn.errors import FormatError, ModelError
from privurn.exact_numbers import exact
from privurn.mechanisms.alternatives import delta_for, listed, meets, other_ways, without
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.exponential_losses import LossName
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.models import Model
from privurn.mechanisms.perturbed_histogram import MOST_CELLS, Publish, calibrate_perturbed_histogram
from privurn.mechanisms.pitman_yor import FiniteBase, FreshLabels, PitmanYor
from privurn.mechanisms.posterior_sample import RECORDS, PosteriorSample, calibrate_posterior_sample
from privurn.mechanisms.refusals import EXAMPLE_DELTA, insist
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram, calibrate_smoothed_histogram
from privurn.privacy.calibration import largest_records, round_up_to_rational
from privurn.privacy.laws.add_remove import smallest_alpha_add_remove
from privurn.privacy.laws.noisy_counts import STEPS, Noise
from privurn.privacy.profile import Guarantee
from privurn.releases.plan import HistogramMechanism, UrnPlan, explain, explain_histogram, plan_default, plan_urn

Urn = DirichletMultinomial | PitmanYor

URNS = ("auto", "dirichlet-multinomial", "dirichlet-process", "pitman-yor")
HISTOGRAMS = ("perturbed-histogram", "smoothed-histogram", "posterior-sample")
SPECIALISED = ("exponential", "pseudo-posterior")
SECRET_SIZE = ("auto", "dirichlet-multinomial", "perturbed-histogram", "posterior-sample", "pseudo-posterior")
MOST_RECORDS = 2 * 10**8
"""Records are drawn in memory, a few bytes each; refused before anything is paid."""
OPTIONS = {
    "noise": ("perturbed-histogram",),
    "publish": ("perturbed-histogram",),
    "weight": ("perturbed-histogram", "smoothed-histogram"),
    "draws": ("posterior-sample", "pseudo-posterior"),
    "loss": ("exponential",),
    "model": ("pseudo-posterior",),
    "reference": ("pseudo-posterior",),
    "alpha": (*URNS, "posterior-sample"),
}
"""Which mechanisms an option is for; given to another one it would be ignored in silence."""
FLAGS = {name: "--smoothing" if name == "weight" else f"--{name}" for name in OPTIONS if name != "reference"}
EXAMPLE_RECORDS = 1000
SECRET_WAYS = {
    "auto": "the Dirichlet-multinomial urn on a public domain, with a number of records",
    "perturbed-histogram": "records from noisy counts on a public domain, with a number of them",
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the custodian asked for, in exact numbers. Nothing here depends on the data."""

    guarantee: Guarantee
    mechanism: str = "auto"
    n_records: int | None = None
    alpha: Fraction | tuple[Fraction, ...] | None = None
    strength: Fraction = Fraction(1)
    discount: Fraction = Fraction(0)
    base_weights: tuple[int, ...] | None = None
    old_values_only: bool = False
    discovery_share: float = 0.5
    noise: Noise | None = None
    publish: Publish | None = None
    weight: Fraction | None = None
    draws: int | None = None
    loss: LossName | None = None
    model: Model | None = None
    reference: Model | None = None

    def __post_init__(self) -> None:
        known = URNS + HISTOGRAMS + SPECIALISED
        if self.mechanism not in known:
            raise FormatError(f"the mechanism {self.mechanism!r} is not known.", hint=", ".join(known))
        if self.secret_size and (self.mechanism not in SECRET_SIZE or (self.n_records is None and self.needs_records)):
            raise ModelError(
                "with add/remove neighbours the number of confidential records is secret.", hint=listed(self._secret_ways())
            )
        self._check_options()
        if self.n_records is not None and int(self.n_records) != self.n_records:
            raise ModelError("the number of released records must be a whole number.", hint="For example n_records=1000")
        check_records(self.n_records or 1)
        if self.draws is not None and self.draws < 1:
            raise ModelError("the number of draws must be at least 1.")
        if self.n_records is not None and self.n_records < 1:
            raise ModelError("the number of released records must be at least 1.", hint="Leave it out for a sensible default")
        if not 0.0 < self.discovery_share < 1.0:
            raise ModelError(
                "discovery_share must lie strictly between 0 and 1.", hint="0.5 gives both steps half of the budget"
            )

    def _check_options(self) -> None:
        for name, users in OPTIONS.items():
            if getattr(self, name) is not None and self.mechanism not in users:
                raise ModelError(
                    f"the option {name!r} is for mechanism {' or '.join(map(repr, users))} only.",
                    hint="Leave it out, or name that",
                )
        if self.noise is not None and self.noise not in STEPS:
            raise FormatError(f"the noise {self.noise!r} is not known.", hint=", ".join(STEPS))
        if self.publish not in (None, "records", "counts"):
            raise FormatError("what to publish is not known.", hint="records or counts")
        if self.publish == "counts" and self.n_records is not None:
            raise ModelError("noisy counts are one row for each cell.", hint="Leave the number of records out")
        if self.mechanism == "posterior-sample" and self.n_records is not None and self.n_records < RECORDS:
            raise ModelError(
                f"a posterior sample needs at least {RECORDS:,} urn draws.", hint="Leave the number of records out"
            )

    def _secret_ways(self) -> Iterator[str]:
        """What to type on a public domain: nothing may fall back on n."""
        records = "" if self.n_records is not None else f" --records {EXAMPLE_RECORDS}"
        if self.mechanism in SECRET_SIZE:
            yield f"say how many records to release (n_records):{records}"
        for name, words in SECRET_WAYS.items():
            if self.mechanism not in ("auto", name):
                yield f"{words}: --mechanism {name}{records}{without(self.given)}"
        yield "the number of confidential records public: --neighbouring replace-one"
        yield f"cell probabilities: --mechanism posterior-sample{without([*self.given, '--records'])}"

    @property
    def given(self) -> tuple[str, ...]:
        """The options on the command line that only some mechanisms know, as far as they were given."""
        return tuple(flag for name, flag in FLAGS.items() if getattr(self, name) is not None)

    @property
    def needs_records(self) -> bool:
        """Whether the number of released records is a choice that falls back on n."""
        return self.mechanism != "posterior-sample" and self.publish != "counts"

    @property
    def secret_size(self) -> bool:
        """Whether the number of confidential records is part of what is protected."""
        return self.guarantee.neighbouring == "add-remove"

    @property
    def open_domain(self) -> bool:
        """Whether one of the open-domain urns was asked for."""
        return self.mechanism in ("dirichlet-process", "pitman-yor")


def check_records(records: int) -> None:
    """Records that were asked for or chosen, before anything is paid."""
    if records > MOST_RECORDS:
        raise ModelError(f"at most {MOST_RECORDS:,} records can be released at once.", hint="Ask for fewer records")


def whole_weight(weight: Any) -> int:
    """A weight of a base measure as it was given, if it is whole."""
    if int(weight) != weight:
        raise ModelError("base weights must be whole numbers.", hint="For example base_weights=[1, 2, 1]")
    return int(weight)


def rationals(alpha: Any) -> Fraction | tuple[Fraction, ...] | None:
    """One alpha, or one for each cell, as exact fractions."""
    if alpha is None:
        return None
    if isinstance(alpha, (int, float, str, Fraction)):
        return exact(alpha, name="alpha")
    if isinstance(alpha, Sequence):
        return tuple(exact(each, name="alpha") for each in alpha)
    raise ModelError("alpha must be a number, or a sequence with one number for each cell.")


def choose_mechanism(*, n: int, cells: int | None, request: Request) -> tuple[Mechanism, tuple[str, ...]]:
    """The mechanism for n records on `cells` public cells (None: open labels) and remarks on the choice."""
    if request.mechanism in SPECIALISED or (cells is None and not request.open_domain):
        raise ModelError(f"the {request.mechanism} mechanism needs a public domain.", hint=listed(_open_label_ways(n, request)))
    if request.mechanism in HISTOGRAMS:
        return choose_histogram(n=n, cells=cells, request=request)
    return choose_urn(n=n, cells=cells, request=request)


def _open_label_ways(n: int, request: Request) -> Iterator[str]:
    """What labels that nobody listed can be released with."""
    wanted, leave = request.guarantee, [*request.given, *(["--discount"] if request.discount else [])]
    delta = "" if wanted.delta > 0.0 else f" --delta {EXAMPLE_DELTA}"
    yield f"labels named by noisy counts, the rare ones as other: --mechanism auto{delta}{without(request.given)}"
    for name, discount in (("dirichlet-process", Fraction(0)), ("pitman-yor", Fraction(1, 2))):
        one = PitmanYor(n=n, records=1, strength=max(request.strength, Fraction(1)), discount=discount)
        more = "" if meets(one.profile, wanted) else f" --delta {delta_for(one.profile, wanted)}"
        typed = f"--mechanism {name} --records 1{more} --strength {one.strength}"
        if discount:
            yield f"a record of the Pitman-Yor urn: {typed} --discount 0.5{without(request.given)}"
        else:
            yield f"a record of the Dirichlet-process urn: {typed}{without(leave)}"


def choose_histogram(*, n: int, cells: int | None, request: Request) -> tuple[HistogramMechanism, tuple[str, ...]]:
    """A histogram release or posterior sample: calibrated, or with the parameter asked for if that meets the guarantee."""
    if cells is None:
        raise ModelError(f"the {request.mechanism} mechanism needs a public domain.", hint=listed(_open_label_ways(n, request)))
    chosen: HistogramMechanism
    if request.mechanism == "perturbed-histogram":
        if cells > MOST_CELLS:
            raise ModelError(
                f"a perturbed histogram adds noise to every cell, and at most {MOST_CELLS:,} are supported.",
                hint=listed(other_ways(but=request.mechanism, leave=request.given)),
            )
        chosen = calibrate_perturbed_histogram(
            n=n,
            cells=cells,
            guarantee=request.guarantee,
            records=request.n_records,
            noise=request.noise or "discrete-laplace",
            publish=request.publish or "records",
            smoothing=request.weight or Fraction(0),
        )
    elif request.mechanism == "smoothed-histogram":
        if request.weight is not None:
            chosen = SmoothedHistogram(n=n, cells=cells, records=request.n_records or n, weight=request.weight)
        else:
            chosen = calibrate_smoothed_histogram(n=n, cells=cells, guarantee=request.guarantee, records=request.n_records)
    else:
        chosen = _posterior_sample(n, cells, request)
    insist(chosen, request.guarantee, given=request.given)
    return chosen, explain_histogram(chosen, guarantee=request.guarantee)


def _posterior_sample(n: int, cells: int, request: Request) -> PosteriorSample:
    records, draws = request.n_records or RECORDS, 1 if request.draws is None else request.draws
    if request.alpha is None:
        return calibrate_posterior_sample(n=n, cells=cells, guarantee=request.guarantee, records=records, draws=draws)
    public = None if request.secret_size else n
    return PosteriorSample(n=public, cells=cells, alpha=request.alpha, records=records, draws=draws)


def choose_urn(*, n: int, cells: int | None, request: Request) -> tuple[Urn, tuple[str, ...]]:
    """The urn for n records on `cells` public cells (None: open labels) and remarks on the choice."""
    if request.secret_size:
        chosen: Urn = _secret_size_urn(cells, request)
        remarks: tuple[str, ...] = ()
    elif request.open_domain:
        base = FreshLabels() if cells is None else FiniteBase(cells=cells, weights=request.base_weights)
        chosen, remarks = _open_domain_urn(n, request, base), ()
    elif cells is None:
        raise ModelError("the Dirichlet-multinomial urn needs a public domain.", hint=listed(_open_label_ways(n, request)))
    elif request.alpha is not None:
        records = request.n_records if request.n_records is not None else n
        chosen, remarks = DirichletMultinomial(n=n, cells=cells, alpha=request.alpha, records=records), ()
    else:
        plan = plan_records(n=n, cells=cells, guarantee=request.guarantee, n_records=request.n_records)
        chosen, remarks = urn_of(plan), explain(plan, guarantee=request.guarantee)
    insist(chosen, request.guarantee, given=request.given)
    return chosen, remarks


def _secret_size_urn(cells: int | None, request: Request) -> DirichletMultinomial:
    """N is not an argument: nothing here may depend on it."""
    if cells is None or request.n_records is None:
        raise ModelError(
            "open labels need a public number of records.", hint="List the categories, or use replace-one neighbours"
        )
    single = request.guarantee.per_record()
    alpha = request.alpha
    if alpha is None:
        smallest = smallest_alpha_add_remove(cells=cells, records=request.n_records, epsilon=single.epsilon, delta=single.delta)
        alpha = round_up_to_rational(smallest)
    return DirichletMultinomial(n=None, cells=cells, alpha=alpha, records=request.n_records)


def plan_records(*, n: int, cells: int, guarantee: Guarantee, n_records: int | None) -> UrnPlan:
    """Smallest prior for the number of records asked for, or for the default one."""
    if n_records is None:
        return plan_default(n=n, cells=cells, guarantee=guarantee)
    return plan_urn(n=n, cells=cells, guarantee=guarantee, records=n_records)


def urn_of(plan: UrnPlan) -> DirichletMultinomial:
    """The mechanism that a plan describes."""
    return DirichletMultinomial(n=plan.n, cells=plan.cells, alpha=plan.alpha, records=int(plan.records))


def _open_domain_urn(n: int, request: Request, base: FreshLabels | FiniteBase) -> PitmanYor:
    if request.mechanism == "dirichlet-process" and request.discount != 0:
        raise ModelError("a Dirichlet process has discount 0.", hint="Use mechanism='pitman-yor'")
    if request.mechanism == "pitman-yor" and request.discount == 0:
        raise ModelError("a Pitman-Yor urn needs a discount in (0, 1).", hint="For example discount=0.5")
    urn = PitmanYor(
        n=n,
        records=request.n_records or 1,
        strength=request.strength,
        discount=request.discount,
        base=base,
        old_values_only=request.old_values_only,
    )
    if request.n_records is not None:
        return urn
    single = request.guarantee.per_record()
    most = largest_records(urn.profile, epsilon=single.epsilon, delta=single.delta)
    return replace(urn, records=max(1, int(min(most, MOST_RECORDS))))
