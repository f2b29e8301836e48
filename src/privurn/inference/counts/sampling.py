"""Draws of functionals: from a closed form, or from a Markov chain on the latent confidential counts.

A job is public data: what was released, the analyst's prior and how long to run. The same job with the same seed gives the
same draws, so that more can be asked of it later.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.counts.composition import closed_form
from privurn.inference.counts.latent_counts import LARGEST_N, LatentCounts
from privurn.inference.counts.places import WithinBins
from privurn.inference.counts.plans import Reduction
from privurn.inference.counts.released import Observed
from privurn.inference.draws import Draws
from privurn.inference.run import Arrays, Lengths, Run, Schedule, run_engine
from privurn.inference.size import SizePrior
from privurn.inference.trees.chain import TreeCounts, TreeSampler
from privurn.inference.trees.independent import IndependentDraws
from privurn.inference.trees.model import PolyaTree
from privurn.mechanisms.likelihood import NoisyCountsTerm, UrnTerm
from privurn.mechanisms.tree_measurements import TreeMeasurements

Of = Literal["population", "sample", "urn"]
"""What a functional is of: the law that the confidential records came from, those records themselves, or the urn's limit."""

Views = dict[str, Draws]
Floats = NDArray[np.float64]

LENGTHS = Lengths(warm_up=500, draws=1000, longest=64_000)

JUDGED = 60
"""Functionals that mixing is judged by, spread over all of them: each takes milliseconds."""

AT_ONCE = 4_000_000
"""Gamma variables between two looks at the keyboard."""

TREE_NUMBERS = 50_000_000
"""Cells times independent draws from a tree, where nobody says how many draws; but at least FEWEST draws in all."""

FEWEST = 1_000

CLOSED_FORM = "independent draws from the closed form"
MARKOV_CHAIN = "Markov chain on the latent counts, exact moves"
TREE_DRAWS = "independent draws from the root of the tree down, approximate"
TREE_CHAIN = "Markov chain on the tree's counts, exact moves"


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """What to draw from. `prior`: one number for each cell, or "mechanism" for the mechanism's own.

    `shared`: the default flat prior, whose worth is drawn as well (see `CountSampler`).
    """

    observed: tuple[Observed, ...]
    prior: Floats | str
    run: Run
    within: WithinBins = "uniform"
    size: SizePrior | None = None
    shared: bool = False
    tree: PolyaTree | None = None
    cells: TreeMeasurements | None = None
    """Counts of cells as a tree's, of which only the cells were measured."""

    def __post_init__(self) -> None:
        if self.size is not None and self.n is not None:
            raise ModelError("the number of records is public: it has no prior.", hint="Leave the prior of n out")

    @property
    def schedule(self) -> Schedule:
        """How long to run at first."""
        return self.run.schedule(LENGTHS)

    @property
    def n(self) -> int | None:
        """Public number of confidential records; None where every release keeps it secret."""
        known = [each.n for each in self.observed if each.n is not None]
        return known[0] if known else None

    @property
    def size_prior(self) -> SizePrior:
        """What is believed of a secret n: up to 10^12 where noisy numbers say how large it is."""
        told = any(isinstance(each.term, (NoisyCountsTerm, TreeMeasurements)) for each in self.observed)
        return self.size or (SizePrior() if told else SizePrior(upper=LARGEST_N))

    @property
    def measured(self) -> TreeMeasurements:
        """What is known of a tree's counts."""
        found = self.cells or self.observed[0].measured
        assert found is not None  # whoever gives a tree as the model has looked
        return found

    @property
    def closed(self) -> bool:
        """Whether no Markov chain is needed."""
        return isinstance(self.prior, str)

    @property
    def face_value(self) -> Floats:
        """The releases taken together as if they were the data."""
        return np.asarray(np.sum([each.face_value for each in self.observed], axis=0), np.float64)

    def attributes(self, of: str) -> dict[str, Any]:
        """How the draws were made, in plain words."""
        if self.tree is not None:
            prior = "Polya tree"
        elif isinstance(self.prior, str):
            prior = "the mechanism's own"
        elif self.shared:
            prior = f"flat, worth 1 to {len(self.prior)} records in all"
        else:
            low, high = float(self.prior.min()), float(self.prior.max())
            prior = f"Dirichlet({low:g} in each cell)" if low == high else f"Dirichlet({low:g} to {high:g} in the cells)"
        return {
            "of": of,
            "mechanisms": ", ".join(each.mechanism.name for each in self.observed),
            "prior": prior,
            "how": (TREE_CHAIN if self.tree.exact else TREE_DRAWS)
            if self.tree is not None
            else CLOSED_FORM
            if self.closed
            else MARKOV_CHAIN,
            "within_bins": self.within,
        }


