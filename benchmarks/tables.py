"""Whole tables: total variation of all one-, two- and three-way marginals of an n-row synthetic table, and time.

Add-remove neighbours, delta = 1e-6; n is not used by privurn. Floors: columns shuffled independently, a resample of the data.
Beside the marginals (mean, and the worst in brackets): the error of a regression that guesses which table a record is from, in
what chance gives, and with `--response COLUMN` the accuracy of a logistic regression of that column's most frequent value,
tested on a fifth of the records that no method saw, and how far its coefficients are off in standard errors. Peers run in an
environment of their own (`--peer-python`, with smartnoise-synth installed) and state their settings. `--kept FILE` keeps every
result as it comes, and a later run with the same settings goes on from there.

    python -m benchmarks.tables --adult adult.data --epsilon 1 --seeds 5
    python -m benchmarks.tables --simulated tree --epsilon 0.3 1 4 --response c9
    python -m benchmarks.tables --adult adult.data --eight --epsilon 1 --peer aim --peer-python PEERS/bin/python
"""

import argparse
import json
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.table_data import EIGHT, CodedTable, adult, cps, credit
from privurn.inference.tables.fit import AT_FACE_VALUE, fit_mixture
from privurn.inference.tables.sampling import synthetic_cells
from privurn.mechanisms.marginal_counts import MarginalLayout, count_marginals
from privurn.mechanisms.marginals import NoisyMarginals
from privurn.mechanisms.marginals_layout import every_set
from privurn.mechanisms.marginals_recipe import calibrate_marginals
from privurn.mechanisms.table_measurements import MeasuredTable
from privurn.privacy.entropy import SystemEntropy
from privurn.privacy.profile import Guarantee
from privurn.reports.comparison.whole_tables import classified, marginal_distances, propensity_ratio, resampled, shuffled

DELTA = 1e-6
Codes = NDArray[np.uint16]
Made = tuple[Codes, dict[str, Any]]
"""Cells of the records made, and what it took, in seconds; with the settings of a peer."""


