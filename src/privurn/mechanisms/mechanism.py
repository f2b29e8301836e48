"""The one contract of whatever can make a release: a mechanism on counts, a channel on every record, noisy sums.

Everything that the rest of the package asks of a mechanism is asked through these members: who certifies, verifies, pays,
audits, compares and reports knows no mechanism by name. The members that are not abstract say what holds for a mechanism on the
counts of a public domain; other kinds (`LocalRelease`, `StatisticMechanism`) say their own. How to add one:
docs/how-to/add-a-mechanism.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.domain import JointDomain
from privurn.errors import ModelError
from privurn.mechanisms.likelihood import Kind, Likelihood, Numbers
from privurn.mechanisms.plain_data import rebuilt, stated
from privurn.mechanisms.published import Cells, Content, Table, stated_joint
from privurn.privacy.entropy import Entropy, SeededEntropy
from privurn.privacy.profile import ROUND_UP, Guarantee, Neighbouring, PrivacyProfile
from privurn.tables.column_names import unused

if TYPE_CHECKING:
    from privurn.privacy.audit.attack import Pair
    from privurn.privacy.audit.findings import Claim
    from privurn.privacy.audit.neighbours import NeighbouringTables
    from privurn.privacy.audit.raw_records import Reader
    from privurn.privacy.audit.support import SupportAttack

SECRET_SIZE = 10
"""Records in the made-up tables of an audit where the number is secret: small tables tell most."""
PER_RECORD, PER_NOISE, PER_CALL = 2e-7, 2e-5, 1e-4
"""Seconds for a released record and what an audit looks at of it, for a number with OpenDP's noise, for a call in Python."""


@dataclass(frozen=True, kw_only=True)
class ErrorSources:
    """What pulls releases away from the data, in words, with public numbers.

    `shrinkage`  the error that is the same in every release
    `noise`      what differs from release to release
    `size`       why the number of released records costs accuracy; None: that number, and no more
    """

    shrinkage: str = "the mechanism's own pull, the same in every release"
    noise: str = "the chance of sampling"
    size: str | None = None


