"""How long a regression from noisy sums of many records takes until it has mixed, by the usual rule.

Two covariates, linear and logistic, epsilon 1, n public. The target is 120 s on one core, whatever n is; what is printed are
processor seconds, the fewest effective draws of any parameter, and the largest R-hat.

    python -m benchmarks.survey_size             32,561 and a million records
    python -m benchmarks.survey_size 1000 1e7    other numbers
"""

import sys
import time
import warnings

import numpy as np

from privurn.inference.run import Run
from privurn.inference.sums.fit import fit
from privurn.inference.sums.logistic_model import LogisticModel, LogisticPrior
from privurn.inference.sums.observed import Observed
from privurn.inference.sums.regression_model import RegressionModel, RegressionPrior

PRECISION = np.array([[1.0, 0.4], [0.4, 1.3]])
LOWER, UPPER = (-3.0, -3.0, -5.0), (3.0, 3.5, 5.0)


def cases() -> dict[str, tuple[RegressionModel | LogisticModel, np.ndarray]]:
    linear = RegressionModel(lower=LOWER, upper=UPPER, prior=RegressionPrior.from_bounds(LOWER, UPPER))
    prior = LogisticPrior.from_bounds(LOWER[:2], UPPER[:2])
    logistic = LogisticModel(lower=LOWER[:2], upper=UPPER[:2], prior=prior)
    common = {"beta": [0.3, -1.0, 1.0], "mu": [-0.5, 0.7], "Phi": PRECISION}
    return {"linear": (linear, linear.pack(**common, tau=1.5)), "logistic": (logistic, logistic.pack(**common))}


def main() -> None:
    for name, (model, theta) in cases().items():
        for n in [int(float(each)) for each in sys.argv[1:]] or [32_561, 10**6]:
            rng = np.random.default_rng(3)
            scales = np.full(model.n_entries, 9.0)
            sums = model.statistic(model.simulate(theta, n=n, rng=rng))
            observed = Observed(values=sums + scales * rng.laplace(size=len(scales)), scales=scales, n=n)
            begin, clock = time.process_time(), time.monotonic()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = fit(model, observed=observed, run=Run(seed=1, threads=1))
            spent, passed = time.process_time() - begin, time.monotonic() - clock
            rows = [each for each in found.summary() if each.deviation > 0.0]
            least = min(min(each.effective_draws, each.tail_effective_draws) for each in rows)
            worst = max(each.r_hat or 1.0 for each in rows)
            print(
                f"{name:9s} n = {n:>9,}: {spent:6.1f} processor s ({passed:.1f} s in all), {found.draws.n_draws:,} draws "
                f"of {found.draws.n_chains} chains, {least:,.0f} effective draws at least, R-hat at most {worst:.3f}, "
                f"{'mixed' if found.mixed else 'NOT mixed'}; {found.draws.attributes['sampler']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
