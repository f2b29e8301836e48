"""Downstream inference: table 2 of the Pitman-Yor paper, with the workflow it could not run and ours beside it.

    python -m experiments.posterior_table [--replicates R] [--draws D] [--flat] [--seed S] [--json]

M. C. Menicucci, M. Beraha, S. Favaro and R. Lazzarini (2026, arXiv 2606.26073), section 4.1 and appendix C.1: n = 2000 records
from a two-component beta mixture on a regular grid in [0, 1], 20 replicates; bias and RMSE of the posterior mean of five
functionals of the population, coverage and length of 95% intervals, seconds and effective draws a second.

The paper does not print the mixture, the grid, the numbers of released records and bins, or epsilon. Here: 0.8 Beta(3, 8) +
0.2 Beta(8, 3) on 0, 0.02, ..., 1, and m = 250, which make the Dirichlet process intervals about as long as in print. Every
mechanism works on the cells of the grid. Histograms and the Dirichlet-multinomial urn meet epsilon = 2, delta = 1e-5. The
Dirichlet process urn does not, and cannot: its delta is m/(strength + n + m - 1) at every epsilon, and stands in the table.

The population's prior is the paper's, a Dirichlet process of strength 1 with a uniform base (--flat: one prior record in each
cell). For the Dirichlet process release "urn" is the posterior in print; it is that of the urn's limit. "population" is that
of the law behind the data (docs/proofs/posteriors.md). Noisy counts are the paper's "direct perturbed histogram". With --flat
the 51 prior records are not few against 250 released ones: they pull every functional towards the uniform's, and intervals at
this truth cover less; that is the prior's doing, for all workflows that use it alike.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction

import numpy as np

from experiments.posterior_runs import (
    FUNCTIONALS,
    Chains,
    Drawn,
    Floats,
    beta_mixture,
    closed_draws,
    evaluate,
    latent_draws,
    on_grid,
    simulate,
)
from privurn.inference.counts.composition import composition
from privurn.inference.draws import effective_draws
from privurn.mechanisms.base_measures import FiniteBase
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.perturbed_histogram import calibrate_perturbed_histogram
from privurn.mechanisms.pitman_yor import PitmanYor
from privurn.privacy.calibration import round_up_to_rational, smallest_alpha
from privurn.privacy.profile import Guarantee

N = 2_000
RECORDS = 250
STEP = "0.02"
STRENGTH = Fraction(1)
GUARANTEE = Guarantee(epsilon=2.0, delta=1e-5)
DRAWS = 1_000
WARM = 200
LEVEL = 0.95

PROCESS_URN, PROCESS, COUNTS, SAMPLED, MULTINOMIAL = (
    "Dirichlet process, urn",
    "Dirichlet process, population",
    "noisy counts",
    "perturbed histogram, records",
    "Dirichlet-multinomial",
)

PRINTED: dict[tuple[str, str], tuple[float, ...]] = {  # bias, RMSE, coverage, length, seconds, effective draws a second
    (PROCESS_URN, "mean"): (0.0018, 0.0125, 1.00, 0.0525, 0.021, 38238.1),
    (PROCESS_URN, "median"): (0.0017, 0.0156, 1.00, 0.0665, 0.021, 37809.5),
    (PROCESS_URN, "Q1"): (0.0008, 0.0110, 0.85, 0.0389, 0.021, 37877.7),
    (PROCESS_URN, "Q3"): (-0.0058, 0.0285, 1.00, 0.1382, 0.021, 37685.2),
    (PROCESS_URN, "P(x > 0.75)"): (0.0004, 0.0162, 1.00, 0.0709, 0.021, 38237.2),
    (COUNTS, "mean"): (-0.0010, 0.0055, 1.00, 0.0264, 1.271, 607.4),
    (COUNTS, "median"): (0.0031, 0.0105, 1.00, 0.0683, 1.271, 602.7),
    (COUNTS, "Q1"): (-0.0097, 0.0109, 1.00, 0.0613, 1.271, 591.0),
    (COUNTS, "Q3"): (-0.0042, 0.0135, 1.00, 0.0832, 1.271, 598.8),
    (COUNTS, "P(x > 0.75)"): (-0.0024, 0.0069, 1.00, 0.0660, 1.271, 571.7),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One workflow and functional, over all replicates; `printed` are the paper's six figures where it has them."""

    workflow: str
    records: int | None
    epsilon: float
    delta: float
    functional: str
    replicates: int
    truth: float
    bias: float
    rmse: float
    coverage: float
    length: float
    seconds: float
    effective_draws_a_second: float
    printed: tuple[float, ...] | None