class Mechanism(ABC):
    """A mechanism is frozen public data. It never holds the confidential data it is applied to."""

    n: int | None
    """Public number of confidential records the guarantee was computed for; None where it is secret, or no parameter."""
    records: int
    """Number of records drawn."""
    cells: int | None
    """Cells of the public domain; None where the domain is open."""
    adds_noise: ClassVar[bool] = False
    """Whether OpenDP draws some of the randomness."""
    synthetic: ClassVar[bool] = True
    """Whether rows are made from the law of the whole table; else they are records, or numbers, with noise."""
    measures: ClassVar[bool] = False
    """Whether it publishes measurements; where it is `synthetic` too, records are made from them alone afterwards."""
    forecast: ClassVar[bool] = True
    """Whether simulated releases are quick enough to tell beforehand, in a plan, what errors to expect."""
    assumes: ClassVar[tuple[str, ...]] = ()
    """What the guarantee rests on beyond what every one rests on, in plain words."""
    ways: ClassVar[Mapping[str, Mapping[str, Any]] | None] = None
    """Ways to use it that are compared, by name, and what each asks for beside the guarantee; None: one, by its own name.

    `...` stands for what the caller must give.
    """
    coarser: ClassVar[bool] = False
    """Whether it is compared on a coarser grid as well."""
    inferred_from: ClassVar[Kind] = "counts"
    """How what was published is read: as counts of cells, as records, or as sums."""
    why_not: ClassVar[str] = "how likely its output is given the confidential counts is not written down"
    """Why there is no likelihood, where there is none; ends a sentence."""

    @property
    def makes_records(self) -> bool:
        """Whether records may be made of what it publishes."""
        return self.measures and self.synthetic

    # -- the guarantee

    @property
    @abstractmethod
    def name(self) -> str:
        """What certificates and the command line call it."""

    @property
    @abstractmethod
    def profile(self) -> PrivacyProfile:
        """The guarantee, for one record."""

    @property
    def relation(self) -> Neighbouring:
        """For which neighbours the guarantee holds: add-remove where n is secret."""
        return "add-remove" if self.n is None else "replace-one"

    def unit_profile(self, guarantee: Guarantee) -> PrivacyProfile:
        """The profile for the privacy unit of a guarantee: one record, or all that one person may own."""
        return self.profile.group(guarantee.contributions)

    def zcdp(self, guarantee: Guarantee) -> float | None:
        """The rho for which a release under the guarantee is rho-zCDP for its privacy unit; None where none is claimed.

        A pure epsilon-DP release is epsilon^2/2-zCDP; noise knows better, and says its own.
        """
        if guarantee.delta > 0.0:
            return None
        return 0.5 * min(guarantee.epsilon, self.unit_profile(guarantee).pure_epsilon) ** 2 * ROUND_UP

    def parameters(self) -> dict[str, Any]:
        """Everything that fixes the law of the output, as plain data: the fields, unless a mechanism says otherwise."""
        return stated(self)

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> Self:
        """Inverse of `parameters`."""
        return rebuilt(cls, data)

    # -- drawing

    @abstractmethod
    def draw(self, data: Any, /, *, entropy: Entropy) -> Any:
        """Apply the mechanism once: to a table of counts, which gives `Drawn`, or to what else it is for."""

    def draw_many(self, data: Any, /, *, size: int, entropy: Entropy) -> Iterator[Any]:
        """`size` independent releases of the same data, word for word what as many calls of `draw` give.

        For audits. A mechanism that computes much from the data before it draws does so once here.
        """
        for _ in range(size):
            yield self.draw(data, entropy=entropy)

    @property
    def draws_blocks(self) -> bool:
        """Whether there is `draw_blocks`."""
        return False

    def draw_blocks(self, data: Any, /, *, size: int, entropy: Entropy) -> Iterator[CountTable]:
        """The release as counts of `size` records at a time, one after the other, for tables that no memory holds.

        All orders of the records must be equally likely given how often each was drawn.
        """
        raise NotImplementedError

    def check(self, counts: CountTable) -> None:
        """Where the guarantee was computed for a public number of records, the data must have that many."""
        if self.n is not None and counts.n != self.n:
            raise ModelError("the mechanism was planned for another number of records than the data hold.")

    def simulate(self, data: Any, /, *, rng: np.random.Generator) -> Any:
        """For simulation, never for a release: how often each cell is drawn, or the numbers beside the cells.

        A floating-point twin where a mechanism has one, else seeded exact draws.
        """
        drawn = self.draw(data, entropy=SeededEntropy(int(rng.integers(2**63))))
        return np.bincount(drawn.cells, drawn.weights, minlength=self.cells or 0)

    def shared_law(self, counts: CountTable) -> Any:
        """What all simulated releases of the same data share and what takes long to compute; None: nothing. Confidential."""
        return None

    def simulated_weights(self, counts: CountTable, *, rng: np.random.Generator, law: Any = None) -> NDArray[Any]:
        """A simulated release as a weight for each cell, negative ones 0; `law` is `shared_law` where it is at hand."""
        drawn = np.asarray(self.simulate(counts, rng=rng, **({} if law is None else {"law": law})))
        weights = np.maximum(drawn.reshape(-1, self.cells or drawn.shape[-1]).sum(axis=0), 0)  # several draws are averaged
        return weights if weights.any() else np.ones(len(weights))

    # -- what is published

    @property
    def rows(self) -> int | None:
        """Rows of the published table where the parameters fix them, else None."""
        return None

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of the number columns that `Drawn.columns` puts beside the cells; none for records."""
        return ()

    @property
    def rows_are(self) -> str:
        """What a published row is called, many of them."""
        return "synthetic records"

    @property
    def in_words(self) -> str:
        """What it does, for readers of a report; ends a sentence that begins with `The mechanism:`."""
        return "see its parameters below"

    @property
    def error_sources(self) -> ErrorSources:
        """Where the error of a release comes from."""
        return ErrorSources()

    def fits(self, domain: Mapping[str, Any]) -> bool:
        """Whether a certificate's domain is one that the mechanism is for, stated as privurn states it."""
        joint = stated_joint(domain)
        if joint is None or joint.size != self.cells:
            return False
        return not (self.beside and joint.spread)

    def columns_for(self, domain: Mapping[str, Any]) -> list[str] | None:
        """Names of the published columns, given a certificate's domain; None where that names none."""
        names = list(domain["columns"]) if domain["kind"] == "joint" else [str(domain.get("column"))]
        for name in self.beside:
            names.append(unused(name, names))
        return names

    def content(self, domain: Mapping[str, Any]) -> Content:
        """What a data file can hold if it was published on a domain that `fits`."""
        return (Table if self.beside else Cells)(domain)

    # -- what inference needs

    def likelihood(self, published: Numbers) -> Likelihood:
        """How likely what was published is given the confidential data: all that inference asks."""
        raise self.without_likelihood(self.why_not)

    def without_likelihood(self, why: str) -> ModelError:
        """The refusal of `likelihood`, in one sentence."""
        return ModelError(
            f"there is no likelihood for a release by {self.name}: {why}.",
            hint="Take it at face value, or ask for a release that has one: docs/reference/inference.md lists them",
        )

    # -- what an audit needs

    @property
    def least_protected(self) -> tuple[int, int] | None:
        """Two cells between which a moved record shows most; None: any two."""
        return None

    def neighbouring_tables(self, *, contributions: int) -> "list[NeighbouringTables]":
        """Tables of counts that reveal most, made from public sizes."""
        from privurn.privacy.audit.neighbours import neighbouring_tables

        return neighbouring_tables(
            n=SECRET_SIZE if self.n is None else self.n,
            cells=self.cells,
            neighbouring=self.relation,
            contributions=contributions,
            differing=self.least_protected,
        )

    def neighbours(
        self, *, contributions: int, domain: JointDomain | None = None, read: "Reader | None" = None
    ) -> "list[Pair]":
        """Neighbouring data sets for an audit; with a `domain` raw records too, through `read` (None: as a release reads)."""
        from privurn.privacy.audit.attack import Pair
        from privurn.privacy.audit.raw_records import raw_pairs, read_counts

        tables = self.neighbouring_tables(contributions=contributions)
        found = [Pair(each.name, each.first_counts(), each.second_counts(), (each.left, each.right)) for each in tables]
        if domain is None:
            return found
        n, secret = SECRET_SIZE if self.n is None else self.n, self.relation == "add-remove"
        return found + raw_pairs(domain, n=n, moved=contributions, add_remove=secret, read=read or read_counts)

    def sample(self, data: Any, /, *, size: int, entropy: Entropy) -> Any:
        """`size` outputs on one of the `neighbours`, each as the numbers that an audit looks at."""
        return [each.looked_at(data) for each in self.draw_many(data, size=size, entropy=entropy)]

    def support_attacks(self, claim: "Claim", *, entropy: Entropy) -> "list[SupportAttack]":
        """Attacks with marks that only one record carries; for mechanisms that publish labels nobody listed."""
        return []

    def seconds(self, *, contributions: int) -> float:
        """About what an output costs."""
        return PER_RECORD * self.records + PER_CALL