def simulated(kind: str, n: int = 30_000, columns: int = 10, seed: int = 0) -> CodedTable:
    """A mixture of products, or a tree of columns each of which depends on one before: the home ground of MST."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 13, columns))
    codes = np.empty((columns, n), np.uint16)
    classes = rng.choice(8, n, p=rng.dirichlet(np.full(8, 2.0)))
    for j, size in enumerate(sizes):
        parent = classes if kind == "mixture" else codes[rng.integers(0, j)] if j else np.zeros(n, int)
        law = rng.dirichlet(np.full(size, 0.7), int(parent.max()) + 1)
        codes[j] = np.minimum((rng.random(n)[:, None] > np.cumsum(law, axis=1)[parent]).sum(axis=1), size - 1)
    return CodedTable(tuple(f"c{j}" for j in range(columns)), sizes, codes)


def mechanism(sizes: tuple[int, ...], epsilon: float) -> NoisyMarginals:
    guarantee = Guarantee(epsilon=epsilon, delta=DELTA, neighbouring="add-remove")
    return calibrate_marginals(n=None, sizes=sizes, guarantee=guarantee)


def ours(table: CodedTable, epsilon: float, seed: int) -> Made:
    start, processor = time.perf_counter(), time.process_time()
    made = mechanism(table.sizes, epsilon)
    counts = count_marginals([table.codes], made.layout)
    measured = MeasuredTable(made, np.asarray(made.draw(counts, entropy=SystemEntropy()).weights, np.float64))
    noise = time.perf_counter() - start
    fit = fit_mixture(measured, seed=seed, settings=AT_FACE_VALUE)
    cells = synthetic_cells(fit.mixture, round(measured.n), seed=seed)
    spent = {"wall": time.perf_counter() - start, "processor": time.process_time() - processor, "before the fit": noise}
    return cells, spent


def peer(name: str, python: str, table: CodedTable, epsilon: float, seed: int) -> Made:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "codes.npz", Path(folder) / "out.npz"
        np.savez(source, codes=table.codes, names=np.array(table.names))
        script = Path(__file__).with_name("table_peers.py")
        arguments = [python, str(script), name, str(epsilon), str(DELTA), str(source), str(target), str(seed)]
        done = subprocess.run(arguments, check=True, capture_output=True, text=True)
        return np.load(target)["codes"], json.loads(done.stdout.splitlines()[-1])


def independence(table: CodedTable, seed: int) -> Made:
    return shuffled(table.codes, rng=np.random.default_rng(seed)), {}


def bootstrap(table: CodedTable, seed: int) -> Made:
    return resampled(table.codes, rng=np.random.default_rng(seed)), {}


def figures(table: CodedTable, held_out: Codes, codes: Codes, response: str | None, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, 7])
    found: dict[str, float] = {}
    for each in marginal_distances(table.codes, codes, table.sizes):
        found |= {f"{each.order}-way": each.mean, f"{each.order}-way worst": each.worst}
    found["propensity"] = propensity_ratio(table.codes, codes, table.sizes, rng=rng)
    if response is not None:
        place = table.names.index(response)
        learnt = classified(table.codes, held_out, codes, table.sizes, response=place, rng=rng)
        found |= {"accuracy": learnt.accuracy, "coefficients off": learnt.coefficients_off}
    return found


def words(found: dict[str, float]) -> str:
    """Means with the worst of each order in brackets, then the rest."""
    shown = [
        f"{name} {value:.4f} ({found[f'{name} worst']:.3f})" if f"{name} worst" in found else f"{name} {value:.3f}"
        for name, value in found.items()
        if not name.endswith("worst")
    ]
    return "  ".join(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--adult", type=Path, help="adult.data of the UCI repository")
    parser.add_argument("--cps", type=Path, help="cps.csv.gz of taxcalc")
    parser.add_argument("--credit", type=Path, help="credit_data.csv of whynot")
    parser.add_argument("--simulated", choices=("mixture", "tree"))
    parser.add_argument("--eight", action="store_true", help="eight columns of Adult")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--peer", choices=("mst", "aim"), nargs="*", default=[])
    parser.add_argument("--peer-python", default="python")
    parser.add_argument("--without-privurn", action="store_true", help="peers and floors only")
    parser.add_argument("--kept", type=Path, help="file of finished runs, to go on from")
    parser.add_argument("--response", help="a column for a classifier; a fifth of the records is then held out")
    given = parser.parse_args()
    if given.adult is not None:
        table = adult(given.adult)
    elif given.cps is not None:
        table = cps(given.cps)
    elif given.credit is not None:
        table = credit(given.credit)
    else:
        table = simulated(given.simulated or "mixture")
    table = table.of(EIGHT) if given.eight else table
    held_out = table.codes[:, :0]
    if given.response is not None:
        codes = table.codes[:, np.random.default_rng(0).permutation(table.codes.shape[1])]
        kept = round(0.8 * codes.shape[1])
        table, held_out = replace(table, codes=np.ascontiguousarray(codes[:, :kept])), codes[:, kept:]
    cells = MarginalLayout(table.sizes, every_set(table.sizes, order=3)).total
    print(f"{table.codes.shape[1]:,} records, {len(table.sizes)} columns, {sum(table.sizes)} cells, {cells:,} by up to three")
    print(f"add-remove, delta {DELTA:g}; privurn: Marginals() and {AT_FACE_VALUE}", flush=True)
    about = [*described(table), DELTA, given.response]
    for epsilon in given.epsilon:
        methods: dict[str, Callable[[int], Made]] = {
            "independence": lambda seed: independence(table, seed),
            "bootstrap": lambda seed: bootstrap(table, seed),
            "privurn": lambda seed, e=epsilon: ours(table, e, seed),  # type: ignore[misc]
        }
        if given.without_privurn:
            del methods["privurn"]
        for name in given.peer:
            methods[name] = lambda seed, p=name, e=epsilon: peer(p, given.peer_python, table, e, seed)  # type: ignore[misc]
        for name, method in methods.items():
            own = [*about, epsilon, name, repr(AT_FACE_VALUE) if name == "privurn" else ""]
            results = [
                remembered(given.kept, [*own, seed], lambda s=seed, m=method: one_run(table, held_out, m, given.response, s))  # type: ignore[misc]
                for seed in range(given.seeds)
            ]
            found, spent = zip(*results, strict=True)
            medians = {key: float(np.median([each[key] for each in found])) for key in found[0]}
            settings = spent[0].pop("settings", None)
            taken = {key: f"{np.median([each[key] for each in spent]):.1f} s" for key in spent[0]}
            print(f"epsilon {epsilon:g}  {name:13s} {words(medians)}  {taken}", flush=True)
            if settings is not None:
                print(f"{'':12s} {name} is {settings}", flush=True)


def described(table: CodedTable) -> list[Any]:
    """What tells one table from another in a file of finished runs: also two with the same columns, by their records."""
    return [table.names, table.sizes, table.codes.shape[1], zlib.crc32(table.codes.tobytes())]


def one_run(
    table: CodedTable, held_out: Codes, method: Callable[[int], Made], response: str | None, seed: int
) -> tuple[dict[str, float], dict[str, Any]]:
    codes, spent = method(seed)
    return figures(table, held_out, codes, response, seed), spent


def remembered(file: Path | None, settings: list[Any], work: Callable[[], Any]) -> Any:
    """What an earlier run has found with the same settings, or what is found now."""
    key = json.dumps(settings)
    lines = file.read_text().splitlines() if file is not None and file.exists() else []
    for line in lines:
        done, result = json.loads(line)
        if done == key:
            return result
    result = work()
    if file is not None:
        with file.open("a") as out:
            out.write(json.dumps([key, result]) + "\n")
    return result


if __name__ == "__main__":
    main()
