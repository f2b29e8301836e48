"""Counts from the prior, a release from its mechanism, and some sweeps at that release: the counts keep their joint law.

The mechanisms' own simulations make the releases, so this also says that the likelihoods are those of the mechanisms. Tests
fail a right sampler with probability at most 1e-5; every one has a twin with a slightly wrong likelihood that must fail.
"""

from fractions import Fraction

import numpy as np
import pytest
from sampler_checks import same_law_p_value, sequential

from privurn.counts import CountTable
from privurn.inference.counts.latent_counts import LatentCounts
from privurn.inference.size import SizePrior
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.likelihood import Numbers
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram

N, CELLS = 10_000, 12
PRIOR = np.concatenate([np.full(6, 1.0), np.full(6, 0.4)])


def table(counts):
    return CountTable.from_cells(np.arange(len(counts)), counts)


def confidential(rng, n=N):
    return rng.multinomial(n, rng.dirichlet(PRIOR))


def with_latent(mechanism, counts, rng):
    """Noisy counts, then the records drawn from them, as the mechanism defines both; and the sampler's state."""
    steps = 1024 if mechanism.noise == "laplace" else 1
    publishing = PerturbedHistogram(
        n=mechanism.n,
        cells=mechanism.cells,
        records=mechanism.cells,
        noise=mechanism.noise,
        scale=mechanism.scale,
        publish="counts",
    )
    noisy = np.rint(publishing.simulate(table(counts), rng=rng) * steps).astype(np.int64)
    positive = np.maximum(noisy, 0)
    share = positive / positive.sum() if positive.any() else np.full(CELLS, 1 / CELLS)
    uniform = rng.binomial(mechanism.records, float(mechanism.smoothing))
    kept = rng.multinomial(mechanism.records - uniform, share)
    released = kept + rng.multinomial(uniform, np.full(CELLS, 1 / CELLS))
    return released, {"noisy": noisy[None, :], "kept": kept[None, :]}


def release(mechanism, counts, rng):
    """What the mechanism publishes, and the true latent numbers where it has any."""
    if isinstance(mechanism, PerturbedHistogram) and mechanism.publish == "records":
        return with_latent(mechanism, counts, rng)
    return mechanism.simulate(table(counts), rng=rng), {}


def statistics(counts, seen):
    scaled = np.asarray(seen, np.float64)
    return (
        counts[0],
        counts[-1],
        counts.max(),
        float(counts @ scaled) / float(scaled @ scaled),
        counts[0] * scaled.sum() - counts.sum() * scaled[0],
        counts.sum(),
    )


def p_values(mechanisms, assumed, *, secret=None, sweeps=4):
    """A function for `sequential`: one p value for each statistic."""
    rng = np.random.default_rng(17)

    def sample(move):
        n = mechanisms[0].n if secret is None else int(rng.integers(secret + 1))
        counts = confidential(rng, n)
        made = [release(each, counts, rng) for each in mechanisms]
        if move:
            terms = tuple(each.likelihood(Numbers(seen)) for each, (seen, _) in zip(assumed, made, strict=True))
            state = {"counts": counts.astype(np.int64)} | {name: v for _, latent in made for name, v in latent.items()}
            model = LatentCounts(
                cells=CELLS, n=mechanisms[0].n, prior=PRIOR, terms=terms, size_prior=SizePrior(upper=secret or 1)
            )
            model.sweep(state, rng, times=sweeps, warming=False)
            counts = state["counts"]
        return statistics(counts, made[0][0])

    def found(size):
        before = np.array([sample(move=False) for _ in range(size)])
        after = np.array([sample(move=True) for _ in range(size)])
        columns = [c for c in range(before.shape[1]) if np.ptp(before[:, c]) > 0 or np.ptp(after[:, c]) > 0]
        return [same_law_p_value(before[:, c], after[:, c]) for c in columns]

    return found


def urn(alpha, n=N, records=2_000):
    return DirichletMultinomial(n=n, cells=CELLS, alpha=Fraction(alpha), records=records)


def noisy(noise, scale, n=N):
    return PerturbedHistogram(n=n, cells=CELLS, records=CELLS, noise=noise, scale=scale, publish="counts")


def records(noise, scale, n=N, smoothing=0, size=400):
    return PerturbedHistogram(
        n=n, cells=CELLS, records=size, noise=noise, scale=scale, publish="records", smoothing=Fraction(smoothing)
    )


def mixed(weight):
    return SmoothedHistogram(n=N, cells=CELLS, records=2_000, weight=Fraction(weight))


SECRET = 3_000
CASES = {
    "urn": ([urn(80)], [urn(40)], None),
    "mixture": ([mixed("0.3")], [mixed("0.2")], None),
    "seen laplace": ([noisy("laplace", 20.0)], [noisy("laplace", 40.0)], None),
    "seen discrete laplace": ([noisy("discrete-laplace", 20.0)], [noisy("discrete-gaussian", 60.0)], None),
    "seen discrete gaussian": ([noisy("discrete-gaussian", 30.0)], [noisy("discrete-gaussian", 60.0)], None),
    "records laplace": ([records("laplace", 100.0)], [records("laplace", 500.0)], None),
    "records discrete gaussian": ([records("discrete-gaussian", 300.0)], [records("discrete-gaussian", 100.0)], None),
    "records smoothed": ([records("laplace", 5.0, smoothing="0.3")], [records("laplace", 5.0, smoothing="0.1")], None),
    "urn of ten million": ([urn(10**5, n=10**7)], [urn(8 * 10**4, n=10**7)], None),
    "records of ten million": ([records("laplace", 2e5, n=10**7)], [records("laplace", 8e5, n=10**7)], None),
    "secret urn": ([urn(80, None)], [urn(50, None)], SECRET),
    "secret seen": ([noisy("discrete-laplace", 30.0, None)], [noisy("discrete-laplace", 60.0, None)], SECRET),
    "secret records": ([records("discrete-laplace", 30.0, None)], [records("discrete-laplace", 80.0, None)], SECRET),
    "urn, noisy counts and records": (
        [urn(80), noisy("laplace", 100.0), records("laplace", 20.0)],
        [urn(30), noisy("laplace", 10.0), records("laplace", 20.0)],
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_sweeps_keep_the_joint_law(name):
    mechanisms, _, secret = CASES[name]
    assert sequential(p_values(mechanisms, mechanisms, secret=secret), size=400)


@pytest.mark.parametrize("name", CASES)
def test_a_slightly_wrong_likelihood_is_caught(name):
    mechanisms, wrong, secret = CASES[name]
    assert not sequential(p_values(mechanisms, wrong, secret=secret), size=1_500)
