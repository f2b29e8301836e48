"""Public bins of real tables for the benchmarks of whole tables; the files themselves are the user's own.

Adult: `adult.data` of the UCI repository (32,561 records); 14 columns, 149 cells. CPS: `cps.csv.gz` of the package taxcalc; 12
columns.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ADULT = [
    "age",
    "workclass",
    "weight",
    "education",
    "education_years",
    "marital",
    "occupation",
    "relationship",
    "race",
    "sex",
    "gain",
    "loss",
    "hours",
    "country",
    "income",
]
ADULT_BINS: dict[str, list[float] | None] = {
    "age": [*range(20, 90, 5)],
    "weight": [80e3, 120e3, 150e3, 180e3, 210e3, 250e3, 330e3],
    "gain": [1, 3000, 5000, 8000, 15000],
    "loss": [1, 1500, 1800, 1950, 2200],
    "hours": [10, 20, 30, 35, 40, 41, 46, 51, 60],
}
EIGHT = ("age", "workclass", "education", "marital", "occupation", "relationship", "sex", "income")
"""For methods that are too slow for more."""

CPS_BINS: dict[str, list[float] | None] = {
    "age_head": [*range(20, 85, 5)],
    "age_spouse": [1, 25, 35, 45, 55, 65, 75],
    "e00200": [1, 5e3, 1e4, 15e3, 2e4, 25e3, 3e4, 4e4, 5e4, 6e4, 75e3, 1e5, 15e4, 25e4],
    "e00900": [-1, 1, 5e3, 2e4, 5e4],
    "e00300": [1, 50, 200, 1000, 5000],
    "e01700": [1, 5e3, 1e4, 2e4, 4e4],
    "e02400": [1, 8e3, 12e3, 16e3, 24e3, 32e3],
    "nu18": [1, 2, 3],
    "XTOT": [2, 3, 4, 5, 6],
    "MARS": None,
    "fips": None,
    "EIC": None,
}


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Cells of all records, a row for each column."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: NDArray[np.uint16]
    values: tuple[NDArray[np.float64] | None, ...] = ()

    def of(self, names: tuple[str, ...]) -> "CodedTable":
        places = [self.names.index(name) for name in names]
        return CodedTable(names, tuple(self.sizes[j] for j in places), self.codes[places])


def coded(columns: dict[str, NDArray], bins: dict[str, list[float] | None]) -> CodedTable:  # type: ignore[type-arg]
    sizes, codes = [], []
    for name, column in columns.items():
        edges = bins.get(name)
        if edges is not None:
            own, size = np.searchsorted(np.array(edges, float), column.astype(float), side="right"), len(edges) + 1
        else:
            labels, own = np.unique(column, return_inverse=True)
            size = len(labels)
        codes.append(own.astype(np.uint16))
        sizes.append(size)
    return CodedTable(tuple(columns), tuple(sizes), np.array(codes))


def adult(path: Path) -> CodedTable:
    rows = [line.split(", ") for line in path.read_text().splitlines() if line.count(",") == 14]
    columns = {name: np.array([row[j] for row in rows]) for j, name in enumerate(ADULT) if name != "education_years"}
    return coded(columns, ADULT_BINS)


def cps(path: Path) -> CodedTable:
    import pandas as pd

    frame = pd.read_csv(path, usecols=list(CPS_BINS))
    return coded({name: frame[name].to_numpy() for name in CPS_BINS}, CPS_BINS)
