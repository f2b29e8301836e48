"""Posterior predictive check of counts: whether the published numbers are such as this posterior would publish.

Confidential counts are drawn from the posterior, and from each draw numbers are published anew by the law that the certificate
states. How far the published numbers lie from the drawn counts is compared with how far those made anew do, part by part: noise
on cells, ranges and totals by its mean size, records that were drawn by a chi-square distance. A part that lies further away,
or nearer, than nearly all that were made anew says that something is not as stated: the mechanism, its scale, or the prior.
A small release that any counts explain has nothing to check: its p-values are then about one half, whatever is true.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.counts.asked import CELLS, functionals_of
from privurn.inference.counts.plans import reduce
from privurn.inference.counts.sampling import Job, draw_views
from privurn.inference.predictive import OF_NOISE, Distance, PredictiveCheck, compared
from privurn.inference.run import silent
from privurn.inference.trees.independent import IndependentDraws
from privurn.mechanisms.likelihood import KINDS, MixtureTerm, NoisyCountsTerm, UrnTerm
from privurn.mechanisms.tree_measurements import Noise, TreeMeasurements
from privurn.privacy.additive_noise import simulated_noise
from privurn.privacy.laws.noisy_counts import STEPS

Floats = NDArray[np.float64]
Counts = NDArray[np.float64]
"""Confidential counts of the domain's cells, a column for each draw."""

MOST_CELLS = 2_000
"""Of a check by a Markov chain, each of whose draws is kept whole."""


def check_counts(job: Job, *, draws: int, seed: int) -> PredictiveCheck:
    """The check of all releases of a job."""
    if job.observed[0].domain is None:
        raise ModelError("labels that nobody listed have no counts to check.", hint="Leave the check out")
    rng = np.random.default_rng(seed)
    found: list[Distance] = []
    for counts in _drawn(job, draws, rng):
        for i, release in enumerate(job.observed):
            where = f" of release {i + 1}" if len(job.observed) > 1 else ""
            found += [replace(each, part=each.part + where) for each in _distances(release.term, counts, rng)]
    return compared(found)


def _drawn(job: Job, draws: int, rng: np.random.Generator) -> Iterator[Counts]:
    """Counts from the posterior, in batches."""
    domain = job.observed[0].domain
    assert domain is not None  # the caller has looked
    if job.tree is not None and not job.tree.exact:
        measured = job.measured
        source = IndependentDraws(measured, job.tree.base_of(measured.tree.cells), job.size)
        for batch in source.batches(draws, rng=rng):
            cells = measured.tree.cells
            yield measured.in_domain(batch.counts[:cells], batch.counts[cells:])  # rounded, sums of small ones would be lost
        return
    if domain.size > MOST_CELLS:
        raise ModelError(f"a check by a Markov chain is for at most {MOST_CELLS:,} cells.", hint="Leave the prior out")
    run = replace(job.run, draws=-(-draws // job.run.chains), progress=silent, checkpoint=None)
    cells_asked = functionals_of(job.observed[0], CELLS)
    drawn = draw_views(replace(job, run=run), reduce(cells_asked, domain=domain, within=job.within), of="sample")["sample"]
    shares = np.stack([drawn.flat(each.name) for each in cells_asked])
    sizes = drawn.flat("n") if job.n is None else np.full(shares.shape[1], float(job.n))
    yield np.rint(np.nan_to_num(shares) * sizes)


def _distances(term: object, counts: Counts, rng: np.random.Generator) -> list[Distance]:
    """How far a term's published numbers lie from counts, and how far numbers made anew from these do."""
    if isinstance(term, TreeMeasurements):
        return _of_tree(term, counts, rng)
    if isinstance(term, NoisyCountsTerm):
        steps = float(STEPS[term.noise])
        noise = KINDS[term.noise], term.scale * steps
        of_sum = [_noisy("sum of the cells", term.noisy, steps * counts, noise, rng, summed=True)]
        return [_noisy("cells", term.noisy, steps * counts, noise, rng), *of_sum]
    if isinstance(term, (UrnTerm, MixtureTerm)):
        return _of_records(term, counts, rng)
    raise ModelError(
        "what was published is known only through other numbers that were not: there is nothing to check.",
        hint="Leave the check out",
    )


def _noisy(
    part: str, published: NDArray[np.generic], exact: Counts, noise: Noise, rng: np.random.Generator, *, summed: bool = False
) -> Distance:
    """Mean size of the noise, or of its sum, in scales."""
    kind, scale = noise
    anew = simulated_noise(exact.shape, noise=kind, scale=scale, rng=rng)  # type: ignore[arg-type]
    return _apart(part, published, exact, anew, scale, summed=summed)


def _apart(
    part: str,
    published: NDArray[np.generic],
    exact: Counts,
    anew: NDArray[np.int64],
    scale: float,
    *,
    summed: bool = False,
) -> Distance:
    stated = np.asarray(published, np.float64)[:, None] - exact
    if summed:
        return Distance(part, np.abs(stated.sum(axis=0)) / scale, np.abs(anew.sum(axis=0)) / scale, OF_NOISE)
    return Distance(part, np.abs(stated).mean(axis=0) / scale, np.abs(anew).mean(axis=0) / scale, OF_NOISE)


def _of_tree(term: TreeMeasurements, counts: Counts, rng: np.random.Generator) -> list[Distance]:
    """Depth by depth, and the special cells."""
    tree = term.tree
    placed = counts if term.places is None else counts[term.places]
    inside, beside = placed[: tree.cells][tree.order], placed[tree.cells :]
    found = []
    all_anew = term.noise_anew(counts.shape[1], rng=rng)
    for depth, noisy, (_, scale), anew in zip(term.depths, term.noisy, term.noise, all_anew, strict=True):
        nodes = np.add.reduceat(inside, tree.starts[depth], axis=0)
        found.append(_apart(f"{len(noisy):,} ranges" if len(noisy) < tree.cells else "cells", noisy, nodes, anew, scale))
    if term.special:
        assert term.special_noise is not None  # what the measurements insist on
        found.append(_noisy("special cells", np.array(term.special), beside, term.special_noise, rng))
    return found


def _of_records(term: UrnTerm | MixtureTerm, counts: Counts, rng: np.random.Generator) -> list[Distance]:
    """Records that were drawn: chi-square distance from what is expected of them, over the cells."""
    found = []
    for released in np.atleast_2d(term.released):
        records = int(released.sum())
        stated, anew = np.empty(counts.shape[1]), np.empty(counts.shape[1])
        for d, own in enumerate(counts.T):
            if isinstance(term, UrnTerm):
                weights = term.alpha + own
                shares = rng.standard_gamma(weights)
            else:
                weights = (1.0 - float(term.weight)) * own / max(own.sum(), 1.0) + float(term.weight) / len(own)
                shares = weights
            expected = records * weights / weights.sum()
            again = rng.multinomial(records, shares / shares.sum())
            held = expected > 0.0
            stated[d], anew[d] = (np.sum((each - expected)[held] ** 2 / expected[held]) for each in (released, again))
        found.append(Distance("records", stated, anew))
    return found
