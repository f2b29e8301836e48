"""Randomness for releases: exact integers from the operating system, and a seeded twin for tests.

The two are different types on purpose. Only `SystemEntropy` is private; whatever a `SeededEntropy` touches is marked
"seeded: not private", because anyone who knows the seed can undo the mechanism.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError

WORD_BITS = 63
ROWS_AT_ONCE = 2**12


class Entropy(ABC):
    """A source of independent uniform 63-bit words; everything drawn from it is exact integer arithmetic."""

    private: bool
    """Whether a release made with it may be called differentially private."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What a certificate says about the source."""

    @abstractmethod
    def words(self, size: int) -> NDArray[np.int64]:
        """`size` independent integers, uniform on [0, 2**63)."""

    def below_ramp(self, first: int, *, step: int, size: int) -> NDArray[np.int64]:
        """Independent integers, the i-th exactly uniform on [0, first + step i); all bounds must lie below 2**63."""
        from privurn._kernels.urns.integers import update_below

        if first < 1 or step < 0 or first + step * size >= 2**WORD_BITS:
            raise ModelError("integers can only be drawn many at a time below positive bounds of at most 63 bits.")
        out = np.empty(size, np.int64)
        rejected = np.empty(size, np.int64)
        n_rejected = update_below(self.words(size), first, step, out, rejected)
        for position in rejected[:n_rejected]:  # fewer than one in 2**63 / bound
            bound = first + step * int(position)
            out[position] = self.below(bound)
        return out

    def below_long_ramp(self, first: int, *, step: int, size: int) -> Iterator[int]:
        """The same for bounds of any length, as Python integers, one after the other."""
        n_words = (first + step * size).bit_length() // WORD_BITS + 2
        span = 1 << (WORD_BITS * n_words)
        for start in range(0, size, ROWS_AT_ONCE):
            rows = self.words(min(ROWS_AT_ONCE, size - start) * n_words).reshape(-1, n_words).tolist()
            for i, row in enumerate(rows, start):
                word = reduce(lambda high, low: (high << WORD_BITS) | low, row)
                rest = word % (first + step * i)
                kept = word - rest <= span - (first + step * i)
                yield rest if kept else self.below(first + step * i)

    def below(self, bound: int) -> int:
        """One integer, exactly uniform on [0, bound), for a bound of any size."""
        if bound < 1:
            raise ModelError("an integer can only be drawn below a positive bound.")
        n_words = -(-bound.bit_length() // WORD_BITS) + 1
        span = 1 << (WORD_BITS * n_words)
        while True:
            word = 0
            for each in self.words(n_words):
                word = (word << WORD_BITS) | int(each)
            rest = word % bound
            if word - rest <= span - bound:
                return rest

    def integers(self, bound: int, *, size: int) -> NDArray[np.int64]:
        """Independent integers, exactly uniform on [0, bound)."""
        return self.below_ramp(bound, step=0, size=size)

    def bernoullis(self, probability: Fraction, *, size: int) -> NDArray[np.bool_]:
        """Independent: each True with exactly this rational probability, whatever the length of its denominator."""
        if probability.denominator < 2**WORD_BITS:
            return self.integers(probability.denominator, size=size) < probability.numerator
        drawn = self.below_long_ramp(probability.denominator, step=0, size=size)
        return np.fromiter((each < probability.numerator for each in drawn), np.bool_, size)

    def shuffle(self, values: NDArray[Any]) -> None:
        """Put a one-dimensional array into a uniformly random order, in place."""
        from privurn._kernels.urns.integers import update_shuffled

        if len(values) > 1:
            update_shuffled(values, self.below_ramp(1, step=1, size=len(values)))


class SystemEntropy(Entropy):
    """The operating system's cryptographic generator."""

    private = True
    description = "operating system (os.urandom), exact integers"

    def words(self, size: int) -> NDArray[np.int64]:
        """Fresh words from the operating system."""
        words = np.frombuffer(bytearray(os.urandom(8 * size)), np.int64)
        words &= np.int64(2**WORD_BITS - 1)
        return words


class SeededEntropy(Entropy):
    """A reproducible stream for tests and research: anyone who knows the seed can undo the mechanism."""

    private = False
    description = "seeded: not private"

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def words(self, size: int) -> NDArray[np.int64]:
        """The next words of the stream."""
        return self._generator.integers(0, 2**WORD_BITS, size=size, dtype=np.int64)
