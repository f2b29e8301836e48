"""Brute force in rational arithmetic: laws of the urns written straight from their definition, and divergences between them."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

Law = dict[tuple, Fraction]


def count_vectors(total: int, cells: int) -> Iterator[tuple[int, ...]]:
    """All ways to spread `total` records over `cells` cells."""
    if cells == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in count_vectors(total - first, cells - 1):
            yield (first, *rest)


def sequence_law(start: dict, step: Callable[[dict, int], list[tuple[object, Fraction]]], m: int) -> Law:
    """Law of m draws: `step` lists the next values and their probabilities given the counts so far."""
    law: Law = defaultdict(Fraction)

    def extend(drawn: tuple, counts: dict, probability: Fraction) -> None:
        if len(drawn) == m:
            law[drawn] += probability
            return
        for value, share in step(counts, len(drawn)):
            if share:
                extend((*drawn, value), {**counts, value: counts.get(value, 0) + 1}, probability * share)

    extend((), dict(start), Fraction(1))
    return dict(law)


def pitman_yor_law(counts: dict, *, strength: Fraction, discount: Fraction, m: int) -> Law:
    """Released sequences: old values by name, new ones numbered by appearance (a non-atomic base never repeats)."""
    n = sum(counts.values())

    def step(now: dict, drawn: int) -> list:
        total = strength + n + drawn
        new = ("new", sum(isinstance(value, tuple) for value in now))
        old = [(value, (count - discount) / total) for value, count in now.items()]
        return [*old, (new, (strength + discount * len(now)) / total)]

    return sequence_law({value: count for value, count in counts.items() if count}, step, m)


def dirichlet_multinomial_law(counts: tuple[int, ...], *, alphas: tuple[Fraction, ...], m: int) -> Law:
    """Released sequences of cells."""
    n, prior = sum(counts), sum(alphas)

    def step(now: dict, drawn: int) -> list:
        return [(cell, (alphas[cell] + now.get(cell, 0)) / (prior + n + drawn)) for cell in range(len(alphas))]

    return sequence_law(dict(enumerate(counts)), step, m)


def hockey_stick(first: Law, second: Law, ratio: Fraction) -> Fraction:
    """sup_B first(B) - ratio second(B)."""
    return sum((max(Fraction(0), p - ratio * second.get(key, 0)) for key, p in first.items()), Fraction(0))


def neighbours(cells: int, n: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Ordered pairs of count vectors that differ in one replaced record."""
    for common in count_vectors(n - 1, cells):
        for left, right in product(range(cells), repeat=2):
            if left != right:
                yield (
                    tuple(count + (cell == left) for cell, count in enumerate(common)),
                    tuple(count + (cell == right) for cell, count in enumerate(common)),
                )
