"""The censoring supplement's table S5.1 and figures 1-10 again: how many records are censored, and what that costs.

    python -m experiments.censoring_supplement [--replicates R] [--seed S] [--quick] [--figures FOLDER] [--json]

J. Hu, M. R. Williams and T. D. Savitsky, Mechanisms for global differential privacy under Bayesian data synthesis (arXiv
2205.05003), supplement: n = 2000 records from Beta(0.5, 3), a beta synthesizer with phi ~ U(0, 1) and lambda ~ Pareto(0.1,
1.5), R = 100 replicates, epsilon 5, 4, 3. Their figures are violins without numbers, so ours stand beside the truth; their
table has numbers, which stand beside ours. Posteriors are drawn by quadrature on a grid that closes in on the posterior:
right for a simulation, not for a release, where the grid must be public. Nothing here is confidential.

An unfitted reproduction of the whole table is impossible: the supplement holds the script, in which the weights are input,
but neither how they are made nor the factors of its downscaling. NOTES, printed with the table, says what was fitted to it.
"""

import argparse
import json
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.drawing.palette import SERIES
from privurn.mechanisms.asymptotic_pseudo_posterior import log_likelihood
from privurn.mechanisms.models import Beta
from privurn.mechanisms.record_weights import levelled_weights, linear_weights, truncated_weights

Floats = NDArray[np.float64]

RECORDS = 2000
SHAPES = (0.5, 3.0)
EPSILONS = (5.0, 4.0, 3.0)
LEVELS = 4
"""Times the grid closes in."""

BOX = Beta(mean=(0.0, 1.0), precision=(0.1, 200.0), points=(31, 31), margin=1e-15)
DOWNSCALE = {"Weighted-e": 0.92, "Censor_w": 0.8}
SWEEP = (1.0, 0.95, 0.92, 0.9, 0.85, 0.8, 0.75, 0.7)
"""Other factors of downscaling: how much of the table hangs on the two that were fitted."""

