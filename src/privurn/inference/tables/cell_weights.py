"""Joint cells of a regression's columns with a weight each."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.counts.plans import _values
from privurn.inference.tables.answers import Figures
from privurn.inference.tables.fine import Ranges
from privurn.mechanisms.table_measurements import MeasuredTable


def cell_weights(table: MeasuredTable, parts: Sequence[Figures], ranges: Mapping[int, Ranges]) -> dict[str, NDArray[Any]]:
    """Values of each column in the cells, or means of its ranges, and the weights."""
    part = parts[0]
    if part.cells is None or part.weights is None or table.domain is None:
        raise ModelError("weights belong to a regression.", hint="infer(release, LinearRegression('y ~ x'))")
    domains = list(table.domain.columns.items())
    named = [domains[j] for j in part.places]
    values = [
        ranges[j].means(_values(domain)) if j in ranges else _values(domain)
        for j, (_, domain) in zip(part.places, named, strict=True)
    ]
    columns = {name: own[cells] for (name, _), own, cells in zip(named, values, part.cells, strict=True)}
    return {**columns, "weight": part.weights}
