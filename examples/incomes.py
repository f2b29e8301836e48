"""Makes the bundled example: 50,000 yearly incomes, rounded to 250, as a CSV file. Always the same (fixed seed).

    python examples/incomes.py incomes.csv

The numbers are simulated: a mixture of part-time work, a broad middle and a long tail, with the heaping at round numbers
that people's answers show.
"""

import sys
from pathlib import Path

import numpy as np

ROWS = 50_000
SEED = 20_240_501


def incomes() -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    rng = np.random.default_rng(SEED)
    kind = rng.choice(3, ROWS, p=[0.25, 0.6, 0.15])
    scale = np.array([9_500, 33_000, 62_000])[kind]
    spread = np.array([0.45, 0.35, 0.6])[kind]
    raw = scale * np.exp(spread * rng.standard_normal(ROWS))
    heaped = rng.random(ROWS) < 0.3
    return (250 * np.round(np.where(heaped, 5_000 * np.round(raw / 5_000), raw) / 250)).astype(np.int64)


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "incomes.csv")
    path.write_text("income\n" + "\n".join(map(str, incomes())) + "\n")
    print(f"wrote {path} ({ROWS:,} rows)")


if __name__ == "__main__":
    main()
