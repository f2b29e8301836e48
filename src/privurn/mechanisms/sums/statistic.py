"""Noisy sums over records: what every statistics mechanism shares, and the public object it releases.

Each record is turned into a vector of whole numbers by a rule that looks at that record alone; the vectors are added, exactly;
each sum gets independent noise on the same lattice. With secret n (add-remove) the number of records may be published
beside them, with noise of its own. Proofs: docs/proofs/noisy-statistics.md.
"""

import math
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.domain import JointDomain
from privurn.errors import ModelError
from privurn.exact_numbers import float_up
from privurn.mechanisms.likelihood import Kind, Likelihood, Numbers
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.published import Content
from privurn.mechanisms.sums.content import NAMES, VALUES, SumsContent
from privurn.mechanisms.sums.noise_law import NoiseLaw
from privurn.privacy.certificate import canonical
from privurn.privacy.conversions import ZeroConcentratedProfile
from privurn.privacy.entropy import Entropy
from privurn.privacy.profile import ROUND_UP, Guarantee, Neighbouring, PointProfile, PrivacyProfile
from privurn.tables import Source, open_table
from privurn.tables.column_names import unused
from privurn.tables.output import number_table

if TYPE_CHECKING:
    from privurn.privacy.audit.attack import Pair
    from privurn.privacy.audit.raw_records import Reader

MOST_ENTRIES = 1_000_000

PER_NOISE, PER_CALL = 3e-5, 2e-4
"""Seconds for a noisy number and for a release, and what an audit looks at of them."""


