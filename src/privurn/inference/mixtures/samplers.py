"""Samplers of mixtures as `samplers.run` runs them: state in plain arrays, one compiled call for many sweeps."""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import ModelError, SamplingError
from privurn.inference.mixtures.model import AnyMixture, Observed
from privurn.inference.mixtures.prior import grid_points, measure_densities
from privurn.inference.run import Arrays, whole_number
from privurn.inference.sampler import concatenated

FIRST_CLUSTERS = 8
"""Chains start with one to so many clusters."""

LARGEST_DISCOUNT = 0.3
"""Of Pitman-Yor processes that the slice sampler takes: above 0.38 its cost has no mean."""

MOST_KEPT = 10_000
"""Atoms of a draw that can be kept."""

BUFFER = 2**22
"""Numbers of mixing measures that one compiled call may write: bounds memory while a run goes on."""

REGROUP = 100
"""Steps for each atom in a move that sums clusters and values out."""

CELLS = 20, 256
"""Cells to whose nodes released numbers are moved for the steps of `regroup`, at least and at most."""

CELLS_PER_SCALE = 3.0
"""Of the noise with 5,000 records: cells of width w change a log likelihood of n records by about n (w / scale)^4 / 1000."""

DIAGNOSTICS = ("acceptance", "atom_acceptance", "mass_not_kept", "mass_lumped")
"""Of a draw; the last two where mixing measures were drawn."""


def parts(state: Arrays) -> tuple[NDArray[Any], ...]:
    """Allocations, latent values, atoms, strength and tuning."""
    return tuple(state[name] for name in ("allocations", "latent", "atoms", "strength", "tuning"))


@dataclass(frozen=True, kw_only=True)
class Keep:
    """What is kept of a draw besides the number of clusters, the strength and acceptance rates.

    `atoms`: at most so many of the mixing measure, with their weights (0: none). Measures take as many as they have: all
    clusters, sticks until 1e-4 of the mass is left, and for that a few whose covariances are right. `mass_lumped` says where
    the limit was in the way. `density_grid`: the density of the confidential values at these points instead of, or beside, the
    atoms. Allocations and latent values take n numbers a draw.
    """

    atoms: int = 4096
    allocations: bool = False
    latent: bool = False
    density_grid: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if whole_number("atoms", self.atoms, least=0, example=4096) > MOST_KEPT:
            raise ModelError(f"at most {MOST_KEPT:,} atoms can be kept of a draw.", hint="For example Keep(atoms=4096)")
        if self.density_grid is not None:
            object.__setattr__(self, "density_grid", tuple(grid_points(self.density_grid).tolist()))


