"""What every release mechanism is: public parameters, a profile, and a way to turn counts into released cells."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privurn.counts import CountTable
from privurn.errors import ModelError
from privurn.privacy.entropy import Entropy
from privurn.privacy.profile import PrivacyProfile


class Mechanism(ABC):
    """A mechanism is frozen public data. It never holds the confidential counts it is applied to.

    How to add one: a frozen dataclass with the members below, an entry in `registry.py`, a page under docs/proofs
    for its profile, and an enumeration in tests/exact.
    """

    n: int | None
    """Public number of confidential records the guarantee was computed for; None where it is secret (add/remove)."""
    records: int
    """Number of records drawn."""
    cells: int | None
    """Cells of the public domain; None where the domain is open."""
    adds_noise: ClassVar[bool] = False
    """Whether OpenDP draws some of the randomness."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What certificates and the command line call it."""

    @property
    @abstractmethod
    def profile(self) -> PrivacyProfile:
        """The guarantee, for one record."""

    @property
    def rows(self) -> int | None:
        """Rows of the published table where the parameters fix them, else None."""
        return None

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of the number columns that `Drawn.columns` puts beside the cells; none for records."""
        return ()

    @abstractmethod
    def draw(self, counts: CountTable, *, entropy: Entropy) -> "Drawn":
        """Apply the mechanism once."""

    def draw_many(self, counts: CountTable, *, size: int, entropy: Entropy) -> Iterator["Drawn"]:
        """`size` independent releases of the same table, word for word what as many calls of `draw` give.

        For audits. A mechanism that computes much from the table before it draws does so once here.
        """
        for _ in range(size):
            yield self.draw(counts, entropy=entropy)

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Everything that fixes the law of the output, as plain data: `from_parameters` gives the same mechanism back."""

    def check(self, counts: CountTable) -> None:
        """Where the guarantee was computed for a public number of records, the data must have that many."""
        if self.n is not None and counts.n != self.n:
            raise ModelError("the mechanism was planned for another number of records than the data hold.")


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
