"""Posterior draws: named arrays whose first two axes are chain and draw, and whether they can be trusted.

The arrays are NumPy's, so that everything works without xarray being imported; `to_datatree` gives the ArviZ object.
"""

import json
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privurn.errors import FormatError, ModelError
from privurn.errors import NotMixed as NotMixed  # noqa: PLC0414
from privurn.extras import need
from privurn.output_files import check_file, write_file

LARGEST_R_HAT = 1.05
SMALLEST_ESS = 100.0
"""A Markov chain that is worse than either has not mixed."""

FEWEST_EXCURSIONS, LARGEST_SPREAD = 10, 1.5
"""Where draws far away put the mean outside its interval or the deviation up by this factor, they must come that many times."""

ELSEWHERE = 0.1
"""Part of those times that must be in other chains than the one with most of them."""

SUFFIX = ".nc"


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One number of the posterior: its mean, deviation and equal-tailed interval, and how well the draws know them.

    Effective draws of the bulk and the tails go by ranks, and so does R-hat (folded too). Ranks do not see a few draws far
    away, such as a chain makes on its way from a bad start; a mean does, and so do `mean_effective_draws` and `standard_error`.
    `unbiased` is the estimate without a prior, with its standard error, where there is one. Of bins: what is `assumed` of where
    in them the records lie, and between what the figure lies (`lowest`, `highest`), at the same level, whatever that is.
    """

    name: str
    mean: float
    deviation: float
    lower: float
    upper: float
    level: float
    effective_draws: float = math.nan
    tail_effective_draws: float = math.nan
    mean_effective_draws: float = math.nan
    r_hat: float | None = None
    standard_error: float = math.nan
    unbiased: float | None = None
    unbiased_error: float | None = None
    assumed: str | None = None
    lowest: float | None = None
    highest: float | None = None

    @property
    def label(self) -> str:
        """The name with what is assumed."""
        return self.name if self.assumed is None else f"{self.name}, {self.assumed}"

    def between(self, ends: tuple[float, float] | None, assumed: str) -> "Summary":
        """The same with what is assumed of places within bins, and the ends; as it is where there are none."""
        return self if ends is None else replace(self, lowest=ends[0], highest=ends[1], assumed=assumed)

    def to_json(self) -> dict[str, Any]:
        """Plain data; what is not finite is null."""
        named = {key: getattr(self, key) for key in self.__dataclass_fields__}
        return {key: None if isinstance(value, float) and not np.isfinite(value) else value for key, value in named.items()}


@dataclass(frozen=True, kw_only=True)
class Draws:
    """Draws of named variables, each an array (chain, draw, ...).

    `markov` = False says that the draws are independent: they need no diagnostics, and each of them counts in full.
    `dims` and `coords` name the axes after the first two; `sample_stats` are diagnostics with the same first two axes;
    `attributes` is plain data that says how the draws were made. `labels` is what summaries call a variable whose name alone
    does not say what it is.

    >>> rng = np.random.default_rng(1)
    >>> draws = Draws(variables={"mean": rng.normal(5, 2, size=(4, 1000))}, markov=False)
    >>> draws.n_chains, draws.n_draws, f"{draws.summary()[0].mean:.0f}"
    (4, 1000, '5')
    """

    variables: Mapping[str, NDArray[Any]]
    markov: bool
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coords: Mapping[str, Sequence[Any] | NDArray[Any]] = field(default_factory=dict)
    sample_stats: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        every = [*self.variables.values(), *self.sample_stats.values()]
        if not all(isinstance(each, np.ndarray) for each in every):
            raise ModelError(
                "draws are NumPy arrays.", hint='For example Draws(variables={"x": np.zeros((4, 1000))}, markov=True)'
            )
        if not self.variables or any(each.ndim < 2 for each in every) or len({each.shape[:2] for each in every}) != 1:
            raise ModelError("draws need at least one variable, and the same chains and draws for all.")
        for name, axes in self.dims.items():
            if name in self.variables and len(axes) != self.variables[name].ndim - 2:
                raise ModelError(f"the dims of {name!r} do not fit its array.")

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in tuple(self.variables):  # whatever was asked for, also what has no hash
            raise ModelError(f"there are no draws of {name!r}.", hint=f"There are: {', '.join(self.variables)}")
        return self.variables[name]

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    @property
    def names(self) -> tuple[str, ...]:
        """Of the variables."""
        return tuple(self.variables)

    @property
    def n_chains(self) -> int:
        """Chains."""
        return int(next(iter(self.variables.values())).shape[0])

    @property
    def n_draws(self) -> int:
        """Draws of each chain."""
        return int(next(iter(self.variables.values())).shape[1])

    def flat(self, name: str) -> NDArray[Any]:
        """All draws of a variable, the chains one after the other."""
        values = self[name]
        return values.reshape(-1, *values.shape[2:])

    def summary(self, names: Sequence[str] | None = None, *, level: float = 0.95) -> tuple[Summary, ...]:
        """Each number of the named variables (all of them where left out)."""
        check_level(level, of="an interval")
        return tuple(self._summarise(label, values, level) for label, values in self.numbers(names))

    def numbers(self, names: Sequence[str] | None = None) -> Iterator[tuple[str, NDArray[np.float64]]]:
        """Each number of the named variables (all of them where left out): its label, and its draws (chain, draw)."""
        if names is not None and (isinstance(names, str) or not isinstance(names, Iterable)):
            raise ModelError("names are a list of variables.", hint=f"names={list(self.variables)!r}")
        for name in self.variables if names is None else names:
            values = self[name]
            for index in np.ndindex(values.shape[2:]):
                yield self._label(name, index), _defined(values[(..., *index)].astype(np.float64))

    @property
    def undefined(self) -> dict[str, int]:
        """Draws that are NaN, by number: those that hold no record that it speaks of. Summaries leave them out."""
        every = {name: values for name, values in self.variables.items() if values.dtype.kind == "f" and np.isnan(values).any()}
        counted = {
            self._label(name, index): int(np.isnan(values[(..., *index)]).sum())
            for name, values in every.items()
            for index in np.ndindex(values.shape[2:])
        }
        return {name: count for name, count in counted.items() if count}

    def _label(self, name: str, index: tuple[int, ...]) -> str:
        if not index:
            return self.labels.get(name, name)
        axes = self.dims.get(name, ())
        places = [
            str(self.coords[axes[i]][k]) if i < len(axes) and axes[i] in self.coords else str(k) for i, k in enumerate(index)
        ]
        return f"{name}[{', '.join(places)}]"

    def only(self, names: Sequence[str]) -> "Draws":
        """Named variables, or single numbers of them by the names that summaries use, such as beta[age]."""
        found: dict[str, NDArray[Any]] = {}
        for name in names:
            if name in self.variables:
                found[name] = self.variables[name]
                continue
            numbers = {
                self._label(each, index): values[(..., *index)]
                for each, values in self.variables.items()
                for index in np.ndindex(values.shape[2:])
            }
            if name not in numbers:
                raise ModelError(f"there are no draws of {name!r}.", hint=f"There are: {', '.join(list(numbers)[:20])}")
            found[name] = numbers[name]
        return replace(self, variables=found, sample_stats={})

    def _summarise(self, name: str, values: NDArray[np.float64], level: float) -> Summary:
        # values that were drawn: between two of them there may be none, as for whole numbers or a median of cells
        lower, upper = np.quantile(values, [0.5 - level / 2.0, 0.5 + level / 2.0], method="inverted_cdf")
        deviation = float(np.std(values, ddof=1)) if values.size > 1 else 0.0
        bulk = tail = plain = float(values.size)
        r_hat = None
        if self.markov:
            bulk, tail, plain = (effective_draws(values, of=each) for each in ("bulk", "tail", "mean"))
            r_hat = potential_scale_reduction(values)
        return Summary(
            name=name,
            mean=float(np.mean(values)),
            deviation=deviation,
            lower=float(lower),
            upper=float(upper),
            level=level,
            effective_draws=bulk,
            tail_effective_draws=tail,
            mean_effective_draws=plain,
            r_hat=r_hat,
            standard_error=deviation / np.sqrt(plain) if plain > 0.0 else float("nan"),
        )

    def problems(self, names: Sequence[str] | None = None, *, means: bool = True) -> tuple[str, ...]:
        """Why these draws should not be trusted, one sentence each; nothing where there is nothing to say.

        means=False goes by ranks alone: what quantiles and intervals need.
        """
        if not self.markov:
            return ()
        found = []
        for label, values in self.numbers(names):
            each = self._summarise(label, values, 0.95)
            worst = min(each.effective_draws, each.tail_effective_draws)
            if not worst >= SMALLEST_ESS or (each.r_hat is not None and not each.r_hat <= LARGEST_R_HAT):
                found.append(
                    f"{each.name} has not mixed: R-hat {each.r_hat:.3f}, {worst:.0f} effective draws; run longer chains."
                )
            elif means and (not each.mean_effective_draws >= SMALLEST_ESS or _decided_by_few(each, values)):
                found.append(
                    f"{each.name} has a mean and a deviation that a few draws far away decide: a start that is not forgotten, "
                    "or tails too heavy for a mean."
                )
        return tuple(found)

    def to_datatree(self) -> Any:
        """The draws as an xarray.DataTree with groups posterior and sample_stats, as ArviZ makes them."""
        need("inference", what="ArviZ objects and netCDF files")
        from arviz_base import from_dict

        groups: dict[str, dict[str, NDArray[Any]]] = {"posterior": dict(self.variables)}
        if self.sample_stats:
            groups["sample_stats"] = dict(self.sample_stats)
        dims = {name: list(axes) for name, axes in self.dims.items()}
        tree = from_dict(groups, dims=dims, coords={name: list(values) for name, values in self.coords.items()})
        tree["posterior"].attrs |= self._attributes()
        for name, label in self.labels.items():
            tree["posterior"][name].attrs["long_name"] = label
        return tree

    def _attributes(self) -> dict[str, Any]:
        """A netCDF file holds numbers and text: anything else as JSON."""
        stated = {"markov": int(self.markov), **self.attributes}
        plain = {key: value if isinstance(value, (str, int, float)) else json.dumps(value) for key, value in stated.items()}
        return {key: int(value) if isinstance(value, bool) else value for key, value in plain.items()}

    def to_inference_data(self) -> Any:
        """The draws as arviz.InferenceData, where ArviZ 0.x is installed."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # ArviZ 0.23 announces its successor at every import
                from arviz import from_dict
        except ImportError:
            raise FormatError(
                "InferenceData needs ArviZ 0.x, which is not installed.", hint="pip install 'arviz<1', or use to_datatree()"
            ) from None
        try:
            return from_dict(
                posterior=dict(self.variables),
                sample_stats=dict(self.sample_stats) or None,
                dims={name: list(axes) for name, axes in self.dims.items()},
                coords={name: list(values) for name, values in self.coords.items()},
                posterior_attrs=self._attributes(),
            )
        except TypeError:  # ArviZ 1.x has another from_dict, which makes DataTrees
            raise FormatError("this ArviZ has no InferenceData any more.", hint="Use to_datatree()") from None

    def save(self, path: str | Path) -> Path:
        """Write a netCDF file, all of it or nothing."""
        target = check_netcdf_name(path)
        tree = self.to_datatree()
        return write_file(target, lambda partial: tree.to_netcdf(partial, engine="h5netcdf"), new=False)