def draw_views(job: Job, reduction: Reduction, *, of: Of) -> Views:
    """Draws of the functionals, for one or several meanings of "the distribution"; that asked for is among them."""
    if of == "urn" and (job.tree is not None or not job.closed):
        raise ModelError(
            "only under the mechanism's own prior does the urn's limit have a posterior here.",
            hint="prior='mechanism', or ask for the population or the sample",
        )
    if job.tree is not None:
        return _from_tree(job, reduction, of)
    if not job.closed:
        return _from_counts(job, reduction, of)
    return _closed_form(job, reduction, of)


def naive_draws(job: Job, reduction: Reduction) -> Draws:
    """Dirichlet(prior + S): the analysis that takes the release for the data. Its intervals are wrong; it is for comparison."""
    prior = np.ones(len(job.face_value)) if isinstance(job.prior, str) else job.prior
    shapes = reduction.grouped(prior + job.face_value)
    drawn = _independent(job, reduction, _dirichlet(shapes, reduction), watched=False)
    return _as_draws(job, reduction, drawn[0], "naive", {"how": "the release taken for the data: not valid"})


def _from_tree(job: Job, reduction: Reduction, of: Of) -> Views:
    """Independent draws, approximate; or the exact chain where that is asked for."""
    model, measured = job.tree, job.measured
    assert model is not None  # the caller has looked
    base = model.base_of(measured.tree.cells)
    if model.exact:
        if measured.drawn:
            raise ModelError("the exact chain is for noisy counts, not for records that were drawn.", hint="Leave exact out")
        engine = TreeCounts(measured=measured, base=base, largest_n=model.largest_n)
        sampler = TreeSampler(engine=engine, reduction=reduction)
        judged = [f"{of}:{name}" for name in reduction.names] + ["n"] * (job.n is None)
        draws, _ = run_engine(
            sampler,
            job.run,
            usual=LENGTHS,
            judged=lambda draws: Draws(variables={name.partition(":")[2] or name: draws[name] for name in judged}, markov=True),
        )
        found, stats, stated = {name: draws[name] for name in draws.names}, draws.sample_stats, draws.attributes
    else:
        found, stats, stated = _tree_draws(job, reduction, IndependentDraws(measured, base, job.size)), {}, {}
    views = {}
    for view in ("population", "sample"):
        named = {name: found[f"{view}:{name}"] for name in reduction.names}
        if job.n is None:
            named["n"] = found["n"]
        own = {**stated, **job.attributes(view)}
        views[view] = Draws(variables=named, markov=model.exact, sample_stats=stats, attributes=own)
    return views


def _tree_draws(job: Job, reduction: Reduction, source: IndependentDraws) -> Arrays:
    """Functionals of independent draws, in as many chains as asked for, which are only pieces here."""
    cells = source.measured.tree.cells
    schedule = job.run.schedule(_tree_lengths(cells, chains=job.run.chains))
    rng = np.random.default_rng(schedule.seed)
    total = schedule.chains * schedule.draws
    found = {f"{of}:{name}": np.empty(total) for of in ("population", "sample") for name in reduction.names}
    found["n"], done = np.empty(total), 0
    for batch in source.batches(total, rng=rng):
        for of, numbers in (("population", batch.masses), ("sample", batch.counts)):
            by_draw = np.ascontiguousarray(source.measured.in_domain(numbers[:cells], numbers[cells:]).T)
            for d, masses in enumerate(by_draw):
                for name, value in reduction.evaluate(masses).items():
                    found[f"{of}:{name}"][done + d] = value
        found["n"][done : done + batch.counts.shape[1]] = np.rint(batch.counts.sum(axis=0))
        done += batch.counts.shape[1]
        job.run.progress(done, total, {})
    return {name: values.reshape(schedule.chains, schedule.draws) for name, values in found.items()}


