"""The Markov chains: data augmentation where n is public, reversible jump where it is secret.

One class serves both, since a public n only leaves the jumps out. A sweep with moves="centred" draws the parameters given the
latent records, proposes every record anew, and (secret n) makes one jump n -> n +- 1: the sampler of the literature.
moves="interwoven", the default, adds jumps by blocks whose size is adapted, and steps of parameters and log n with the
standardised records held fixed, whose covariance is adapted; it mixes tens to hundreds of times faster. Both keep the exact
posterior; adaptation stops with the warm-up.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privurn.errors import ModelError
from privurn.inference.run import Arrays
from privurn.inference.sums.model import Model, PlainNoise, PythonModel, provide_plain
from privurn.inference.sums.observed import Observed

Moves = Literal["centred", "interwoven"]
JUMPS, STEPS, BALANCES = 10, 10, 2
"""Of an interwoven sweep; jumps and steps together cost about as much as its pass over the records."""

MOST_RECORDS = 20_000_000

CANDIDATES, TRIED_RECORDS = 64, 200
"""Draws from the prior of which the one that fits best starts a chain, and records that are simulated to see how it fits."""

RATES = ("acceptance_records", "acceptance_jumps", "acceptance_steps", "acceptance_balances")


@dataclass(frozen=True, kw_only=True, eq=False)
class LatentChain:
    """A sampler of parameters, n and latent records given noisy sums; see the module.

    `jumps`, `steps` and `balances` (changes of n that parameters make up for, where the model has them) a sweep, and `block`,
    the largest jump (0: adapted), may be set; left out they follow `moves`.
    """

    model: Model
    observed: Observed
    moves: Moves = "interwoven"
    jumps: int | None = None
    steps: int | None = None
    block: int | None = None
    balances: int | None = None

    def __post_init__(self) -> None:
        if self.moves not in ("centred", "interwoven"):
            raise ModelError(f"the moves {self.moves!r} are not known.", hint="centred or interwoven")
        if self.model.n_entries != len(self.observed.values):
            raise ModelError(
                f"the model {self.model.name} has {self.model.n_entries} sums, and {len(self.observed.values)} were released.",
                hint="Model and statistics do not belong together",
            )
        if self.moves == "interwoven" and self.model.standard_width < 1:
            raise ModelError(f"the model {self.model.name} has no standardised records.", hint="moves='centred'")
        if min(self.jumps or 0, self.steps or 0, self.block or 0, self.balances or 0) < 0:
            raise ModelError("jumps, steps, block and balances are not negative.")

    @property
    def name(self) -> str:
        """Which chain, which moves."""
        return f"{'reversible jump' if self.observed.secret_size else 'data augmentation'}, {self.moves}"

    @property
    def monitored(self) -> tuple[str, ...]:
        """The number of records, where it is not known."""
        return ("n",) if self.observed.secret_size else ()

    def fingerprint(self) -> str:
        """Hash of model, released numbers and settings."""
        digest = hashlib.sha256(repr((self.model.name, self.moves, self.jumps, self.steps, self.block, self.balances)).encode())
        fields = vars(self.model) if isinstance(self.model, PythonModel) else self.model.record._asdict()
        for each in (fields, self.observed.noise_record()._asdict(), self.observed.size_record()._asdict()):
            for key, value in sorted(each.items()):
                digest.update(f"{key}={value.tobytes() if isinstance(value, np.ndarray) else value!r};".encode())
        return digest.hexdigest()

    def start(self, rng: np.random.Generator) -> Arrays:
        """The best of a few draws of the parameters from the prior, n as widely as it may be, records from the model.

        A single draw may lie where every record is clamped: nothing there says which way the released sum is.
        """
        from privurn._kernels.sums.starts import update_fits

        n = self.observed.start_size(rng)
        if n > MOST_RECORDS:
            raise ModelError(
                f"every record is a latent variable, and {n:,} are more than fit ({MOST_RECORDS:,}).",
                hint="Use a contingency table, whose cost does not depend on n, or a prior of n that bounds it",
            )
        candidates = np.array([self.model.start(rng) for _ in range(CANDIDATES)], np.float64)
        fits = np.empty(len(candidates))
        entry(update_fits, self.model)(self.model.record, self.noise(), candidates, n, TRIED_RECORDS, rng, fits)
        theta = candidates[np.argmax(np.where(np.isnan(fits), -np.inf, fits))].copy()
        size = self.model.n_parameters + 1
        records = np.zeros((n + n // 4 + 16, self.model.record.columns))
        records[:n] = self.model.simulate(theta, n=n, rng=rng)
        return {
            "theta": theta,
            "records": records,
            "count": np.array([n], np.int64),
            "numbers": np.array([np.log(2.4 / np.sqrt(size)), 0.0, 0.0]),
            "mean": np.zeros(size),
            "covariance": 0.01 * np.eye(size),
            "factor": 0.1 * np.eye(size),
        }

    def _tuning(self) -> Any:
        from privurn._kernels.sums.chain import Tuning
        from privurn._kernels.sums.protocol import provided

        plain = self.moves == "centred"
        secret = self.observed.secret_size
        jumps = (1 if plain else JUMPS) if self.jumps is None else self.jumps
        steps = STEPS if self.steps is None else self.steps
        block = int(plain) if self.block is None else self.block
        width = max(1, self.model.standard_width)
        balances = BALANCES if self.balances is None else self.balances
        if plain or not secret or "update_balanced" not in provided(type(self.model.record)):
            balances = 0
        return Tuning(jumps if secret else 0, 0 if plain else steps, secret, block, width, balances)

    def advance(
        self, state: Arrays, rng: np.random.Generator, *, sweeps: int, thin: int, warming: bool
    ) -> tuple[Arrays, Arrays]:
        """See `samplers.run.Sampler`."""
        from privurn._kernels.sums import chain

        kept = np.empty((0 if warming else sweeps // thin, self.model.n_parameters))
        kept_n, rates = np.empty(len(kept), np.int64), np.zeros((len(kept), len(RATES)))
        head = (self.model.record, self.noise(), self.observed.size_record(), self._tuning())
        own = [state[name] for name in ("theta", "records", "count", "numbers")]
        tail = (rng, sweeps, thin, warming, kept, kept_n, rates)
        if self.moves == "centred":
            state["records"] = entry(chain.update_centred_chain, self.model)(*head, *own, *tail)
        else:
            adapted = [state[name] for name in ("mean", "covariance", "factor")]
            state["records"] = entry(chain.update_interwoven_chain, self.model)(*head, *own, *adapted, *tail)
        if warming:
            return {}, {}
        tuning = head[3]
        made = (1, tuning.jumps, tuning.steps, tuning.balances)
        shown = {name: rates[:, j] for j, name in enumerate(RATES) if made[j]}
        return {**self.model.variables(kept), "n": kept_n}, shown

    def noise(self) -> Any:
        """The mechanism as the kernels see it."""
        if isinstance(self.model, PythonModel):
            return PlainNoise(self.model, self.observed)
        return self.observed.noise_record()


def entry(kernel: Callable[..., Any], model: Model) -> Callable[..., Any]:
    """A kernel as this model can call it: compiled and cached, compiled afresh for models of other packages, or interpreted.

    Machine code of a model defined elsewhere is not kept between processes: the cache could not tell when its source changes.
    """
    from privurn._kernels import dispatch

    if isinstance(model, PythonModel):
        provide_plain()
        return getattr(kernel, "py_func", kernel)
    return dispatch.entry(kernel, model.record)  # type: ignore[no-any-return]