def _defined(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Chains of the same length without NaN, and without those that hold nothing else; as they are where all do."""
    absent = np.isnan(values)
    if not absent.any() or absent.all():
        return values
    kept = [chain[~missing] for chain, missing in zip(values, absent, strict=True) if not missing.all()]
    length = min(map(len, kept))
    return np.stack([chain[:length] for chain in kept])


def _decided_by_few(each: Summary, values: NDArray[np.float64]) -> bool:
    """Whether draws far away matter, and came in fewer excursions (draws in a row of one chain) than tell how often they come.

    That is how a chain looks that was on its way from a bad start: ranks do not see it, and neither do autocorrelations, since
    one long excursion looks like the first of many. Nor is it seen often where hardly any other chain has seen it.
    """
    wide = each.upper - each.lower
    far = (values < each.lower - wide) | (values > each.upper + wide)
    if wide <= 0.0 or not far.any():
        return False
    matters = not each.lower <= each.mean <= each.upper or each.deviation > LARGEST_SPREAD * float(np.std(values[~far]))
    excursions = far[:, 0].astype(np.int64) + (far[:, 1:] & ~far[:, :-1]).sum(axis=1)
    total, most = int(excursions.sum()), int(excursions.max())
    lonely = len(far) > 1 and total - most < ELSEWHERE * total
    return matters and (total < FEWEST_EXCURSIONS or lonely)


def check_level(level: float, *, of: str) -> None:
    """A probability strictly between 0 and 1, checked."""
    if not (isinstance(level, (int, float, np.number)) and 0.0 < level < 1.0):
        raise ModelError(f"the level of {of} must be between 0 and 1.", hint="For example level=0.95")


def check_netcdf_name(path: str | Path) -> Path:
    """A file name that draws can be written to, checked before any work is done."""
    target = Path(path)
    if target.suffix != SUFFIX:
        raise FormatError(f"draws are written as netCDF, not as {target.name!r}.", hint=f"Name a file that ends in {SUFFIX}")
    return check_file(target)


def effective_draws(values: NDArray[np.float64], *, of: Literal["bulk", "tail", "mean"] = "bulk") -> float:
    """Effective sample size of a (chain, draw) array (Vehtari et al. 2021).

    Of the bulk, rank-normalised; of the 5% tails; or of the mean, which goes by the numbers themselves.
    """
    if np.ptp(values) == 0.0:
        return float("nan") if values.size == 0 else float(values.size)
    if values.shape[1] < 4:
        return float("nan")
    probability = (0.05, 0.95) if of == "tail" else None
    return float(_array_stats().ess(values, chain_axis=0, draw_axis=1, method=of, prob=probability))


def potential_scale_reduction(values: NDArray[np.float64]) -> float:
    """Split R-hat of a (chain, draw) array, rank-normalised; 1 for a constant."""
    if np.ptp(values) == 0.0:
        return 1.0
    return float("nan") if values.shape[1] < 4 else float(_array_stats().rhat(values, chain_axis=0, draw_axis=1))


def _array_stats() -> Any:
    """ArviZ's diagnostics. They are asked for number by number: the disk is searched only where they cannot be imported."""
    try:
        from arviz_stats.base import array_stats
    except ImportError:
        need("inference", what="diagnostics of chains")
        raise
    return array_stats