def _tree_lengths(cells: int, *, chains: int) -> Lengths:
    """Of many cells fewer draws, of which each is as good as another; in all never fewer than FEWEST."""
    draws = max(TREE_NUMBERS // (chains * cells), -(-FEWEST // chains))
    return replace(LENGTHS, draws=min(draws, LENGTHS.draws))


def _from_counts(job: Job, reduction: Reduction, of: Of) -> Views:
    """Run the chain; population and sample come from the same counts."""
    assert not isinstance(job.prior, str)  # the caller has looked
    terms = tuple(each.term for each in job.observed)
    size = job.size_prior
    engine = LatentCounts(cells=len(job.prior), n=job.n, prior=job.prior, terms=terms, size_prior=size)
    chosen = np.unique(np.linspace(0, len(reduction.names) - 1, min(len(reduction.names), JUDGED)).astype(np.int64))
    judged = [f"{of}:{reduction.names[i]}" for i in chosen] + ["n"] * (job.n is None)
    draws, _ = run_engine(
        CountSampler(engine=engine, reduction=reduction, shared=job.shared),
        job.run,
        usual=LENGTHS,
        judged=lambda draws: Draws(variables={name.partition(":")[2] or name: draws[name] for name in judged}, markov=True),
        attributes={"prior_of_n": size.words} if job.n is None else {},
    )
    views = {}
    for view in ("population", "sample"):
        named = {name: draws[f"{view}:{name}"] for name in reduction.names}
        if job.n is None:
            named["n"] = draws["n"]
        views[view] = Draws(
            variables=named,
            markov=True,
            sample_stats=draws.sample_stats,
            attributes={**draws.attributes, **job.attributes(view)},
        )
    return views


@dataclass(frozen=True, kw_only=True, eq=False)
class CountSampler:
    """The chain on latent counts with functionals of each state: of p ~ Dirichlet(prior + C), and of C/n.

    `shared`: the prior is the same in each cell, and how many records it is worth is drawn as well, log-uniform from one in
    all to one in each cell a priori; the engine's own prior is then not used.
    """

    engine: LatentCounts
    reduction: Reduction
    shared: bool = False
    name: ClassVar[str] = "latent-counts"

    @property
    def monitored(self) -> tuple[str, ...]:
        """The first functional."""
        return (f"population:{self.reduction.names[0]}",)

    def fingerprint(self) -> str:
        """Hash of the engine's public data and of the functionals."""
        digest = hashlib.sha256(self.engine.fingerprint().encode() + (b"shared" if self.shared else b""))
        for each in (self.reduction.groups, *self.reduction.plan):
            digest.update(np.ascontiguousarray(each).tobytes())
        return digest.hexdigest()

    def start(self, rng: np.random.Generator) -> Arrays:
        """The engine's, and where the prior is shared the records it is worth."""
        worth = {"worth": np.exp(rng.random(1) * np.log(self.engine.cells))} if self.shared else {}
        return self.engine.start(rng) | worth

    def _sweep(self, state: Arrays, rng: np.random.Generator, times: int) -> dict[str, float]:
        """Sweeps of the counts; each is followed by the prior's worth where that is drawn."""
        from privurn._kernels.counts.concentrations import new_total

        if not self.shared:
            return self.engine.sweep(state, rng, times=times)
        figures: dict[str, float] = {}
        for _ in range(times):
            figures = self.engine.sweep(state, rng, times=1, prior=self._prior(state))
            state["worth"][0] = new_total(state["counts"], state["worth"][0], rng)
        return figures

    def _prior(self, state: Arrays) -> Floats:
        return np.full(self.engine.cells, state["worth"][0] / self.engine.cells) if self.shared else self.engine.prior

    def advance(
        self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool
    ) -> tuple[Arrays, Arrays]:
        """Sweeps; after every thin-th the functionals, and the number of records where it is secret."""
        from privurn._kernels.counts.functionals import update_given_counts

        if warming:
            self._sweep(state, rng, sweeps)
            return {}, {}
        names, kept = self.reduction.names, sweeps // thin
        rows = {of: np.empty((kept, len(names))) for of in ("population", "sample")}
        sizes = np.empty(kept, np.int64)
        figures: dict[str, list[float]] = {}
        prior = self.reduction.grouped(self.engine.prior)
        for d in range(kept):
            for key, value in self._sweep(state, rng, thin).items():
                figures.setdefault(key, []).append(value)
            counts = state["counts"]
            if self.shared:
                prior = self.reduction.grouped(self._prior(state))
                figures.setdefault("prior records", []).append(float(state["worth"][0]))
            update_given_counts(
                rows["population"][d], rows["sample"][d], rng, counts, self.reduction.groups, prior, self.reduction.plan
            )
            sizes[d] = counts.sum()
        found: Arrays = {f"{of}:{name}": rows[of][:, i] for of in rows for i, name in enumerate(names)}
        if self.engine.n is None:
            found["n"] = sizes
        return found, {key: np.array(values) for key, values in figures.items()}


Piece = Callable[[np.random.Generator, int], Sequence[Floats]]


def _closed_form(job: Job, reduction: Reduction, of: Of) -> Views:
    """The mechanism's own prior: C given S is Dirichlet-multinomial, p given C Dirichlet (docs/proofs/posteriors.md)."""
    if len(job.observed) != 1:
        raise ModelError(
            "the mechanism's own prior has a closed form for one release only.",
            hint="Give your own prior, for example prior=1",
        )
    release = job.observed[0]
    if of == "urn":
        term = release.term
        if not isinstance(term, UrnTerm) or len(term.released) != 1 or not np.any(term.alpha > 0.0):
            raise ModelError(f"a release by {release.mechanism.name} has no urn with a limit.", hint="of='population'")
        shapes = reduction.grouped(term.alpha + term.released[0])
        (limit,) = _independent(job, reduction, _dirichlet(shapes, reduction))
        return {"urn": _as_draws(job, reduction, limit, "urn", {})}
    found = closed_form(release.term, n=release.n)
    shapes, prior, n = reduction.grouped(found.urn), reduction.grouped(found.prior), found.n

    def composed(rng: np.random.Generator, size: int) -> Sequence[Floats]:
        from privurn._kernels.counts.functionals import update_composed

        population, sample = np.empty((size, len(reduction.names))), np.empty((size, len(reduction.names)))
        update_composed(population, sample, rng, shapes, prior, n, reduction.plan)
        return population, sample

    drawn = _independent(job, reduction, composed)
    return {name: _as_draws(job, reduction, rows, name, {}) for name, rows in zip(("population", "sample"), drawn, strict=True)}


def _dirichlet(shapes: Floats, reduction: Reduction) -> Piece:
    def piece(rng: np.random.Generator, size: int) -> Sequence[Floats]:
        from privurn._kernels.counts.functionals import update_dirichlet

        rows = np.empty((size, len(reduction.names)))
        update_dirichlet(rows, rng, shapes, reduction.plan)
        return (rows,)

    return piece


def _independent(job: Job, reduction: Reduction, work: Piece, *, watched: bool = True) -> list[Floats]:
    """Chains of independent draws side by side, in pieces; each result (chain, draw, functional)."""
    schedule = job.schedule
    generators = [
        np.random.Generator(np.random.PCG64(each)) for each in np.random.SeedSequence(schedule.seed).spawn(schedule.chains)
    ]
    most = max(1, AT_ONCE // reduction.n_groups)
    found: list[list[Sequence[Floats]]] = []
    pool = ThreadPoolExecutor(min(schedule.chains, job.run.threads or schedule.chains))
    try:
        done = 0
        while done < schedule.draws:
            size = min(most, schedule.draws - done)
            found.append([each.result() for each in [pool.submit(work, rng, size) for rng in generators]])
            done += size
            if watched:
                job.run.progress(done, schedule.draws, {})
    finally:
        pool.shutdown(cancel_futures=True)
    n_results = len(found[0][0])
    return [
        np.stack([np.concatenate([step[chain][i] for step in found]) for chain in range(schedule.chains)])
        for i in range(n_results)
    ]


def _as_draws(job: Job, reduction: Reduction, rows: Floats, of: str, attributes: Mapping[str, Any]) -> Draws:
    named = {name: rows[:, :, i] for i, name in enumerate(reduction.names)}
    schedule = {key: value for key, value in asdict(job.schedule).items() if key in ("chains", "draws", "seed")}
    return Draws(variables=named, markov=False, attributes={**schedule, **job.attributes(of), **attributes})