@dataclass(frozen=True, kw_only=True)
class MixtureSampler(ABC):
    """What all samplers of mixtures share; `draw` is the compiled loop.

    State: allocations (n,), latent (m n, ...), atoms (clusters, width), strength (1,), tuning (2,).
    With `regroup` a sweep is a move of weights and atoms together, clusters and values summed out, in so many steps for each
    atom (_kernels/mixtures/regroup.py), and one sweep of the sampler itself: for pairs of `marginal_pairs` only.
    """

    model: AnyMixture
    released: ArrayLike = field(repr=False)
    keep: Keep = field(default_factory=Keep)
    regroup: int = 0
    name: ClassVar[str]
    monitored: ClassVar[tuple[str, ...]] = ("n_clusters",)

    def __post_init__(self) -> None:
        if not isinstance(self.keep, Keep):
            raise ModelError("what is kept of a draw is stated by a Keep.", hint="keep=Keep(atoms=4096)")
        if self.keep.density_grid is not None and self.model.kernel.categorical:
            raise ModelError("a density grid is for kernels on numbers.")
        object.__setattr__(self, "_observed", self.model.observe(self.released))
        object.__setattr__(self, "_records", (self.observed.channel, self.model.kernel.record(), self.model.mixing.record()))
        if whole_number("regroup", self.regroup, least=0, example=REGROUP) > 0:
            if not self.has_marginal():
                raise ModelError("this channel and kernel have no marginal density in closed form.", hint="Leave regroup out")
            object.__setattr__(self, "_cells", cells_of(self.observed))

    @property
    def records(self) -> tuple[Any, ...]:
        """Channel, kernel and mixing, compiled."""
        return self._records  # type: ignore[attr-defined,no-any-return]

    @property
    def observed(self) -> Observed:
        """The released values, as compiled loops take them."""
        return self._observed  # type: ignore[attr-defined,no-any-return]

    @property
    def auxiliary(self) -> int:
        """Latent values of each record."""
        return 1

    def has_marginal(self) -> bool:
        """Whether latent values can be summed out."""
        from privurn._kernels.mixtures import beta_pairs, categorical, gaussian_pairs, total_gaussian  # noqa: F401 (they register)
        from privurn._kernels.mixtures.latent import marginal_pairs

        channel, kernel, _ = self.records
        return (type(channel), type(kernel)) in marginal_pairs() and self.model.kernel.sums_out(channel)

    def has_exact_latent(self) -> bool:
        """Whether latent values are drawn from their exact law, however narrow the noise is."""
        from privurn._kernels.mixtures import beta_pairs, categorical, gaussian_pairs, total_gaussian  # noqa: F401 (they register)
        from privurn._kernels.mixtures.latent import update_latent

        return (type(self.records[0]), type(self.records[1])) in update_latent.table

    @abstractmethod
    def draw(self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool, keep: Any) -> Any:
        """Do sweeps in place and return the atoms."""

    def settings(self) -> tuple[Any, ...]:
        """What else the law of the chain depends on."""
        return ()

    def fingerprint(self) -> str:
        """Hash of the model, what was released, and what is kept."""
        stated = self.name, self.model, self.keep, DIAGNOSTICS, self.regroup, self.settings()
        digest = hashlib.sha256(repr(stated).encode())
        digest.update(self.observed.z.tobytes())
        return digest.hexdigest()

    def start(self, rng: np.random.Generator) -> Arrays:
        """Groups of similar latent values, a number of them that differs from chain to chain."""
        from privurn._kernels.dispatch import entry
        from privurn._kernels.mixtures.clusters import first_atoms

        y, kernel = self.observed.start, self.model.kernel
        most = int(min(FIRST_CLUSTERS, self.observed.n, self.model.mixing.most_clusters))
        groups = int(rng.integers(1, most + 1))
        order = np.argsort(y if y.ndim == 1 else y[:, 0], kind="stable")
        allocations = np.empty(self.observed.n, np.int64)
        allocations[order] = np.arange(self.observed.n) * groups // self.observed.n
        _, first, labels = np.unique(allocations, return_index=True, return_inverse=True)
        allocations = np.argsort(np.argsort(first))[labels].astype(np.int64)  # by first appearance
        latent, tuning = np.repeat(y, self.auxiliary, axis=0), np.zeros(2)
        record, m = self.records[1], self.auxiliary
        run = entry(first_atoms, record)
        atoms = run(record, allocations, latent, m, groups, kernel.width, kernel.n_statistics, tuning, rng)
        strength = np.array([self.model.mixing.first_strength])
        return {"allocations": allocations, "latent": latent, "atoms": atoms, "strength": strength, "tuning": tuning}

    def advance(
        self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool
    ) -> tuple[Arrays, Arrays]:
        """Sweeps in compiled calls, one where what is kept fits the buffer."""
        draws, n, kernel, keep = (0 if warming else sweeps // thin), self.observed.n, self.model.kernel, self.keep
        kept: Arrays = {
            "n_clusters": np.empty(draws, np.int64),
            "strength": np.empty(draws),
            "allocations": np.empty((draws if keep.allocations else 0, n), np.int64),
            "latent": np.empty((draws if keep.latent else 0, *self.observed.start.shape), self.observed.start.dtype),
            "acceptance": np.empty(draws),
            "atom_acceptance": np.empty(draws),
        }
        measured = keep.atoms > 0 or keep.density_grid is not None
        places, parameters = keep.atoms or Keep.atoms, len(kernel.parameter_names)
        rows = max(1, BUFFER // (places * (1 + parameters))) if measured else draws
        measures: list[Arrays] = []
        for first in range(0, max(draws, 1), max(rows, 1)):
            size = min(rows, draws - first)
            part = {name: each[first : first + size] for name, each in kept.items()}
            weights, cut = np.empty(size * places if measured else 0), np.empty((size if measured else 0, 3))
            atoms = np.empty((len(weights), parameters))
            records = part["allocations"], part["latent"], part["acceptance"], part["atom_acceptance"]
            into = (part["n_clusters"], part["strength"], weights, atoms, *records, cut)
            length = sweeps - first * thin if first + size == draws else size * thin
            state["atoms"] = self.sweep(state, rng, sweeps=length, thin=thin, warming=warming, keep=into)
            measures.append(self._measures(weights, atoms, cut))
        if draws and measured:
            kept |= {name: concatenated([each[name] for each in measures]) for name in measures[0]}
        for name, wanted in (("allocations", keep.allocations), ("latent", keep.latent)):
            if not wanted:
                del kept[name]
        return kept, {name: kept.pop(name) for name in DIAGNOSTICS if name in kept}

    def sweep(self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool, keep: Any) -> Any:
        """As `draw`; with `regroup` there is a move that sums clusters and values out before each."""
        if not self.regroup:
            return self.draw(state, rng, sweeps=sweeps, thin=thin, warming=warming, keep=keep)
        from privurn._kernels.dispatch import entry
        from privurn._kernels.mixtures.mixings import offset
        from privurn._kernels.mixtures.regroup import regroup

        channel, kernel, mixing = self.records
        run, seen = entry(regroup, channel, kernel), self._cells  # type: ignore[attr-defined]
        noise = relative_noise(channel, self.model.kernel)
        nothing = tuple(each[:0] for each in keep)
        weights, parameters, cut = keep[2], keep[3], keep[8]
        places, end = len(weights) // max(len(cut), 1), 0
        for sweep in range(sweeps):
            c, y, atoms, strength, _ = parts(state)
            given = (self.observed.z, c, y, self.auxiliary, atoms, *seen, noise, self.regroup)
            state["atoms"], _ = run(channel, kernel, strength[0], offset(mixing, strength[0]), *given, rng)
            t, kept = sweep // thin, (sweep + 1) % thin == 0
            into = nothing
            if kept and not warming:  # a measure goes behind the others
                into = (*(each[t : t + 1] for each in keep[:2]), weights[end : end + places], parameters[end : end + places])
                into = (*into, *(each[t : t + 1] for each in keep[4:]))
            state["atoms"] = self.draw(state, rng, sweeps=1, thin=1, warming=warming, keep=into)
            if kept and len(cut):
                end += int(cut[t, 0])
                cut[t, 0] = end
        return state["atoms"]

    def _measures(self, weights: NDArray[Any], atoms: NDArray[Any], cut: NDArray[Any]) -> Arrays:
        """What is kept of drawn measures: weights and atoms, the density, and what was cut."""
        if not len(cut):
            return {}
        sizes = np.diff(cut[:, 0].astype(np.int64), prepend=0)
        inside = np.arange(sizes.max()) < sizes[:, None]
        found: Arrays = {"weights": np.zeros(inside.shape), "atoms": np.zeros((*inside.shape, atoms.shape[1]))}
        found["weights"][inside], found["atoms"][inside] = weights[: sizes.sum()], atoms[: sizes.sum()]
        if self.keep.density_grid is not None:
            grid = np.array(self.keep.density_grid)
            found["density"] = measure_densities(self.model.kernel, found["weights"], found["atoms"], grid)
        if not self.keep.atoms:
            del found["weights"], found["atoms"]
        return found | {"mass_not_kept": cut[:, 1].copy(), "mass_lumped": cut[:, 2].copy()}

    def dims(self) -> dict[str, tuple[str, ...]]:
        """Names of the axes after chain and draw."""
        latent = ("record",) if self.observed.start.ndim == 1 else ("record", "column")
        named = {"weights": ("atom",), "atoms": ("atom", "parameter"), "allocations": ("record",), "latent": latent}
        return named | {"density": ("grid",)}

    def coords(self) -> dict[str, Any]:
        """Parameters and the density grid."""
        found: dict[str, Any] = {"parameter": list(self.model.kernel.parameter_names)} if self.keep.atoms else {}
        return found if self.keep.density_grid is None else found | {"grid": list(self.keep.density_grid)}


def relative_noise(channel: Any, kernel: Any) -> float:
    """Scale of the noise in units in which a kernel's atoms move; 0 where they take no such steps."""
    return float(channel[0] / kernel.spread()) if math.isfinite(kernel.spread()) else 0.0


def cells_of(observed: Observed) -> tuple[NDArray[Any], ...]:
    """Distinct released values and which is each record's; then nodes, the cell of each record, and portions of a cell's nodes.

    Two nodes of a cell have the first three moments of its records (Gauss quadrature). Laplace noise beyond the bounds says no
    more than at them.
    """
    from privurn._kernels.mixtures.channels import Laplace

    channel, z = observed.channel, observed.z
    if isinstance(channel, Laplace):
        z = np.clip(z, channel.lower, channel.upper)
    points, at = np.unique(z, axis=0, return_inverse=True)
    at = at.reshape(-1).astype(np.int64)
    as_they_are = points, at, points, at, np.ones((len(points), 1))
    if z.ndim > 1:
        return as_they_are
    low, width = float(z.min()), float(z.max() - z.min())
    most = int(np.clip(CELLS_PER_SCALE * width / channel[0] * (observed.n / 5000) ** 0.25, *CELLS))
    if len(points) <= 2 * most:
        return as_they_are
    numbers = 1 + np.minimum((most * ((z - low) / width)).astype(np.int64), most - 1)
    numbers[z == low], numbers[z == low + width] = 0, most + 1  # many records lie at the bounds
    _, cells, sizes = np.unique(numbers, return_inverse=True, return_counts=True)
    mean = np.bincount(cells, weights=z) / sizes
    square, cube = (np.bincount(cells, weights=(z - mean[cells]) ** power) / sizes for power in (2, 3))
    spread = np.sqrt(square)
    skew = np.divide(cube, spread**3, out=np.zeros_like(cube), where=spread > 1e-9 * width)
    root = np.sqrt(1.0 + 0.25 * skew**2)
    nodes = mean[:, None] + spread[:, None] * np.stack([0.5 * skew - root, 0.5 * skew + root], axis=1)
    portions = 0.5 + 0.25 * np.stack([skew, -skew], axis=1) / root[:, None]
    return points, at, nodes.reshape(-1), cells.astype(np.int64), portions


@dataclass(frozen=True, kw_only=True)
class Neal5(MixtureSampler):
    """Private Neal 5: pseudo-marginal, `values` auxiliary values for each record. Any channel, kernel and mixing."""

    values: int = 1
    name: ClassVar[str] = "neal5"

    def __post_init__(self) -> None:
        whole_number("values", self.values, least=1, example=1)
        super().__post_init__()

    @property
    def auxiliary(self) -> int:
        """As asked for."""
        return self.values

    def settings(self) -> tuple[Any, ...]:
        """Auxiliary values."""
        return (self.values,)

    def draw(self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool, keep: Any) -> Any:
        """Compiled sweeps."""
        from privurn._kernels.dispatch import entry
        from privurn._kernels.mixtures.neal5 import run_neal5

        c, y, atoms, strength, tuning = parts(state)
        records = self.records
        sizes = self.model.kernel.n_statistics, sweeps, thin, warming
        return entry(run_neal5, *records)(
            *records, self.observed.z, c, y, self.values, atoms, strength, tuning, *sizes, keep, rng
        )


@dataclass(frozen=True, kw_only=True)
class SliceSampler(MixtureSampler):
    """Private slice sampler. Exact draws of latent values where channel and kernel allow it, else a Metropolis step.

    `marginal=True` chooses clusters with the latent values summed out: for pairs of `latent.marginal_pairs` only. A sweep needs
    h atoms with a probability that falls like h^-((1-d)^2/d) at discount d, so discounts above 0.3 are refused.
    """

    marginal: bool = False
    name: ClassVar[str] = "slice"

    def __post_init__(self) -> None:
        if getattr(self.model.mixing, "discount", 0.0) > LARGEST_DISCOUNT:
            raise ModelError(
                f"the slice sampler needs too many atoms at a discount above {LARGEST_DISCOUNT}.", hint='sampler="neal5"'
            )
        super().__post_init__()
        if self.marginal and not self.has_marginal():
            raise ModelError("this channel and kernel have no marginal density in closed form.", hint="Leave marginal out")

    def settings(self) -> tuple[Any, ...]:
        """How clusters are weighed."""
        return (self.marginal,)

    def draw(self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool, keep: Any) -> Any:
        """Compiled sweeps."""
        from privurn._kernels.dispatch import entry
        from privurn._kernels.mixtures import beta_pairs, categorical, gaussian_pairs  # noqa: F401 (they register their pairs)
        from privurn._kernels.mixtures.slices import GivenLatent, GivenReleased, run_slices

        c, y, atoms, strength, tuning = parts(state)
        weighing = GivenReleased() if self.marginal else GivenLatent()
        records = (weighing, *self.records)
        sizes = self.model.kernel.n_statistics, sweeps, thin, warming
        run: Callable[..., NDArray[Any]] = entry(run_slices, *records)
        atoms = run(*records, self.observed.z, c, y, atoms, strength, tuning, *sizes, keep, rng)
        if len(atoms) == 0:
            raise SamplingError("a sweep needs more than a million atoms.", hint='sampler="neal5", or a smaller discount')
        return atoms
