"""Samplers that sum the confidential values out: Neal's algorithms 2, 3 and 8 behind the channel, and split-merge moves."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privurn.errors import ModelError
from privurn.inference.mixtures.samplers import MixtureSampler, parts
from privurn.inference.run import Arrays, whole_number


def is_conjugate(channel: Any, kernel: Any) -> bool:
    """Whether atoms can be summed out as well."""
    from privurn._kernels.mixtures import total_gaussian  # noqa: F401 (it registers its pair)
    from privurn._kernels.mixtures.collapsed import collapsed_pairs

    return (type(channel), type(kernel)) in collapsed_pairs()


@dataclass(frozen=True, kw_only=True)
class Neal8(MixtureSampler):
    """Neal 8 on the density of released values, with `auxiliary_atoms` atoms from the base measure for each choice.

    For Gaussian or Beta kernels behind Laplace or Gaussian noise, and for categories behind a table.
    """

    auxiliary_atoms: int = 3
    name: ClassVar[str] = "neal8"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("auxiliary_atoms", self.auxiliary_atoms, least=1, example=3)
        if not self.has_marginal():
            raise ModelError("this channel and kernel have no marginal density in closed form.", hint='sampler="neal5"')

    def settings(self) -> tuple[Any, ...]:
        """Auxiliary atoms."""
        return (self.auxiliary_atoms,)

    def draw(self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool, keep: Any) -> Any:
        """Compiled sweeps."""
        from privurn._kernels.dispatch import entry
        from privurn._kernels.mixtures.neal8 import run_neal8

        c, y, atoms, strength, tuning = parts(state)
        sizes = self.model.kernel.n_statistics, sweeps, thin, warming
        return entry(run_neal8, *self.records)(
            *self.records, self.observed.z, c, y, self.auxiliary_atoms, atoms, strength, tuning, *sizes, keep, rng
        )


class _Conjugate(MixtureSampler):
    """For pairs that stay conjugate behind the channel."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_conjugate(*self.records[:2]):
            raise ModelError(
                f"{self.name} needs a pair that stays conjugate behind the channel.",
                hint="A Gaussian channel with clamped=False and TotalGaussianKernel(noise=channel.scale); or sampler='neal8'",
            )


@dataclass(frozen=True, kw_only=True)
class Neal2(_Conjugate):
    """Neal 2 on the density of released values: clusters with atoms, new ones weighed by their evidence."""

    name: ClassVar[str] = "neal2"

    def draw(self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool, keep: Any) -> Any:
        """Compiled sweeps."""
        from privurn._kernels.dispatch import entry
        from privurn._kernels.mixtures.neal2 import run_neal2

        c, y, atoms, strength, _ = parts(state)
        run = entry(run_neal2, *self.records)
        return run(*self.records, self.observed.z, c, y, atoms, strength, sweeps, thin, keep, rng)


@dataclass(frozen=True, kw_only=True)
class Neal3(_Conjugate):
    """Neal 3 on the density of released values: only the clustering moves, everything else is summed out.

    `split_merge` proposals (Jain and Neal 2004) after every sweep, each with `scans` restricted Gibbs scans before its last.
    """

    split_merge: int = 0
    scans: int = 3
    name: ClassVar[str] = "neal3"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("split_merge", self.split_merge, least=0, example=2)
        whole_number("scans", self.scans, least=0, example=3)

    def settings(self) -> tuple[Any, ...]:
        """Split-merge moves."""
        return (self.split_merge, self.scans)

    def draw(self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool, keep: Any) -> Any:
        """Compiled sweeps."""
        from privurn._kernels.dispatch import entry
        from privurn._kernels.mixtures.neal3 import run_neal3

        c, y, atoms, strength, _ = parts(state)
        run = entry(run_neal3, *self.records)
        moves = self.split_merge, self.scans
        return run(*self.records, self.observed.z, c, y, atoms, strength, *moves, sweeps, thin, keep, rng)