@dataclass(frozen=True, kw_only=True)
class StatisticMechanism(Mechanism):
    """Sums of bounded per-record vectors plus `noise`; the number of records public, or noisy, or not published.

    neighbouring="replace-one": n is public and published as it is; `size_noise` must be None.
    neighbouring="add-remove": n is secret; n plus `size_noise` is published, or nothing about n where that is None.

    With a the L1 and b the Euclidean sensitivity of the sums, and k = `contributions` records to a person, the whole release is
    laplace:  pure epsilon-DP with epsilon = k (a/scale + 1/size_scale);
    gaussian: rho-zCDP with rho = k^2 (b^2/scale^2 + 1/size_scale^2)/2, whose profile is that of the class.
    """

    neighbouring: Neighbouring
    noise: NoiseLaw
    size_noise: NoiseLaw | None = None
    contributions: int = 1
    model: ClassVar[str]
    """What it is asked for by; a subclass with a name of its own is inferred from as its parent is."""
    fixed: ClassVar[tuple[str, ...]] = ()
    """Parameters of `calibrated` that nobody is asked for."""
    usual_noise: ClassVar[str] = "laplace"  # where none is asked for; others where the sums are of whole numbers
    adds_noise: ClassVar[bool] = True
    measures: ClassVar[bool] = True
    synthetic: ClassVar[bool] = False
    rows_are: ClassVar[str] = "noisy sums"
    inferred_from: ClassVar[Kind] = "sums"
    n: ClassVar[None] = None  # type: ignore[misc]
    """No parameter: where the number of records is public the certificate states it."""
    records: ClassVar[int] = 0  # type: ignore[misc]
    """No record is drawn."""
    cells: ClassVar[None] = None  # type: ignore[misc]
    """No cell is drawn."""

    def __post_init__(self) -> None:
        if self.neighbouring not in ("replace-one", "add-remove"):
            raise ModelError("the neighbouring relation is not known.", hint="replace-one or add-remove")
        if self.neighbouring == "replace-one" and self.size_noise is not None:
            raise ModelError(
                "under replace-one neighbours the number of records is public and gets no noise.",
                hint="Leave epsilon_n out, or use neighbouring='add-remove'",
            )
        if self.size_noise is not None and self.size_noise.kind != self.noise.kind:
            raise ModelError("the noise of the sums and that of n must be both Laplace or both Gaussian.")
        if self.size_noise is not None and self.size_noise.step > 1.0:
            raise ModelError("the noise of n must be on whole numbers or a finer lattice.", hint="step = 1")
        if not isinstance(self.contributions, int) or not 1 <= self.contributions <= 10**6:
            raise ModelError("contributions must be a whole number from 1 to 1,000,000.")
        if getattr(self, "missing", "error") not in ("error", "unreadable"):
            raise ModelError("what missing values are is not known.", hint="missing='error' or missing='unreadable'")
        if not 1 <= self.n_entries <= MOST_ENTRIES:
            raise ModelError(f"a statistic has 1 to {MOST_ENTRIES:,} entries.")

    @property
    def name(self) -> str:
        """What certificates call it."""
        return f"noisy-{self.model}-statistics"

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """What each entry is the sum of."""

    @property
    def n_entries(self) -> int:
        """How many sums there are."""
        return len(self.names)

    @property
    def rows(self) -> int:
        """One for each entry, and one for a noisy n."""
        return self.n_entries + (self.size_noise is not None)

    @property
    def row_names(self) -> tuple[str, ...]:
        """What each published row is the sum of: the entries, then the records themselves where n is published with noise."""
        names = self.names
        return names if self.size_noise is None else (*names, unused("n", names))

    @property
    def beside(self) -> tuple[str, ...]:
        """The sums."""
        return (VALUES,)

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are read."""

    @property
    @abstractmethod
    def l1_units(self) -> int:
        """Most that one neighbour moves the sums, absolute values added, in lattice steps."""

    @property
    @abstractmethod
    def l2_squared_units(self) -> int:
        """Most that one neighbour moves the sums, squares added, in squared lattice steps."""

    @property
    def offsets(self) -> NDArray[np.float64]:
        """What each record's vector has subtracted from it: an exact sum is that of the plain vectors less n times this."""
        return np.zeros(self.n_entries)

    def records_model(self) -> Any:
        """A model of the records of its own, such as a `PythonModel`; None: that of the nearest statistic it derives from."""
        return None

    def own_parameters(self) -> dict[str, Any]:
        """Fields that this mechanism adds, as plain data."""
        shared = {each.name for each in fields(StatisticMechanism)}
        return {name: value for name, value in self.parameters().items() if name not in shared}

    @abstractmethod
    def sum_units(self, source: Source) -> tuple[list[int], int]:
        """Exact sums in lattice steps, and the number of records; confidential."""

    @property
    def profile(self) -> PrivacyProfile:
        """The guarantee of everything that is released, for a person's records together. See the class."""
        k, noise, size = self.contributions, self.noise, self.size_noise
        if noise.kind == "laplace":
            exact = Fraction(k * self.l1_units) * Fraction(noise.step) / Fraction(noise.scale)
            exact += 0 if size is None else Fraction(k) / Fraction(size.scale)
            return PointProfile(epsilon0=float_up(exact), delta0=0.0, neighbouring=self.neighbouring)
        rho = 0.5 * k * k * self.l2_squared_units / noise.units**2
        rho += 0.0 if size is None else 0.5 * k * k / size.scale**2
        return ZeroConcentratedProfile(rho=rho * ROUND_UP, neighbouring=self.neighbouring)

    @property
    def relation(self) -> Neighbouring:
        """`neighbouring`: n is no parameter."""
        return self.neighbouring

    def unit_profile(self, guarantee: Guarantee) -> PrivacyProfile:
        """The profile: sums are calibrated for a person's records together."""
        if self.contributions != guarantee.contributions:
            raise ModelError("the privacy unit is not the one that the statistics are accounted for.")
        return self.profile

    def zcdp(self, guarantee: Guarantee) -> float | None:
        """`rho`."""
        return self.rho

    @property
    def rho(self) -> float:
        """Of the whole release; epsilon^2/2 for Laplace noise."""
        profile = self.profile
        if isinstance(profile, ZeroConcentratedProfile):
            return profile.rho
        return 0.5 * profile.pure_epsilon**2 * ROUND_UP

    def draw(self, data: Any, /, *, entropy: Entropy) -> "NoisyStatistics":
        """Read the data, add up, add noise. The only confidential numbers, the exact sums, are forgotten."""
        with opened(data) as source:
            sums, n = self.sum_units(source)
        return self.add_noise(sums, n, entropy=entropy)

    def simulate(self, data: Any, /, *, rng: np.random.Generator) -> "NoisyStatistics":
        """There is no twin: models of the records simulate sums."""
        raise ModelError("noisy sums are not simulated from data.", hint="Use `simulate` of a model, or `draw`")

    def add_noise(self, sums: list[int], n: int, *, entropy: Entropy) -> "NoisyStatistics":
        """Noise on exact sums (in lattice steps) and, where it shall be published, on n."""
        noise = self.noise.draw_units(len(sums), entropy=entropy)
        values = np.array([float(Fraction(s + x) * Fraction(self.noise.step)) for s, x in zip(sums, noise, strict=True)])
        if self.neighbouring == "replace-one":
            return NoisyStatistics(mechanism=self, values=values, n=n)
        noisy_n = None
        if self.size_noise is not None:
            [extra] = self.size_noise.draw_units(1, entropy=entropy)
            noisy_n = float(Fraction(n * round(1.0 / self.size_noise.step) + extra) * Fraction(self.size_noise.step))
        return NoisyStatistics(mechanism=self, values=values, noisy_n=noisy_n)

    # -- what is published

    def hidden_by_noise(self, values: NDArray[np.float64], n: float) -> list[str]:
        """Columns of n records of which the published sums may show no variation at all; none where nothing is known of it."""
        return []

    @property
    def in_words(self) -> str:
        """For readers of a report."""
        return f"sums over the records with random noise added to each ({self.model})"

    def fits(self, domain: Mapping[str, Any]) -> bool:
        """What the sums are of, field by field."""
        return canonical(domain) == canonical({"kind": "statistics", **self.own_parameters()})

    def columns_for(self, domain: Mapping[str, Any]) -> list[str] | None:
        """The names of the sums, and the sums."""
        return [NAMES, VALUES]

    def content(self, domain: Mapping[str, Any]) -> Content:
        """Numbers on the lattices of their noise, each beside its name."""
        sized = () if self.size_noise is None else (self.size_noise,)
        units = (float(self.l1_units),) * self.n_entries + tuple(1.0 / each.step for each in sized)
        return SumsContent(self.row_names, (self.noise,) * self.n_entries + sized, units)

    def likelihood(self, published: Numbers) -> Likelihood:
        """Each sum has noise of its own; what is said of n has another."""
        return NoisyStatistics(mechanism=self, values=published.values, n=published.n, noisy_n=published.noisy_n)

    # -- what an audit needs

    def column_ends(self) -> dict[str, tuple[Any, Any]]:
        """Two values of each column, as far apart as the public bounds let them be."""
        own = self.own_parameters()
        if isinstance(own.get("lower"), list):  # moments of bounded columns; the response of a logistic regression is 0 or 1
            bounds = list(zip(own["lower"], own["upper"], strict=True))
            return dict(zip(self.columns, [*bounds, (0.0, 1.0)], strict=False))
        return {name: (0.0, float(own.get("upper", 1.0))) for name in self.columns}

    def hostile_records(self, plain: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """What records may hold that no bound foresees, unless it is declared not to be there: in all columns of a record."""
        from privurn.privacy.audit.raw_records import BEYOND_FLOATS, HOSTILE_NUMBERS, NO_NUMBERS

        none = {} if getattr(self, "missing", "error") == "error" else NO_NUMBERS
        for name, value in {**HOSTILE_NUMBERS, **BEYOND_FLOATS, **none}.items():
            yield name, dict.fromkeys(plain, value)

    def neighbours(
        self, *, contributions: int, domain: JointDomain | None = None, read: "Reader | None" = None
    ) -> "list[Pair]":
        """All of a person's records, which add as much to the sums as records can, or are hostile; in exact sums."""
        from privurn.mechanisms.sums.neighbours import sum_pairs

        return sum_pairs(self)

    def sample(self, data: tuple[list[int], int], /, *, size: int, entropy: Entropy) -> NDArray[np.float64]:
        """Noisy sums; each output has noise of its own, and ends in what is said of the number of records."""
        released = [self.add_noise(*data, entropy=entropy) for _ in range(size)]
        said = [each.n if each.n is not None else each.noisy_n for each in released]
        return np.stack([np.append(a.values, [] if n is None else [float(n)]) for a, n in zip(released, said, strict=True)])

    def seconds(self, *, contributions: int) -> float:
        """Each sum is a call of OpenDP's sampler."""
        return PER_CALL + PER_NOISE * self.n_entries


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyStatistics:
    """What was released: public numbers, and the mechanism that made them.

    values[j] = (sum over records of t_j(record)) + noise, with t_j and the noise as `mechanism` says; t_j has
    `mechanism.offsets[j]` subtracted. n is public under replace-one and None under add-remove, where `noisy_n` is the number
    of records plus noise (it may be negative: that is legitimate), or None if it was not published.
    """

    mechanism: StatisticMechanism
    values: NDArray[np.float64]
    n: int | None = None
    noisy_n: float | None = None

    def __post_init__(self) -> None:
        if self.values.shape != (self.mechanism.n_entries,) or not np.all(np.isfinite(self.values)):
            raise ModelError("the values do not fit the mechanism.", hint=f"{self.mechanism.n_entries} finite numbers")
        public = self.mechanism.neighbouring == "replace-one"
        if public != (self.n is not None) or (self.n is not None and self.n < 0):
            raise ModelError("n is stated under replace-one neighbours, and only there.")
        if (self.noisy_n is not None) != (self.mechanism.size_noise is not None):
            raise ModelError("a noisy n is stated where the mechanism adds noise to n, and only there.")
        if self.noisy_n is not None and not math.isfinite(self.noisy_n):
            raise ModelError("the noisy n must be finite.")

    @property
    def model(self) -> str:
        """What the statistic is asked for by: regression, logistic, dirichlet, bernoulli, poisson, normal or another's own."""
        return self.mechanism.model

    def nearest(self, known: Collection[str]) -> str | None:
        """The statistic's model, or that of the nearest one that it derives from, among those that are known."""
        names = (vars(kind).get("model") for kind in type(self.mechanism).__mro__)
        return next((name for name in names if name in known), None)

    @property
    def neighbouring(self) -> Neighbouring:
        """Under which relation the guarantee holds."""
        return self.mechanism.neighbouring

    @property
    def noise(self) -> NoiseLaw:
        """Noise of every entry of `values`."""
        return self.mechanism.noise

    @property
    def size_noise(self) -> NoiseLaw | None:
        """Noise of `noisy_n`."""
        return self.mechanism.size_noise

    def of_model(self, *models: str) -> Any:
        """The mechanism, whose fields say what the sums are of, if they are those of a model."""
        if self.nearest(models) is None:
            raise ModelError(f"these are statistics of the model {self.model}, not {models[0]}.")
        return self.mechanism

    def log_density(self, exact_sums: NDArray[np.float64]) -> float:
        """Log probability of the released values if the exact sums (offsets subtracted) were these."""
        return float(self.noise.log_density(self.values - exact_sums).sum())

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the published numbers say about their own use. Nothing confidential is looked at."""
        n = self.noisy_n if self.n is None else float(self.n)
        found: list[str] = []
        if n is not None and n < len(self.mechanism.columns) + 1:
            found.append("The published number of records is smaller than the model needs; inference will lean on its prior.")
        if n is not None and n >= 1.0 and (flat := self.mechanism.hidden_by_noise(self.values, n)):
            listed = ", ".join(repr(name) for name in flat)
            found.append(f"The noise may hide all variation of {listed}; narrower bounds or more budget would help.")
        return tuple(found)

    def table(self) -> Any:
        """Arrow table of what is published: each sum beside what it is the sum of, a noisy n last."""
        numbers = self.values if self.noisy_n is None else np.append(self.values, self.noisy_n)
        return number_table({VALUES: numbers}, {NAMES: self.mechanism.row_names})


@contextmanager
def opened(data: Any) -> Iterator[Source]:
    """A table, opened unless it is already."""
    if isinstance(data, Source):
        yield data
        return
    with open_table(data) as source:
        yield source
