"""Do intervals from a noisy tree cover? Fixed truths, resampled with replacement; the default posterior, and combined copies.

    python -m experiments.tree_coverage [RUNS] [SETTING...]

For every setting: how often 95% intervals of the mean, the quartiles and ten ranges hold the truth, on average over them and in
the worst of them; the width of the mean's interval over that of the plain one from the confidential records; and coverage of
the mean by the rule for 20 copies. Some seconds a run on 1,024 cells; settings can be run one at a time.
"""

import sys

import numpy as np
from benchmarks.face_value import shapes

from privurn.counts import CountTable
from privurn.domain import Grid, JointDomain
from privurn.inference.counts.functionals import parse_functionals
from privurn.inference.counts.plans import reduce
from privurn.inference.trees.combine import combine
from privurn.inference.trees.independent import IndependentDraws
from privurn.mechanisms.tree_layout import calibrate_noisy_tree
from privurn.privacy.profile import Guarantee

CELLS = 1024
DRAWS = 400
COPIES = 20
SETTINGS = {
    "smooth-1": ("smooth", 10_000, 1.0, 0.0, "replace-one"),
    "smooth-0.1": ("smooth", 10_000, 0.1, 0.0, "replace-one"),
    "spikes-1": ("spikes", 10_000, 1.0, 1e-6, "replace-one"),
    "sparse-1": ("sparse", 5_000, 1.0, 0.0, "add-remove"),
    "bimodal-0.3": ("bimodal", 5_000, 0.3, 1e-6, "replace-one"),
    "uniform-1": ("uniform", 5_000, 1.0, 0.0, "add-remove"),
    "smooth-large": ("smooth", 50_000, 1.0, 0.0, "replace-one"),
    "spikes-large": ("spikes", 50_000, 1.0, 1e-6, "add-remove"),
}
"""Law, records, epsilon, delta, relation."""


def cover(name: str, runs: int) -> None:
    """One line of the table."""
    law_name, n, epsilon, delta, relation = SETTINGS[name]
    law = shapes(CELLS)[law_name]
    width = CELLS // 10
    ranges = [f"P({low}<=x<{low + width})" for low in range(0, 10 * width, width)]
    domain = JointDomain({"x": Grid(0, CELLS - 1, 1)})
    asked = reduce(parse_functionals(["mean", "q0.25", "q0.5", "q0.75", *ranges]), domain=domain)
    truth = asked.evaluate(law)
    guarantee = Guarantee(epsilon=epsilon, delta=delta, neighbouring=relation)  # type: ignore[arg-type]
    secret = relation == "add-remove"
    mechanism = calibrate_noisy_tree(n=None if secret else n, guess=n, shape=(CELLS,), guarantee=guarantee)
    held: dict[str, list[bool]] = {each: [] for each in asked.names}
    copies, wide = [], []
    values = np.arange(CELLS)
    for run in range(runs):
        rng = np.random.default_rng([run, len(name)])
        counts = rng.multinomial(n, law)
        table = CountTable(np.flatnonzero(counts), counts[counts > 0])
        drawn = IndependentDraws(mechanism.measurements(mechanism.simulate(table, rng=rng))).draw(DRAWS, rng=rng)
        rows = [asked.evaluate(each) for each in drawn.masses.T]
        for each in asked.names:
            low, high = np.quantile([row[each] for row in rows], [0.025, 0.975])
            held[each].append(bool(low - 1e-12 <= truth[each] <= high + 1e-12))
        means = [row["mean"] for row in rows]
        plain = float(np.sqrt(counts @ values**2 / n - (counts @ values / n) ** 2)) / np.sqrt(n)
        wide.append(np.subtract(*np.quantile(means, [0.975, 0.025])) / (2 * 1.96 * plain))
        tables = drawn.counts[:, :COPIES]
        sizes = tables.sum(axis=0)
        q = values @ tables / sizes
        low, high = combine(q, (values**2 @ tables / sizes - q**2) / sizes).interval()
        copies.append(low <= truth["mean"] <= high)
    shares = {each: float(np.mean(found)) for each, found in held.items()}
    worst = min(shares, key=shares.__getitem__)
    everything = f"covered {np.mean(list(shares.values())):.3f}  mean {shares['mean']:.3f}  worst {shares[worst]:.3f} ({worst})"
    print(f"{name:13} {runs:4} runs  {everything}  width {np.mean(wide):.2f}  copies {np.mean(copies):.3f}", flush=True)


def main() -> None:
    """All settings, or those that are named."""
    words = sys.argv[1:]
    runs = int(words[0]) if words and words[0].isdigit() else 200
    for name in [each for each in words if each in SETTINGS] or SETTINGS:
        cover(name, runs)


if __name__ == "__main__":
    main()