class Drawn:
    """Released cells, in an order that carries no information.

    Cells at or above `first_new` are fresh labels that the data did not hold (open labels only).

    With `weights` the release is no list of records but a table: all cells in their order, `draws` times over, and a number
    beside each of them, published in a column called `weight_name`.
    """

    def __init__(
        self,
        cells: NDArray[np.int64],
        *,
        first_new: int | None = None,
        weights: NDArray[Any] | None = None,
        weight_name: str = "weight",
        draws: int = 1,
    ) -> None:
        self.cells = cells
        self.first_new = first_new
        self.weights = weights
        self.weight_name = weight_name
        self.draws = draws

    def columns(self) -> dict[str, NDArray[Any]]:
        """What is published beside the cells: nothing for records; else the weights, and the number of the draw if several."""
        if self.weights is None:
            return {}
        number = np.repeat(np.arange(1, self.draws + 1), len(self.cells) // self.draws)
        return {**({"draw": number} if self.draws > 1 else {}), self.weight_name: self.weights}

    def looked_at(self, counts: CountTable) -> NDArray[Any]:
        """Released values as an audit sees them. With open labels cells number the table's own values; new ones are -1, -2, ...

        A table of weights comes first, so that the weight of cell i is the entry at place i.
        """
        if self.weights is not None:
            return np.concatenate([self.weights, self.cells])
        if self.first_new is None:
            return self.cells
        n_new = max(0, int(self.cells.max(initial=-1)) + 1 - self.first_new)
        labels: NDArray[np.int64] = np.concatenate([counts.values.astype(np.int64), -1 - np.arange(n_new)])[self.cells]
        return labels