@dataclass(frozen=True)
class Workflow:
    """A mechanism, and draws of the functionals given what it published."""

    name: str
    mechanism: Mechanism
    analyse: Callable[[Floats, np.random.Generator], Drawn]
    epsilon: float
    delta: float

    @property
    def records(self) -> int | None:
        """Released records; None where counts are published."""
        return None if self.name == COUNTS else self.mechanism.records


def workflows(*, flat: bool = False, draws: int = DRAWS) -> Iterator[Workflow]:
    """All of the table, in its order."""
    run = Chains(chains=2, warm=min(WARM, draws), draws=draws // 2, thin=1)
    points, reduction = on_grid(STEP)
    cells = len(points)
    prior = np.full(cells, 1.0 if flat else float(STRENGTH) / cells)
    epsilon, delta = GUARANTEE.epsilon, GUARANTEE.delta

    def latent(mechanism: Mechanism) -> Callable[[Floats, np.random.Generator], Drawn]:
        return lambda released, rng: latent_draws(mechanism, released, prior=prior, reduction=reduction, run=run, rng=rng)

    process = PitmanYor(n=N, records=RECORDS, strength=STRENGTH, base=FiniteBase(cells=cells))

    def closed(about: str) -> Callable[[Floats, np.random.Generator], Drawn]:
        def analyse(released: Floats, rng: np.random.Generator) -> Drawn:
            found = composition(process, counts=released)
            return closed_draws(found, about=about, reduction=reduction, n_draws=draws, rng=rng)

        return analyse

    yield Workflow(PROCESS_URN, process, closed("urn"), epsilon, process.profile.delta(epsilon))
    of_population = latent(process) if flat else closed("population")
    yield Workflow(PROCESS, process, of_population, epsilon, process.profile.delta(epsilon))
    counted = calibrate_perturbed_histogram(n=N, cells=cells, guarantee=GUARANTEE, publish="counts")
    yield Workflow(COUNTS, counted, latent(counted), epsilon, delta)
    for records in (RECORDS, N):
        sampled = calibrate_perturbed_histogram(n=N, cells=cells, guarantee=GUARANTEE, records=records)
        yield Workflow(SAMPLED, sampled, latent(sampled), epsilon, delta)
    for records in (RECORDS, N):
        alpha = smallest_alpha(n=N, cells=cells, records=records, epsilon=epsilon, delta=delta)
        urn = DirichletMultinomial(n=N, cells=cells, alpha=round_up_to_rational(alpha), records=records)
        yield Workflow(MULTINOMIAL, urn, latent(urn), epsilon, delta)


def table(*, replicates: int, seed: int, flat: bool = False, draws: int = DRAWS, quiet: bool = True) -> list[Row]:
    """Simulate: in each replicate all workflows see the same data."""
    points, reduction = on_grid(STEP)
    law = beta_mixture(points)
    truth = evaluate(reduction, law)
    chosen = list(workflows(flat=flat, draws=draws))
    for each in workflows(flat=flat, draws=20):  # compile before the clock runs
        warm = np.random.default_rng(0)
        each.analyse(simulate(each.mechanism, warm.multinomial(N, law), rng=warm), warm)
    streams = np.random.SeedSequence(seed).spawn(replicates)
    found: dict[int, list[tuple[Floats, Floats, Floats, float, Floats]]] = {i: [] for i in range(len(chosen))}
    for done, stream in enumerate(streams):
        if not quiet:
            print(f"\rreplicate {done + 1} of {replicates} ", end="", file=sys.stderr, flush=True)
        rng = np.random.default_rng(stream)
        counts = rng.multinomial(N, law)
        releases: dict[int, Floats] = {}
        for i, each in enumerate(chosen):
            key = id(each.mechanism)  # two analyses of one mechanism see the same release
            if key not in releases:
                releases[key] = simulate(each.mechanism, counts, rng=rng)
            drawn = each.analyse(releases[key], rng)
            low, high = np.quantile(drawn.flat, [0.5 - LEVEL / 2.0, 0.5 + LEVEL / 2.0], axis=0)
            worth = [
                effective_draws(drawn.values[:, :, f]) if drawn.markov else float(len(drawn.flat)) for f in range(len(truth))
            ]
            found[i].append((drawn.flat.mean(axis=0), low, high, drawn.seconds, np.array(worth) / drawn.seconds))
    if not quiet:
        print(file=sys.stderr)
    return [row for i, each in enumerate(chosen) for row in _rows(each, found[i], truth)]


def _rows(workflow: Workflow, found: list[tuple[Floats, Floats, Floats, float, Floats]], truth: Floats) -> Iterator[Row]:
    means, lows, highs, rates = (np.array([each[i] for each in found]) for i in (0, 1, 2, 4))
    for f, name in enumerate(FUNCTIONALS):
        errors = means[:, f] - truth[f]
        covered = (lows[:, f] - 1e-12 <= truth[f]) & (truth[f] <= highs[:, f] + 1e-12)
        yield Row(
            workflow=workflow.name,
            records=workflow.records,
            epsilon=workflow.epsilon,
            delta=workflow.delta,
            functional=name,
            replicates=len(found),
            truth=float(truth[f]),
            bias=float(errors.mean()),
            rmse=float(np.sqrt((errors**2).mean())),
            coverage=float(covered.mean()),
            length=float((highs - lows)[:, f].mean()),
            seconds=float(np.mean([each[3] for each in found])),
            effective_draws_a_second=float(rates[:, f].mean()),
            printed=PRINTED.get((workflow.name, name)),
        )


def show(rows: list[Row], *, seed: int, flat: bool, draws: int) -> None:
    """Print the table, the paper's figures below ours."""
    prior = "one prior record in each cell" if flat else "a Dirichlet process of strength 1"
    print(f"n = {N:,}, grid step {STEP}, {rows[0].replicates} replicates, seed {seed}; prior: {prior}.")
    print(f"{draws:,} draws each; Markov chains: 2 of {WARM} + {draws // 2} sweeps, all of them timed.\n")
    heading = f"{'':14}{'truth':>9}{'bias':>9}{'RMSE':>9}{'coverage':>10}{'length':>9}{'seconds':>9}{'ESS/s':>11}"
    last = None
    for row in rows:
        if (row.workflow, row.records) != last:
            size = "" if row.records is None else f", m = {row.records:,}"
            print(f"{row.workflow}{size}; ({row.epsilon:g}, {row.delta:.2g})-DP\n{heading}")
            last = row.workflow, row.records
        print(
            f"  {row.functional:12}{row.truth:>9.4f}{row.bias:>9.4f}{row.rmse:>9.4f}{row.coverage:>10.2f}{row.length:>9.4f}"
            f"{row.seconds:>9.4f}{row.effective_draws_a_second:>11,.0f}"
        )
        if row.printed is not None:
            bias, rmse, coverage, length, seconds, rate = row.printed
            print(f"    {'in print':19}{bias:>9.4f}{rmse:>9.4f}{coverage:>10.2f}{length:>9.4f}{seconds:>9.3f}{rate:>11,.0f}")


def main() -> None:
    """Read the options, simulate, print."""
    parser = argparse.ArgumentParser(prog="python -m experiments.posterior_table", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replicates", type=int, default=20, help="data sets (default 20, as in the paper)")
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"posterior draws of each workflow (default {DRAWS})")
    parser.add_argument("--flat", action="store_true", help="one prior record in each cell instead of the paper's prior")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="the rows, nothing else")
    options = parser.parse_args()
    if options.replicates < 1 or options.draws < 20:
        parser.error("at least one replicate and 20 draws are needed")
    chosen = {"replicates": options.replicates, "seed": options.seed, "flat": options.flat, "draws": options.draws}
    rows = table(**chosen, quiet=options.json)
    if options.json:
        print(json.dumps([asdict(each) for each in rows], indent=1))
        return
    show(rows, seed=options.seed, flat=options.flat, draws=options.draws)


if __name__ == "__main__":
    main()
