"""The main job from start to end on the bundled example: plan, budget, release, verify, look.

`make demo` runs this. Every step is the command that a custodian would type; the last table needs the confidential data, so
it is marked confidential.
"""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

FOLDER = Path("demo-output")
GUARANTEE = "--epsilon 1 --delta 1e-6"
GRID = "--grid 0:200000:1000"


def say(text: str) -> None:
    print(f"\n{text}", flush=True)


def privurn(words: str) -> None:
    print(f"$ privurn {words}", flush=True)
    subprocess.run([sys.executable, "-m", "privurn", *shlex.split(words)], check=True, cwd=FOLDER)


def quantiles(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> dict[str, float]:
    names = {"10%": 0.1, "25%": 0.25, "median": 0.5, "75%": 0.75, "90%": 0.9, "99%": 0.99}
    return {"mean": float(values.mean()), **{name: float(np.quantile(values, q)) for name, q in names.items()}}


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    say("1. A table of incomes (simulated, always the same)")
    privurn("example incomes.csv")
    say("2. What can be released? (public quantities only)")
    privurn(f"plan --n 50000 {GRID} {GUARANTEE}")
    say("3. Set the budget once")
    privurn("ledger init incomes.csv.ledger --epsilon 2 --delta 2e-6 --name incomes")
    say("4. Release")
    privurn(f"release incomes.csv --column income {GRID} {GUARANTEE} -o release")
    privurn(f"release incomes.csv --column income {GRID} {GUARANTEE} --mechanism dirichlet-multinomial -o urn")
    say("5. Anyone can check it")
    privurn("verify release")
    privurn("ledger show incomes.csv.ledger")
    say("6. Before and after")
    before = np.loadtxt(FOLDER / "incomes.csv", skiprows=1)
    after = [np.genfromtxt(FOLDER / name / "data.csv", skip_header=1) for name in ("release", "urn")]
    print("   CONFIDENTIAL: the left column is computed from the confidential data; do not publish this table.")
    print(f"   {'':8}{'before':>12}{'after':>12}{'by an urn':>12}")
    for (name, old), new, urn in zip(quantiles(before).items(), *(quantiles(each).values() for each in after), strict=True):
        print(f"   {name:8}{old:12,.0f}{new:12,.0f}{urn:12,.0f}")
    say("7. What may be concluded, from what was published alone")
    privurn('infer release --ask mean --ask q0.5 --ask "P(x>100000)" --seed 1')
    say(f"Everything is in {FOLDER}/: the folders release and urn may be published, the rest not.")


if __name__ == "__main__":
    main()
