"""Public bins of real tables for the benchmarks of whole tables; the files themselves are the user's own.

Adult: `adult.data` of the UCI repository (32,561 records); 14 columns, 149 cells. CPS: `cps.csv.gz` of the package taxcalc; 12
columns. Credit: `credit_data.csv` of the package whynot (150,000 records); 9 columns.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privurn.domain import Categories, ColumnDomain, Grid, TableDomain

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
CREDIT_BINS: dict[str, list[float] | None] = {
    "SeriousDlqin2yrs": None,
    "RevolvingUtilizationOfUnsecuredLines": [0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0],
    "age": [25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 80],
    "NumberOfTime30-59DaysPastDueNotWorse": [1, 2, 3],
    "DebtRatio": [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0],
    "MonthlyIncome": [1, 1500, 2500, 3500, 4500, 5500, 7000, 9000, 12000],
    "NumberOfOpenCreditLinesAndLoans": [2, 4, 6, 8, 10, 12, 15, 20],
    "NumberOfTimes90DaysLate": [1, 2],
    "NumberRealEstateLoansOrLines": [1, 2, 3],
}
CREDIT = ("default", "used", "age", "late30", "debt", "income", "lines", "late90", "houses")


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Cells of all records, a row for each column; `labels` of columns that are categories, None for bins."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: NDArray[np.uint16]
    labels: tuple[tuple[str, ...] | None, ...] = ()

    def of(self, names: tuple[str, ...]) -> "CodedTable":
        places = [self.names.index(name) for name in names]
        labels = tuple(self.labels[j] for j in places) if self.labels else ()
        return CodedTable(names, tuple(self.sizes[j] for j in places), self.codes[places], labels)

    @property
    def domain(self) -> TableDomain:
        """Bins stand for their numbers, from 0 on."""
        columns: dict[str, ColumnDomain] = {}
        for name, size, own in zip(self.names, self.sizes, self.labels or (None,) * len(self.names), strict=True):
            columns[name] = Grid(0, size - 1, 1) if own is None else Categories(own)
        return TableDomain(columns)


def coded(columns: dict[str, NDArray], bins: dict[str, list[float] | None]) -> CodedTable:  # type: ignore[type-arg]
    sizes, codes = [], []
    labels: list[tuple[str, ...] | None] = []
    for name, column in columns.items():
        edges = bins.get(name)
        if edges is not None:
            own, size = np.searchsorted(np.array(edges, float), column.astype(float), side="right"), len(edges) + 1
            labels.append(None)
        else:
            found, own = np.unique(column, return_inverse=True)
            size = len(found)
            labels.append(tuple(map(str, found)))
        codes.append(own.astype(np.uint16))
        sizes.append(size)
    return CodedTable(tuple(columns), tuple(sizes), np.array(codes), tuple(labels))


def adult(path: Path) -> CodedTable:
    rows = [line.split(", ") for line in path.read_text().splitlines() if line.count(",") == 14]
    columns = {name: np.array([row[j] for row in rows]) for j, name in enumerate(ADULT) if name != "education_years"}
    return coded(columns, ADULT_BINS)


def cps(path: Path) -> CodedTable:
    import pandas as pd

    frame = pd.read_csv(path, usecols=list(CPS_BINS))
    return coded({name: frame[name].to_numpy() for name in CPS_BINS}, CPS_BINS)


def credit(path: Path) -> CodedTable:
    """Unknown incomes count as none."""
    import pandas as pd

    frame = pd.read_csv(path, usecols=list(CREDIT_BINS)).fillna(0)
    found = coded({name: frame[name].to_numpy() for name in CREDIT_BINS}, CREDIT_BINS)
    return CodedTable(CREDIT, found.sizes, found.codes, found.labels)
