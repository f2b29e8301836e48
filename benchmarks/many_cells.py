"""How long the posterior of a release over 51,408 cells takes, compiling included, by the usual rule.

Lognormal incomes of 100,000 people on a grid of 10, epsilon 1: the urn, noisy counts, and the default release. Each case has a
process of its own, with nothing compiled; what is printed are processor seconds on one core, and the figures. The target is 60
s for `infer`.

    python -m benchmarks.many_cells               these three
    python -m benchmarks.many_cells urn           this one
    python -m benchmarks.many_cells flat          noisy counts under the flat prior, by the chain on the counts: minutes
    python -m benchmarks.many_cells urn --warm    with what is compiled already
"""

import os
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any

CASES = ("urn", "noisy-counts", "default", "flat")


def run(case: str) -> str:
    """One case: seconds and figures."""
    import numpy as np

    import privurn

    incomes = np.random.default_rng(1).lognormal(10.3, 0.7, 100_000)
    grid = privurn.Grid(0, 514_070, 10)
    recipe = {"urn": privurn.Urn(), "default": None}.get(case, privurn.NoisyCounts(publish="counts"))
    more: dict[str, Any] = {"delta": 1e-6} if case in ("urn", "default") else {}
    begin = time.process_time()
    made = privurn.release(incomes, recipe, domain=grid, epsilon=1, ledger=False, **more)
    released = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = privurn.infer(
            made,
            privurn.CountModel(prior="flat") if case == "flat" else None,
            ask=["mean", "q0.5", "P(x>100000)"],
            run=privurn.Run(threads=1),
        )
    rows = found.summary()
    spent = time.process_time() - released
    truth = (incomes.mean(), np.median(incomes), float((incomes > 100_000).mean()))
    told = "; ".join(
        f"{row.name} {row.mean:.5g} [{row.lower:.5g}, {row.upper:.5g}], true {true:.5g}"
        for row, true in zip(rows, truth, strict=True)
    )
    drawn = f"{found.draws.n_chains} x {found.draws.n_draws:,} draws, {'mixed' if found.mixed else 'NOT mixed'}"
    return f"{case:12s} release {released - begin:5.1f} s, infer {spent:5.1f} s: {drawn}; {told}"


def main() -> None:
    cases = [each for each in sys.argv[1:] if each in CASES] or list(CASES[:3])
    if "--here" in sys.argv:
        print(run(cases[0]), flush=True)
        return
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            cache = {} if "--warm" in sys.argv else {"PRIVURN_CACHE_DIR": folder}
            subprocess.run([sys.executable, "-m", __spec__.name, case, "--here"], env=os.environ | cache, check=True)


if __name__ == "__main__":
    main()