PLAIN_CENSORING = "Censor_w, weights of Weighted"
NOTES = {
    "stated": "n, R, Beta(0.5, 3), the priors, epsilon, M = epsilon/2 and the censored likelihood (S2); the noise of PH (S1)",
    "not stated": (
        "how the weights are made (the script reads them as data: alpha), the factors of downscaling (S5), over which draws of "
        "the parameters a record counts as censored, the number of those draws, and the bins of PH (S1: log n or sqrt n, say)"
    ),
    "chosen, with nothing to tune": (
        "weights 1 - (D_i - min D)/(max D - min D), D_i the largest |log f| over all draws of the unweighted posterior: the "
        "linear rule for weighted pseudo-posteriors. (The other one, weights proportional to 1/D_i, makes all weighted bounds "
        "equal: none or all records would be truncated.) So no number in the row Weighted-e, nor in the figures for "
        "Unweighted, Weighted, Weighted-e, Censor_uw and PH, was tuned to the paper's"
    ),
    "fitted": (
        "the weights of Censor_w, raised until each record has 0.95 of the largest weighted bound, because the weights of "
        f"Weighted censor too few (row {PLAIN_CENSORING}); and the factors of downscaling {DOWNSCALE}. So the other three rows "
        "say that such weights and factors exist, not that they are the paper's"
    ),
}
PUBLISHED = {  # min, Q1, median, mean, Q3, max, sd of the number of records out of 2000, at epsilon = 4
    "Weighted-e": (0, 130, 219, 195, 272, 364, 103.48),
    "Censor_w": (0, 404, 425, 408, 440, 549, 92.56),
    "Weighted-e downscaled": (0, 0, 93, 91, 165, 269, 86.49),
    "Censor_w downscaled": (0, 0, 0, 144, 328, 413, 165.66),
}
LEGEND = {
    "Unweighted": "no privacy",
    "Weighted": "aDP, whatever epsilon comes out",
    "Weighted-e": "aDP",
    "Censor_w": "M = epsilon/2; weights from the data: aDP",
    "Censor_uw": "M = epsilon/2: epsilon-DP for add/remove, 2 epsilon for replacement",
    "Censor_uw/4": "M = epsilon/4: epsilon-DP for replacement",
    "PH": "perturbed histogram, sqrt(n) bins: epsilon-DP for replacement",
}
PRIVACY = {
    "Unweighted": "no privacy",
    "Weighted": "aDP",
    "Weighted-e": "aDP",
    "Censor_w": "aDP; paper: DP",
    "Censor_uw": "DP, add/remove",
    "Censor_uw/4": "DP, replace",
    "PH": "DP",
}
MEANING = {
    "bound": "largest Lipschitz bound",
    "15th": "15th percentile",
    "90th": "90th percentile",
    "median": "median",
    "mean": "mean",
    "max-ECDF": "max-ECDF distance",
}
UTILITIES = ("max-ECDF", "mean", "median", "15th", "90th")
FIGURES = {  # figure: quantity, epsilons
    1: ("bound", EPSILONS),
    2: ("15th", (5.0,)),
    3: ("90th", (5.0,)),
    4: ("15th", EPSILONS),
    5: ("90th", EPSILONS),
    6: ("median", EPSILONS),
    7: ("max-ECDF", (4.0,)),
    8: ("mean", (4.0,)),
    9: ("median", (4.0,)),
    10: ("90th", (4.0,)),
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One synthesizer on one replicate: largest Lipschitz bound, records at the threshold, and utilities of its records."""

    method: str
    epsilon: float
    bound: float
    at_threshold: int
    utilities: dict[str, float]


SUFFIX = " times "
"""Between a method and a factor of the sweep."""


def posterior_draws(
    summaries: Floats, weights: Floats, *, size: int, rng: np.random.Generator, clip: float | None = None
) -> tuple[Beta, NDArray[np.int64]]:
    """The last grid, and the numbers of the points drawn on it."""
    model, counts = BOX, np.ones(len(summaries), np.int64)
    for level in range(LEVELS):
        logs = np.log(model.prior()) + log_likelihood(model, summaries, counts, weights=weights, clip=clip)
        law = np.exp(logs - logs.max())
        if level == LEVELS - 1:
            break
        kept = (law > 1e-8).reshape(model.points)
        model = replace(
            model,
            mean=_closer(model.mean, kept.any(axis=1), logarithm=False),
            precision=_closer(model.precision, kept.any(axis=0), logarithm=True),
        )
    return model, rng.choice(model.size, size=size, p=law / law.sum())


def _closer(bounds: tuple[float, float], kept: NDArray[np.bool_], *, logarithm: bool) -> tuple[float, float]:
    """The parts of the interval that matter, and one more on either side."""
    low, high = np.log(bounds) if logarithm else bounds
    where, width = np.flatnonzero(kept), (high - low) / len(kept)
    ends = max(low, low + width * (where[0] - 1)), min(high, low + width * (where[-1] + 2))
    return (float(np.exp(ends[0])), float(np.exp(ends[1]))) if logarithm else (float(ends[0]), float(ends[1]))


def lipschitz(summaries: Floats, model: Beta, points: NDArray[np.int64]) -> Floats:
    """Largest |log f| of each record over the drawn parameters."""
    coefficients = model.coefficients(model.grid()[np.unique(points)])
    return np.asarray(np.abs(model.log_density(summaries, coefficients)).max(axis=1))


def utilities(released: Floats, data: Floats) -> dict[str, float]:
    """Distance of the distribution functions from the data's, and the summaries whose truth is known."""
    both = np.sort(np.concatenate([released, data]))
    own, other = (np.searchsorted(np.sort(each), both, side="right") / len(each) for each in (released, data))
    low, middle, high = np.quantile(released, (0.15, 0.5, 0.9))
    values = (np.abs(own - other).max(), released.mean(), middle, low, high)
    return dict(zip(UTILITIES, map(float, values), strict=True))


def perturbed_histogram(data: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """Supplement S1 with sqrt(n) bins; a floating-point twin, for this simulation only."""
    bins = int(np.sqrt(len(data)))
    counts = np.histogram(data, bins, (0.0, 1.0))[0]
    noisy = np.maximum(counts + rng.laplace(0.0, 2.0 / epsilon, bins), 0.0)
    drawn = rng.choice(bins, len(data), p=noisy / noisy.sum())
    return np.asarray((drawn + rng.random(len(data))) / bins)


def replicate(rng: np.random.Generator, *, draws: int) -> list[Run]:
    """All synthesizers on one data set."""
    data = rng.beta(*SHAPES, RECORDS)
    summaries = BOX.summaries(data)
    ones = np.ones(RECORDS)
    runs: list[Run] = []

    def run(method: str, epsilon: float, weights: Floats, *, clip: float | None = None, count: int | None = None) -> Floats:
        """Draw, bound, release; returns the weighted bounds before clipping."""
        model, points = posterior_draws(summaries, weights, size=draws, rng=rng, clip=clip)
        bounds = weights * lipschitz(summaries, model, points)
        censored = int((bounds > clip).sum()) if clip is not None else 0
        released = model.sample(model.grid()[points[-1]], size=RECORDS, rng=rng)
        largest = float(bounds.max() if clip is None else min(clip, bounds.max()))
        at_threshold = censored if count is None else count
        found = utilities(released, data)
        runs.append(Run(method=method, epsilon=epsilon, bound=largest, at_threshold=at_threshold, utilities=found))
        return bounds

    bounds = run("Unweighted", 0.0, ones)
    linear = linear_weights(bounds)
    weighted_bounds = run("Weighted", 0.0, linear)
    levelled = levelled_weights(linear, weighted_bounds)
    for epsilon in EPSILONS:
        half = epsilon / 2.0
        for scale, suffix in ((None, ""), (DOWNSCALE, " downscaled")):
            if scale is not None and epsilon != 4.0:
                continue
            own = linear * (1.0 if scale is None else scale["Weighted-e"])
            cut = truncated_weights(own, bounds, threshold=half)
            run(f"Weighted-e{suffix}", epsilon, cut, count=int((own * bounds > half).sum()))
            run(f"Censor_w{suffix}", epsilon, levelled * (1.0 if scale is None else scale["Censor_w"]), clip=half)
        run("Censor_uw", epsilon, ones, clip=half)
        run("Censor_uw/4", epsilon, ones, clip=epsilon / 4.0)
        found = utilities(perturbed_histogram(data, epsilon, rng), data)
        runs.append(Run(method="PH", epsilon=epsilon, bound=half, at_threshold=0, utilities=found))
    run(PLAIN_CENSORING, 4.0, linear, clip=2.0)
    rng = rng.spawn(1)[0]  # what comes after leaves the numbers above as they are
    for factor in SWEEP:
        truncated = int((factor * linear * bounds > 2.0).sum())
        runs.append(Run(method=f"Weighted-e{SUFFIX}{factor:g}", epsilon=4.0, bound=2.0, at_threshold=truncated, utilities={}))
        run(f"Censor_w{SUFFIX}{factor:g}", 4.0, levelled * factor, clip=2.0)
    return runs


def simulate(*, replicates: int, seed: int, draws: int) -> list[Run]:
    """All replicates; replicate i is the same whatever their number."""
    seeds = np.random.SeedSequence(seed).spawn(replicates)
    return [run for each in seeds for run in replicate(np.random.default_rng(each), draws=draws)]


def selected(runs: list[Run], method: str, epsilon: float) -> list[Run]:
    """Replicates of one synthesizer; the unweighted and the weighted one know no epsilon."""
    return [run for run in runs if run.method == method and run.epsilon in (0.0, epsilon)]


def table(runs: list[Run]) -> dict[str, dict[str, Any]]:
    """Table S5.1 and one row more: our summaries beside the published ones."""
    rows: dict[str, dict[str, Any]] = {}
    for method in (*PUBLISHED, PLAIN_CENSORING):
        counts = np.array([run.at_threshold for run in selected(runs, method, 4.0)], float)
        q = np.quantile(counts, (0.0, 0.25, 0.5, 0.75, 1.0))
        ours = [float(each) for each in (q[0], q[1], q[2], counts.mean(), q[3], q[4], counts.std(ddof=1))]
        published = PUBLISHED.get(method)
        inside = None if published is None else bool(published[1] <= ours[2] <= published[4])
        fitted = None if published is None else method != "Weighted-e"
        rows[method] = {"ours": ours, "published": published, "median_in_published_quartiles": inside, "fitted": fitted}
    return rows


def sweep(runs: list[Run]) -> dict[str, dict[str, float]]:
    """Median number of truncated or censored records for other factors of downscaling."""
    return {
        name: {
            f"{factor:g}": float(np.median([run.at_threshold for run in selected(runs, f"{name}{SUFFIX}{factor:g}", 4.0)]))
            for factor in SWEEP
        }
        for name in DOWNSCALE
    }


def truth() -> dict[str, float]:
    """What the utilities should be: those of Beta(0.5, 3), and no distance."""
    from scipy.special import betaincinv

    a, b = SHAPES
    quantiles = {name: float(betaincinv(a, b, p)) for name, p in (("15th", 0.15), ("median", 0.5), ("90th", 0.9))}
    return {"max-ECDF": 0.0, "mean": a / (a + b), **quantiles}


def panel(runs: list[Run], quantity: str, epsilon: float, *, downscaled: bool = False) -> dict[str, Floats]:
    """What one panel of a figure shows: the quantity over the replicates, for each synthesizer."""
    names = {name: f"{name} downscaled" if downscaled and name in DOWNSCALE else name for name in LEGEND}
    found = {name: selected(runs, method, epsilon) for name, method in names.items()}
    return {
        name: np.array([run.bound if quantity == "bound" else run.utilities[quantity] for run in each])
        for name, each in found.items()
    }


def draw_figures(runs: list[Run], folder: Path) -> None:
    """One picture for each of the ten figures: the paper's violins in blue, ours beside them in orange, the truth dashed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    replicates = len(selected(runs, "Unweighted", 4.0))
    for number, (quantity, epsilons) in FIGURES.items():
        panels = [(f"epsilon = {e:g}", e, False) for e in epsilons]
        if number >= 7:
            panels = [("epsilon = 4, without downscaling", 4.0, False), ("epsilon = 4, with downscaling", 4.0, True)]
        size = (9.5, 2.9 * len(panels) + 0.9)
        figure, axes = pyplot.subplots(len(panels), 1, figsize=size, squeeze=False, sharey=True, layout="constrained")
        own = ("Unweighted",) if number == 1 else ()
        series = (*own, "Weighted", "Weighted-e", "Censor_w", *(() if number >= 7 else ("Censor_uw",)))
        series += ("PH",) if 1 < number < 7 else ()
        more = tuple(name for name in LEGEND if name not in series and not (number == 1 and name == "PH"))
        for axis, (title, epsilon, downscaled) in zip(axes[:, 0], panels, strict=True):
            values = panel(runs, quantity, epsilon, downscaled=downscaled)
            for place, name in enumerate((*series, *more), start=1):
                colour = SERIES[0] if name in series else SERIES[1]
                drawn = axis.violinplot([values[name]], positions=[place], showmedians=True)
                for part in (*drawn["bodies"], drawn["cbars"], drawn["cmins"], drawn["cmaxes"], drawn["cmedians"]):
                    part.set_color(colour)
            names = [f"{name}\n({PRIVACY[name]})" for name in (*series, *more)]
            axis.set_xticks(range(1, len(names) + 1), names, fontsize=9)
            line = epsilon / 2.0 if quantity == "bound" else truth()[quantity]
            axis.axhline(line, linestyle="--", linewidth=1.0, color="0.35", zorder=0)
            axis.axvline(len(series) + 0.5, linewidth=0.8, color="0.75")
            axis.set_title(title, fontsize=10)
            axis.set_ylabel(MEANING[quantity])
            axis.grid(axis="y", alpha=0.3)
        dashed = "epsilon/2" if quantity == "bound" else "no distance" if quantity == "max-ECDF" else "the truth, Beta(0.5, 3)"
        counted = "1 replicate" if replicates == 1 else f"R = {replicates} replicates"
        figure.suptitle(
            f"Supplement figure {number}: {MEANING[quantity]}, {counted}; dashed: {dashed}\n"
            "blue: as in the paper; orange: not in the paper's figure",
            fontsize=11,
        )
        figure.savefig(folder / f"figure_{number}.png", dpi=120)
        pyplot.close(figure)


def show(runs: list[Run]) -> None:
    """Print the table, what was fitted to it, and the figures' medians."""
    print("Table S5.1, epsilon = 4: records of 2000 with weight set to 0 (Weighted-e) or censored likelihood (Censor_w)")
    print(f"{'':38}{'min':>7}{'Q1':>7}{'median':>8}{'mean':>7}{'Q3':>7}{'max':>7}{'sd':>8}")
    for method, row in table(runs).items():
        for whose in ("published", "ours"):
            if row[whose] is not None:
                numbers = "".join(f"{x:{w}.0f}" for x, w in zip(row[whose], (6, 7, 8, 7, 7, 7, 8), strict=True))
                print(f"{(method if whose == 'published' or row['published'] is None else ''):30}{whose:>9}{numbers}")
        if row["median_in_published_quartiles"] is not None:
            answer = "lies" if row["median_in_published_quartiles"] else "does not lie"
            kind = "fitted to it" if row["fitted"] else "not fitted"
            print(f"{'':30}our median {answer} between the published quartiles ({kind})")
        else:
            print(f"{'':30}not fitted: what censoring does to the weights of Weighted")
    print("An unfitted reproduction of the last three published rows is impossible: the supplement leaves out their inputs.")
    for title, words in NOTES.items():
        print(textwrap.fill(f"{title}: {words}.", width=128, subsequent_indent="    "))
    print(
        "Median number of records for other factors of downscaling (* between the published quartiles of the downscaled row):"
    )
    for name, medians in sweep(runs).items():
        low, high = PUBLISHED[f"{name} downscaled"][1], PUBLISHED[f"{name} downscaled"][4]
        marked = (f"{factor}: {median:.0f}{'*' if low <= median <= high else ''}" for factor, median in medians.items())
        print(f"    {name:12}{'   '.join(marked)}")
    print()
    true = truth()
    for epsilon in EPSILONS:
        print(f"epsilon = {epsilon:g}: median over replicates [5%, 95%]; the truth in the heading")
        heads = "".join(f"{f'{name} ({true[name]:.3f})':>24}" for name in UTILITIES)
        print(f"{'':14}{'bound':>22}{heads}")
        for method in LEGEND:
            parts = [panel(runs, name, epsilon)[method] for name in ("bound", *UTILITIES)]
            cells = [f"{np.median(x):.3f} [{np.quantile(x, 0.05):.3f}, {np.quantile(x, 0.95):.3f}]" for x in parts]
            cells[0] = "-" if method == "PH" else cells[0]  # it has no likelihood
            print(f"{method:14}" + "".join(f"{cell:>{22 if i == 0 else 24}}" for i, cell in enumerate(cells)))
        print()
    for method, words in LEGEND.items():
        print(f"{method:14}{words}")


def main() -> None:
    """Read the options, simulate, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--quick", action="store_true", help="10 replicates with 300 draws of the parameters, not 100 with 2000"
    )
    parser.add_argument("--figures", type=Path, help="folder for pictures of figures 1-10")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    replicates = min(options.replicates, 10) if options.quick else options.replicates
    runs = simulate(replicates=replicates, seed=options.seed, draws=300 if options.quick else 2000)
    if options.figures is not None:
        draw_figures(runs, options.figures)
    if options.json:
        medians = {
            f"{epsilon:g}": {
                name: {method: float(np.median(x)) for method, x in panel(runs, name, epsilon).items()}
                for name in ("bound", *UTILITIES)
            }
            for epsilon in EPSILONS
        }
        found = {"table": table(runs), "notes": NOTES, "sweep": sweep(runs), "medians": medians, "truth": truth()}
        print(json.dumps(found))
    else:
        show(runs)


if __name__ == "__main__":
    main()
