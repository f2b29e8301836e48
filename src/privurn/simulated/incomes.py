"""50,000 yearly incomes, rounded to 250: part-time work, a broad middle and a long tail.

They heap at round numbers, as people's answers do.
"""

import numpy as np
from numpy.typing import NDArray

ROWS = 50_000
SEED = 20_240_501


def incomes() -> NDArray[np.int64]:
    """The incomes, in currency units."""
    rng = np.random.default_rng(SEED)
    kind = rng.choice(3, ROWS, p=[0.25, 0.6, 0.15])
    scale = np.array([9_500, 33_000, 62_000])[kind]
    spread = np.array([0.45, 0.35, 0.6])[kind]
    raw = scale * np.exp(spread * rng.standard_normal(ROWS))
    heaped = rng.random(ROWS) < 0.3
    return (250 * np.round(np.where(heaped, 5_000 * np.round(raw / 5_000), raw) / 250)).astype(np.int64)
