"""What is asked for where a noisy tree is: the default release of one or two columns with an order."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from privurn.errors import FormatError, ModelError
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.noisy_tree import PerturbedTree, check_cells, tree_shape
from privurn.mechanisms.recipe import Public, Recipe, check_copies, option
from privurn.mechanisms.tree_layout import calibrate_noisy_tree
from privurn.privacy.laws.noisy_tree import KINDS, TreeNoise

MOST_COPIES = 1000


@dataclass(frozen=True, kw_only=True, repr=False)
class NoisyTree(Recipe):
    """Noisy counts of a tree over the values of one or two columns with an order, and synthetic records made from them.

    The noisy counts are what is paid for; any number of records, and of copies, follow from them without another look at the
    data. One copy is for use at face value: its cumulative counts are the posterior medians, rounded. Several are draws of the
    confidential table, whose spread tells how far an estimate may be off (`privurn.combine`).
    """

    alias: ClassVar[str] = "noisy-tree"
    offered: ClassVar[str | None] = "records from a noisy tree at the same guarantee"
    keeps_n_secret: ClassVar[bool] = True

    noise: TreeNoise | None = option("discrete-laplace or discrete-gaussian; left out: that with the smaller error.")
    guess: int | None = option("A public guess of a secret number of records. Default: the number of records to release.")
    independent: bool = option(
        "All noise is independent: a smaller rho, for budgets that are kept in rho, and errors that are some per cent larger.",
        default=False,
    )
    copies: int = option("Synthetic tables drawn from the posterior; 1 (default): one table of its means.", default=1)

    @property
    def has_size(self) -> bool:
        """A guess will do."""
        return self.records is not None or self.guess is not None

    def sized(self, records: int) -> "NoisyTree":
        """Copies have the confidential size, of which there is a guess."""
        return replace(self, guess=records) if self.copies > 1 else replace(self, records=records)

    def check(self) -> None:
        """Words and numbers that are known."""
        super().check()
        if self.noise is not None and self.noise not in KINDS:
            raise FormatError(f"the noise {self.noise!r} is not known.", hint=", ".join(KINDS))
        if self.guess is not None and (not math.isfinite(self.guess) or int(self.guess) != self.guess or self.guess < 1):
            raise ModelError("guess must be a positive whole number.", hint="For example guess=20")
        check_copies(self.copies, self.records, most=MOST_COPIES, guessed=True)

    def makes_parts(self, mechanism: Mechanism, public: Public) -> bool:
        """They are known by the counts of cells."""
        return True

    def calibrate(self, public: Public) -> PerturbedTree:
        """The layout and the least noise."""
        check_cells(public.known_cells)
        shape = ((public.known_cells,), (0,)) if public.domain is None else tree_shape(public.domain)
        if shape is None:
            raise ModelError("a noisy tree needs one or two columns of numbers.", alternatives=())
        return calibrate_noisy_tree(
            n=public.n,
            shape=shape[0],
            special=shape[1],
            guarantee=public.guarantee,
            guess=self.guess or self.records,
            noise=self.noise,
            independent=self.independent,
        )
