"""Pictures of posteriors of releases: densities of functionals, a distribution function with its band, intervals."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privurn.drawing import cdf_picture, density_panels, interval_rows
from privurn.errors import FormatError, ModelError
from privurn.tables.cells import cell_values, is_numeric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privurn.inference.counts.results import CountPosterior, Picture

POINTS = 60
"""Places at which a distribution function is computed."""


def posterior_picture(found: "CountPosterior", *, kind: "Picture", level: float, naive: bool) -> "Figure":
    """A picture: "density" of each functional, "cdf" with a credible band, "intervals" beside the released figures.

    `naive` adds the analysis that takes the release for the data.
    """
    title = {"population": "the population", "sample": "the confidential sample", "urn": "the urn's limit"}[found.of]
    title = f"Posterior of {title}"
    if kind == "cdf":
        return _cdf(found, title=title, level=level, naive=naive)
    named = [each for each in found.summary(level=level) if each.name in found.names]
    analyses = {"posterior": found.draws, **({"naive": found.naive()} if naive else {})}
    if kind == "density":
        draws = {analysis: {each: own.flat(each) for each in found.names} for analysis, own in analyses.items()}
        return density_panels(draws, named, released=found.face_value, title=title)
    if kind == "intervals":
        beside = analyses["naive"].summary([each.name for each in named], level=level) if naive else ()
        groups = {"posterior": named, **({"naive": beside} if naive else {})}
        return interval_rows(groups, released=found.face_value, title=title)
    raise FormatError(f"the picture {kind!r} is not known.", hint="density, cdf, intervals, n or traces")


def _cdf(found: "CountPosterior", *, title: str, level: float, naive: bool) -> "Figure":
    """The distribution function of the first column of numbers."""
    name, places = _places(found)
    asked = [f"cdf({_written(name)}, {value!r})" for value in places.tolist()]
    curve = found.ask(asked)
    curves = {}
    for analysis, drawn in {"posterior": curve.draws, **({"naive": curve.naive()} if naive else {})}.items():
        draws = np.column_stack([drawn.flat(each) for each in asked])
        curves[analysis] = draws[~np.isnan(draws).any(axis=1)]  # of a sample without records
        if not len(curves[analysis]):
            raise ModelError("no draw holds a record, so there is no distribution function.", hint="Ask for the population")
    figures = curve.face_value
    released = [figures[each] for each in asked]
    steps = not _in_bins(found, name)
    return cdf_picture(places, curves, released=released, level=level, steps=steps, name=name, title=title)


def _places(found: "CountPosterior") -> tuple[str, NDArray[np.float64]]:
    """The first column of numbers, and at most POINTS of them."""
    domain = found.observed[0].domain
    numeric = [] if domain is None else [name for name, each in domain.columns.items() if is_numeric(each)]
    if domain is None or not numeric:
        raise ModelError("a distribution function needs a column of numbers.", hint="kind='density' or kind='intervals'")
    name = numeric[0]
    own = domain.columns[name]
    if _in_bins(found, name):
        edges = np.array([float(edge) for edge in getattr(own, "edges", ())])
        return name, np.unique(np.concatenate([edges, np.linspace(edges[0], edges[-1], max(2, POINTS - len(edges)))]))
    values = cell_values(own)[: own.n_values]
    return name, values[np.unique(np.linspace(0, len(values) - 1, POINTS).round().astype(int))]


def _in_bins(found: "CountPosterior", name: str) -> bool:
    """Whether the column's numbers are spread out within bins."""
    domain = found.observed[0].domain
    return domain is not None and domain.columns[name].kind == "bins" and found.job.within != "midpoint"


def _written(name: str) -> str:
    return f"'{name}'" if "'" not in name else f'"{name}"'
