"""Models of latent records: what the samplers need, and the base class for a model in plain Python.

How to add a model: docs/design-noisy-statistics.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.sums.observed import Observed

Floats = NDArray[np.float64]


class Model(Protocol):
    """Parameters are one flat array, in an order of the model's own; `variables` gives them their names and shapes."""

    @property
    def name(self) -> str:
        """What results call it."""

    @property
    def record(self) -> Any:
        """Numbers and arrays whose type the kernels' functions are attached to; `columns` is the width of a record."""

    @property
    def n_entries(self) -> int:
        """Entries of the released sum."""

    @property
    def n_parameters(self) -> int:
        """Length of the flat array."""

    @property
    def standard_width(self) -> int:
        """Width of a standardised record; 0 where the model has no such form."""

    @property
    def summary_size(self) -> int:
        """Length of the sufficient statistic of complete data; 0 where there is no maximisation."""

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the axes of variables."""

    @property
    def coords(self) -> Mapping[str, Any]:
        """Labels along them."""

    def start(self, rng: np.random.Generator) -> Floats:
        """Parameters drawn from the prior, or as widely."""

    def variables(self, theta: Floats) -> dict[str, Floats]:
        """Named variables of flat parameters (draw, parameter)."""

    def flat(self, values: Mapping[str, Any]) -> Floats:
        """Flat parameters from one draw of the named variables."""

    def simulate(self, theta: Floats, *, n: int, rng: np.random.Generator) -> Floats:
        """Records given parameters."""


class PythonModel(ABC):
    """A model written in plain Python: slow, and right. Four methods are needed, and a place to start from.

    Interweaving (moves="interwoven") needs `standardise`, `restore` and `log_prior` as well, with parameters that have no
    bounds: write them as logarithms or the like, and count the Jacobian in `log_prior`.
    """

    name: str = "python"
    n_parameters: int
    n_entries: int
    record_width: int = 1
    summary_size: int = 0
    standard_width: int = 0
    parameter_names: tuple[str, ...] = ()

    @abstractmethod
    def start(self, rng: np.random.Generator) -> Floats:
        """Parameters drawn from the prior."""

    @abstractmethod
    def draw_parameters(self, records: Floats, *, parameters: Floats, rng: np.random.Generator) -> Floats:
        """Parameters given records (n, record_width), or a step from `parameters` that leaves that law as it is."""

    @abstractmethod
    def draw_record(self, parameters: Floats, *, rng: np.random.Generator) -> Floats:
        """One record given parameters."""

    @abstractmethod
    def statistic(self, record: Floats) -> Floats:
        """What a record adds to the sum; clamping belongs here."""

    def log_density(self, observed: Observed, total: Floats) -> float:
        """Log density of the mechanism, up to a constant, where the sum without noise is `total`."""
        return observed.log_density(total)

    def standardise(self, parameters: Floats, record: Floats, *, rng: np.random.Generator) -> Floats:
        """The record with its dependence on the parameters taken out."""
        raise ModelError("this model has no standardised records.", hint="moves='centred'")

    def restore(self, parameters: Floats, standard: Floats) -> Floats:
        """The record again, at these parameters."""
        raise ModelError("this model has no standardised records.", hint="moves='centred'")

    def log_prior(self, parameters: Floats) -> float:
        """Log prior density of the parameters, up to a constant; only interweaving asks."""
        raise ModelError("this model states no prior density.", hint="moves='centred'")

    @property
    def record(self) -> Any:
        """What the kernels' source works on when the interpreter runs it."""
        return _PlainRecord(self)

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """None."""
        return {}

    @property
    def coords(self) -> Mapping[str, Any]:
        """None."""
        return {}

    def variables(self, theta: Floats) -> dict[str, Floats]:
        """One variable for each name; all together as `parameters` where there are no names."""
        if not self.parameter_names:
            return {"parameters": theta}
        return {name: theta[:, j] for j, name in enumerate(self.parameter_names)}

    def flat(self, values: Mapping[str, Any]) -> Floats:
        """And back."""
        if not self.parameter_names:
            return np.asarray(values["parameters"], np.float64)
        return np.array([values[name] for name in self.parameter_names], np.float64)

    def simulate(self, theta: Floats, *, n: int, rng: np.random.Generator) -> Floats:
        """Records given parameters."""
        return np.array([self.draw_record(theta, rng=rng) for _ in range(n)]).reshape(n, self.record_width)


class _PlainRecord:
    """What stands for a PythonModel where compiled models have a NamedTuple."""

    def __init__(self, owner: PythonModel) -> None:
        self.owner = owner
        self.columns = owner.record_width


class PlainNoise:
    """The mechanism of a PythonModel."""

    def __init__(self, owner: PythonModel, observed: Observed) -> None:
        self.owner, self.observed = owner, observed
        self.values = observed.values


def provide_plain() -> None:
    """Attach the methods of Python models to the kernels' functions."""
    from privurn._kernels.sums.protocol import provide

    def put(target: Floats, values: Any) -> None:
        target[:] = values

    def total(model: _PlainRecord, theta: Floats, standard: Floats, n: int, out: Floats) -> None:
        out[:] = 0.0
        for i in range(n):
            out += model.owner.statistic(np.atleast_1d(model.owner.restore(theta, standard[i])))

    provide(
        _PlainRecord,
        update_record=lambda model, theta, rng, row: put(row, model.owner.draw_record(theta, rng=rng)),
        update_statistic=lambda model, row, out: put(out, model.owner.statistic(row)),
        update_parameters=lambda model, theta, records, n, rng: put(
            theta, model.owner.draw_parameters(records[:n], parameters=theta, rng=rng)
        ),
        update_free=lambda model, theta, free: put(free[: len(theta)], theta),
        update_from_free=lambda model, free, theta: put(theta, free),
        log_prior=lambda model, theta: model.owner.log_prior(theta),
        update_standard=lambda model, theta, row, rng, u: put(u, model.owner.standardise(theta, row, rng=rng)),
        update_restored=lambda model, theta, u, row: put(row, model.owner.restore(theta, u)),
        update_total=total,
        log_ancillary=lambda model, theta, standard, n: 0.0,
    )
    provide(PlainNoise, log_noise=lambda noise, total: noise.owner.log_density(noise.observed, total))
