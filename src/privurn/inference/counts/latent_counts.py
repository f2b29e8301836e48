"""The posterior of confidential counts given one or several releases, as a Markov chain with exact moves.

prior       P(C | n) proportional to prod_i Gamma(gamma_i + C_i)/C_i!: C is multinomial given p, and p is Dirichlet(gamma)
likelihood  a product of terms (mechanisms/likelihood.py)
population  p | C is Dirichlet(gamma + C), whatever was released

A sweep costs O(cells), whatever n is. No move is tuned, so the first sweep keeps the posterior as well as the last.
"""

import hashlib
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.size import LARGEST_SIZE, SizePrior
from privurn.mechanisms.likelihood import MixtureTerm, NoisyCountsTerm, NoisyRecordsTerm, UrnTerm
from privurn.privacy.laws.noisy_counts import STEPS

if TYPE_CHECKING:
    from privurn._kernels.counts.count_sweeps import Model

Term = UrnTerm | MixtureTerm | NoisyCountsTerm | NoisyRecordsTerm

LARGEST_N = 10**7
"""Bound of the flat prior on a secret n where no noisy numbers say how large it is, unless another is given."""

WINDOW = 8
"""Lines with at most this many points are drawn from afresh."""

NEGLIGIBLE = 60.0
"""States with less than e^-60 of the probability need no way of their own to be reached."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LatentCounts:
    """Latent counts C of `cells` cells with the analyst's Dirichlet `prior` (gamma), given the releases in `terms`.

    `n`: public number of confidential records, or None where it is secret and has a prior, `size_prior`.
    Lines with at most `window` points are drawn from afresh, longer ones by slice sampling: a matter of speed only.

    The state is a dict: "counts" (cells,), and where noisy counts are latent "noisy" (release, cells) in lattice steps and
    "kept" (release, cells), the records that were drawn from them rather than from the uniform.
    """

    cells: int
    n: int | None
    prior: NDArray[np.float64]
    terms: tuple[Term, ...]
    size_prior: SizePrior = field(default_factory=lambda: SizePrior(upper=LARGEST_N))
    window: int = WINDOW

    def __post_init__(self) -> None:
        if self.cells < 1:
            raise ModelError("counts need at least one cell.")
        if self.prior.shape != (self.cells,) or not np.all(np.isfinite(self.prior)) or not np.all(self.prior > 0.0):
            raise ModelError("the prior needs one positive number for each cell.", hint="np.ones(cells) is flat")
        if any(each.cells != self.cells for each in self.terms):
            raise ModelError("the releases and the prior differ in their numbers of cells.")
        if self.n is not None and not 0 <= self.n <= LARGEST_SIZE:
            raise ModelError(f"n must be between 0 and {LARGEST_SIZE:,}.")
        if self.n is None and self.size_prior.upper < 1:
            raise ModelError(f"the largest n must be between 1 and {LARGEST_SIZE:,}.")
        if not self.n and any(isinstance(each, MixtureTerm) for each in self.terms):
            raise ModelError("records of a smoothed histogram need a public n, at least 1.")
        if int(self._occupied.sum()) > (self.size_prior.upper if self.n is None else self.n):
            raise ModelError("more cells were released than n records can have filled.")

    @property
    def _occupied(self) -> NDArray[np.bool_]:
        """Cells that cannot be empty: an urn without prior records in them released some."""
        found = [(each.alpha == 0.0) & np.any(each.released > 0, axis=0) for each in self._urns]
        return np.asarray(np.any([np.zeros(self.cells, np.bool_), *found], axis=0))

    @property
    def _urns(self) -> tuple[UrnTerm, ...]:
        return tuple(each for each in self.terms if isinstance(each, UrnTerm))

    @property
    def _mixtures(self) -> tuple[MixtureTerm, ...]:
        return tuple(each for each in self.terms if isinstance(each, MixtureTerm) and each.weight < 1.0)

    @property
    def _seen(self) -> tuple[NoisyCountsTerm, ...]:
        return tuple(each for each in self.terms if isinstance(each, NoisyCountsTerm))

    @property
    def _hidden(self) -> tuple[NoisyRecordsTerm, ...]:
        return tuple(each for each in self.terms if isinstance(each, NoisyRecordsTerm) and each.smoothing < 1.0)

    def fingerprint(self) -> str:
        """Hash of everything that fixes the chain."""
        digest = hashlib.sha256(repr((self.cells, self.n, self.size_prior if self.n is None else None, self.window)).encode())
        digest.update(self.prior.astype(np.float64).tobytes())
        for term in self.terms:
            digest.update(type(term).__name__.encode())
            for name in term.__dataclass_fields__:
                value = getattr(term, name)
                digest.update(repr(value).encode() if not isinstance(value, np.ndarray) else value.tobytes())
        return digest.hexdigest()

    def start(self, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """A possible state, wider spread than the posterior."""
        counts = self._start_near_noisy(rng) if self._seen else self._start_anywhere(rng)
        state: dict[str, NDArray[Any]] = {"counts": counts.astype(np.int64)}
        hidden = self._hidden
        if hidden:
            kept = np.stack([each.released for each in hidden])
            steps = np.array([[STEPS[each.noise]] for each in hidden])
            spread = np.array([[each.scale] for each in hidden]) * steps
            noisy = counts * steps + np.rint(rng.laplace(size=kept.shape) * spread)
            state |= {"noisy": np.where(kept > 0, np.maximum(noisy, 1), noisy).astype(np.int64), "kept": kept}
        return state

    def sweep(
        self,
        state: dict[str, NDArray[Any]],
        rng: np.random.Generator,
        *,
        times: int,
        warming: bool = False,
        prior: NDArray[np.float64] | None = None,
    ) -> dict[str, float]:
        """`times` sweeps, changing `state` in place; acceptance rates of the moves that can be rejected. Nothing adapts."""
        return self.draw(state, rng, draws=1, thin=times, prior=prior)[1] if times > 0 else {}

    def draw(
        self,
        state: dict[str, NDArray[Any]],
        rng: np.random.Generator,
        *,
        draws: int,
        thin: int = 1,
        prior: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.int64], dict[str, float]]:
        """Counts (draws, cells) after every `thin` sweeps in one compiled loop, changing `state` in place, and rates.

        `prior` stands in for the engine's own where it is itself drawn anew between sweeps.
        """
        from privurn._kernels.counts.count_sweeps import update_counts

        out = np.empty((draws, self.cells), np.int64)
        none = np.zeros((0, self.cells), np.int64)
        noisy, kept = state.get("noisy", none), state.get("kept", none)
        model = self.model if prior is None else self.model._replace(prior=prior)
        renewed, resized = update_counts(state["counts"], noisy, kept, out, model, thin, rng)
        rates = {"noise renewed": float(renewed)} if np.any(self.model.hidden[:, 4]) else {}
        return out, rates | ({"size changed": float(resized)} if self.n is None else {})

    def _guess(self) -> NDArray[np.float64]:
        """Roughly what prior and released records say about the cells' shares, in records' worth.

        Noisy counts are no records: how closely they fix a cell is a matter of their noise, whatever they are.
        """
        worth = self.prior.copy()
        n = 1e15 if self.n is None else float(self.n)
        for term in self.terms:
            if isinstance(term, UrnTerm):
                total = n + float(term.alpha.sum()) + 1.0
                worth += sum(row * (n / total) ** 2 * total / (total + float(row.sum())) for row in term.released)
            elif isinstance(term, MixtureTerm):
                worth += term.released * float(1.0 - term.weight) ** 2
            elif isinstance(term, NoisyRecordsTerm):
                kept = (1.0 - term.smoothing) * (n + 1.0) / (n + 1.0 + self.cells * term.scale)
                worth += term.released * kept**2
        return worth

    def _start_anywhere(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Counts in proportions much wider than what was released says."""
        guess = self._guess()
        shares = rng.dirichlet(0.1 + guess * min(0.5, 100.0 / guess.sum()))
        n = self._start_size(rng) if self.n is None else self.n
        occupied = self._occupied.astype(np.int64)
        return np.asarray(occupied + rng.multinomial(max(n - int(occupied.sum()), 0), shares), np.int64)

    def _start_near_noisy(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Noisy counts with twice as much noise again: of a billion records anything wider would take a billion steps back."""
        least = min(self._seen, key=lambda each: each.scale)
        spread = least.noisy / STEPS[least.noise] + 2.0 * least.scale * rng.laplace(size=self.cells)
        counts = np.rint(np.clip(spread, self._occupied, float(LARGEST_SIZE) / self.cells)).astype(np.int64)
        lower, upper = (self.size_prior.lower, self.size_prior.upper) if self.n is None else (self.n, self.n)
        missing = int(np.clip(counts.sum(), lower, upper) - counts.sum())
        if missing > 0:
            return np.asarray(counts + rng.multinomial(missing, (counts + 1.0) / (counts + 1.0).sum()), np.int64)
        for i in np.argsort(-counts, kind="stable"):  # too many: the largest cells hold most
            taken = min(int(counts[i]) - int(self._occupied[i]), -missing)
            counts[i] -= taken
            missing += taken
        return counts

    def _start_size(self, rng: np.random.Generator) -> int:
        lower, upper = max(self.size_prior.lower, int(self._occupied.sum())), self.size_prior.upper
        records = [float(each.released.sum()) / len(each.released) for each in self._urns]
        records += [float(each.released.sum()) for each in self._hidden]
        low = min(max(1.0, max(records, default=1.0)), float(upper))
        about = low * (upper / low) ** rng.random() if self.size_prior.mean is None else self.size_prior.mean
        return int(np.clip(about, lower, upper))

    def _renewed(self, term: NoisyRecordsTerm) -> bool:
        """Whether "all noisy counts are 0 or less" is likely enough to be visited.

        Given C its probability is at most e^(-n/scale), or e^(-n^2/(2 k scale^2)) for Gaussian noise; given the records it
        is larger by at most what the posterior of the shares is narrower than their prior, about m^(k/2).
        """
        if self.n is None:
            return True
        rare = self.n / term.scale
        if term.noise == "discrete-gaussian":
            rare = 0.5 * rare * rare / self.cells
        return rare - 0.5 * self.cells * math.log(2.0 + float(term.released.sum())) < NEGLIGIBLE

    @cached_property
    def model(self) -> "Model":
        """The public data as the kernels want them."""
        from privurn._kernels.counts.count_lines import MIXED, SEEN_GAUSSIAN, SEEN_GEOMETRIC, SIZE_POISSON, URN
        from privurn._kernels.counts.count_moves import Limits
        from privurn._kernels.counts.count_sweeps import Model
        from privurn._kernels.counts.discrete_laws import GAUSSIAN, GEOMETRIC

        none = np.zeros(self.cells)
        rows: list[tuple[float, float, float]] = []
        factors: list[tuple[NDArray[Any], NDArray[Any]]] = []
        for urn in self._urns:
            for row in urn.released:
                rows.append((URN, float(urn.alpha.sum()), float(row.sum())))
                factors.append((urn.alpha, row))
        for mixed in self._mixtures:
            weight = float(mixed.weight)
            rows.append((MIXED, weight * (self.n or 0) / (self.cells * (1.0 - weight)), 0.0))
            factors.append((none, mixed.released))
        for seen in self._seen:
            kind = SEEN_GAUSSIAN if seen.noise == "discrete-gaussian" else SEEN_GEOMETRIC
            rows.append((kind, seen.scale * STEPS[seen.noise], float(STEPS[seen.noise])))
            factors.append((seen.noisy, none))
        if self.n is None and self.size_prior.mean is not None:
            rows.append((SIZE_POISSON, self.size_prior.mean, 0.0))
            factors.append((none, none))
        hidden = [
            (
                GAUSSIAN if each.noise == "discrete-gaussian" else GEOMETRIC,
                each.scale * STEPS[each.noise],
                STEPS[each.noise],
                each.smoothing,
                self._renewed(each),
            )
            for each in self._hidden
        ]
        worth = self._guess()
        large = worth + sum(np.maximum(each.noisy / STEPS[each.noise], 0.0) for each in self._seen)
        return Model(
            prior=self.prior.astype(np.float64),
            settings=np.array(rows, np.float64).reshape(len(rows), 3),
            factors=np.array(factors, np.float64).reshape(len(rows), 2, self.cells),
            hidden=np.array(hidden, np.float64).reshape(len(hidden), 5),
            released=np.array([each.released for each in self._hidden], np.int64).reshape(len(hidden), self.cells),
            worth=worth,
            hub=int(np.argmax(large)),
            limits=Limits(
                window=self.window,
                reach_seen=1.0 + min((each.scale for each in self._seen), default=1e15),
                reach_hidden=1.0 + min((each.scale for each in self._hidden), default=1e15),
                smallest_n=-1 if self.n is not None else self.size_prior.lower,
                largest_n=-1 if self.n is not None else self.size_prior.upper,
                worth_total=float(worth.sum()),
            ),
        )
