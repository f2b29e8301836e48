"""What does the default release of a column of numbers cost, after counting, and what do draws from its posterior?

Noise, posterior and records of 200, 4,096 and 100,000 cells: under 0.3, 1 and 20 seconds of an idle processor, with memory in
proportion to the cells. 1,000 independent draws of a mean, three quantiles and five shares on 4,096 cells: under 20 seconds.
Each in a process of its own, kernels compiled before.

    python -m benchmarks.noisy_tree
"""

import subprocess
import sys

TARGETS = {200: 0.3, 4_096: 1.0, 100_000: 20.0}
SETTINGS = ((10_000, 1.0, 0.0), (1_000_000, 1.0, 0.0), (1_000_000, 1.0, 1e-6))

COMMON = """
import resource, time
import numpy as np
from privurn.counts import CountTable
from privurn.inference.trees.independent import IndependentDraws
from privurn.mechanisms.noisy_tree_recipe import calibrate_noisy_tree
from privurn.privacy.entropy import SystemEntropy
from privurn.privacy.profile import Guarantee
from privurn.inference.trees.nearest import face_value_counts

def counted(cells, n):
    x = (np.arange(cells) + 0.5) / cells
    law = np.exp(-0.5 * (np.log(x / 0.1) / 0.8) ** 2) / x
    counts = np.random.default_rng(1).multinomial(n, law / law.sum())
    return CountTable(np.flatnonzero(counts), counts[counts > 0])

def measured(cells, n, epsilon, delta, counts):
    made = calibrate_noisy_tree(n=n, shape=(cells,), guarantee=Guarantee(epsilon=epsilon, delta=delta))
    return made.measurements(made.draw(counts, entropy=SystemEntropy()).counts)

def released(cells, n, epsilon, delta, counts):
    face_value_counts(measured(cells, n, epsilon, delta, counts), records=n, rng=np.random.default_rng(2))

for delta in (0.0, 1e-6):  # compile
    released(64, 1_000, 1.0, delta, counted(64, 1_000))
"""
RELEASE = """
counts = counted({cells}, {n})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start, work = time.perf_counter(), time.process_time()
released({cells}, {n}, {epsilon}, {delta}, counts)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(time.perf_counter() - start, time.process_time() - work, (peak - before) / 1024)
"""
DRAWS = """
from privurn.domain import Grid, JointDomain
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.plans import reduce
asked = ["mean", "q0.25", "q0.5", "q0.75", *(f"P({{low}}<=x<{{low + 400}})" for low in range(0, 2000, 400))]
wanted = reduce(parse_functionals(asked), domain=JointDomain({{"x": Grid(0, 4095, 1)}}))
seen = measured(4096, 10_000, 1.0, 0.0, counted(4096, 10_000))
IndependentDraws(measured(64, 1_000, 1.0, 0.0, counted(64, 1_000))).draw(2, rng=np.random.default_rng(1))  # compile
start, work = time.perf_counter(), time.process_time()
for batch in IndependentDraws(seen).batches(1_000, rng=np.random.default_rng(3)):
    for masses in batch.masses.T:
        wanted.evaluate(masses)
print(time.perf_counter() - start, time.process_time() - work, 0)
"""


def measured(code: str) -> tuple[float, float, float]:
    """Seconds on the clock and of the processor, and MiB beyond what was there before."""
    done = subprocess.run([sys.executable, "-c", COMMON + code], capture_output=True, text=True, check=True)
    clock, processor, memory = (float(each) for each in done.stdout.split()[-3:])
    return clock, processor, memory


def main() -> None:
    print("   cells          n  epsilon    delta   clock   processor   target   memory")
    for cells, target in TARGETS.items():
        for n, epsilon, delta in SETTINGS:
            clock, processor, memory = measured(RELEASE.format(cells=cells, n=n, epsilon=epsilon, delta=delta))
            setting = f"{cells:8,}  {n:9,}  {epsilon:7g}  {delta:7g}"
            print(f"{setting}  {clock:5.2f} s  {processor:8.2f} s  {target:5.1f} s  {memory:5.0f} MiB", flush=True)
    clock, processor, _ = measured(DRAWS.format())
    print(f"1,000 draws of nine functionals on 4,096 cells: {clock:.1f} s, processor {processor:.1f} s (target 20 s)")


if __name__ == "__main__":
    main()
