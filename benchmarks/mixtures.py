"""How fast are sweeps of mixtures from privatised data?

Three-component data of the mixture paper's section 4.1 behind Laplace noise, Gaussian kernel, Dirichlet process of strength 1.

Limits, one core: a sweep costs at most 5 times (Neal 5) and 10 times (slice) what drawing its random numbers alone costs; both
are timed in turn (processor time) and the median ratio is printed. n = 100,000, slice sampler: 1000 sweeps of two chains on two
cores within 60 s and 2 GiB. Which sampler gives most for its time: `benchmarks.mixture_samplers`.
"""

import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from privurn.inference.mixtures import GaussianKernel, Keep, MixtureModel, Neal5, SliceSampler
from privurn.inference.mixtures.samplers import MixtureSampler
from privurn.inference.run import Schedule, run_chains
from privurn.mechanisms.local import LaplaceChannel

BOUNDS = (-10.0, 10.0)
SAMPLERS: dict[str, Callable[..., MixtureSampler]] = {
    "neal5": Neal5,
    "slice": SliceSampler,
}


def three_values(n: int, rng: np.random.Generator) -> Any:
    y = rng.choice([-5.0, 0.0, 5.0], size=n) + rng.normal(size=n)
    while np.any(outside := np.abs(y) > 10.0):
        y[outside] = rng.choice([-5.0, 0.0, 5.0], size=outside.sum()) + rng.normal(size=outside.sum())
    return y


def three_components(n: int, epsilon: float, *, seed: int = 1) -> tuple[MixtureModel, Any]:
    rng = np.random.default_rng(seed)
    y = three_values(n, rng)
    channel = LaplaceChannel.calibrate(bounds=BOUNDS, epsilon=epsilon)
    return MixtureModel(channel=channel, kernel=GaussianKernel()), channel.simulate(y, rng=rng)


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def neal5_numbers(n: int, sweeps: int, rng: np.random.Generator) -> float:
    """What one sweep of Neal 5 draws: a cluster, a value, a decision."""
    total = 0.0
    for _ in range(n * sweeps):
        total += rng.random() + rng.standard_normal() + rng.random()
    return total


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def slice_numbers(n: int, sweeps: int, rng: np.random.Generator) -> float:
    """What one sweep of the slice sampler draws: a slice, a cluster, a piece, a value and a decision about it."""
    total = 0.0
    for _ in range(n * sweeps):
        total += rng.random() + rng.random() + rng.random() + rng.standard_normal() + rng.random()
    return total


def ratio(name: str, n: int, *, pairs: int = 15) -> None:
    model, z = three_components(n, 10.0)
    sampler = SAMPLERS[name](model=model, released=z, keep=Keep(atoms=0))
    rng = np.random.default_rng(2)
    state = sampler.start(rng)
    numbers = neal5_numbers if name == "neal5" else slice_numbers
    numbers(1, 1, rng)
    sampler.advance(state, rng, sweeps=500, thin=1, warming=True)
    sweeps = 200_000 // n
    found, quickest = [], np.inf
    for _ in range(pairs):
        start = time.process_time()
        sampler.advance(state, rng, sweeps=sweeps, thin=1, warming=False)
        middle = time.process_time()
        numbers(n, 4 * sweeps, rng)  # about as long, so that both see the same disturbances
        found.append(4.0 * (middle - start) / (time.process_time() - middle))
        quickest = min(quickest, middle - start)
    limit = 5 if name == "neal5" else 10
    speed = f"{sweeps / quickest:9,.0f} sweeps/s, {quickest / sweeps / n * 1e9:5.0f} ns a record"
    print(f"{name:6} n = {n:5}: {speed}; {statistics.median(found):4.1f} times its random numbers (limit {limit})", flush=True)


def large(n: int = 100_000, sweeps: int = 1000) -> None:
    model, z = three_components(n, 10.0)
    sampler = SliceSampler(model=model, released=z, keep=Keep(atoms=0))
    run_chains(sampler, schedule=Schedule(chains=1, warm_up=1, draws=1, seed=1))  # compiled
    start = time.perf_counter()
    half = Schedule(chains=2, warm_up=sweeps // 2, draws=sweeps - sweeps // 2, seed=1)
    run_chains(sampler, schedule=half, threads=2)
    spent, memory = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    words = f"two chains of {sweeps} sweeps side by side in {spent:.1f} s (limit 60 s)"
    print(f"slice, n = {n:,}: {words}, {memory:.2f} GiB in all (limit 2)")


def main() -> None:
    for name in ("neal5", "slice"):
        for n in (200, 1000):
            ratio(name, n)
    large()


if __name__ == "__main__":
    main()
