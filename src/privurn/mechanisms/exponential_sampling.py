"""Exact draws for the exponential mechanism: the law is that of the decimal weights as computed, to the last digit.

Cells are filled one after the other. The weight of s records in a cell, given that `left` are still to be placed, is the
cell's own weight times the total weight of all ways to place the rest, from a table built backwards. All numbers are
positive, so rounding to fifty digits moves a weight by a relative error that docs/proofs/exponential.md bounds.
"""

import math
import operator
from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal, localcontext
from itertools import accumulate
from typing import Protocol

from privurn.mechanisms.exponential_losses import CONTEXT, DIGITS, Loss, term_weights
from privurn.privacy.entropy import Entropy

WINDOW = 200
"""Powers of ten looked at in one draw; what lies below them is looked at only when the draw falls there."""
MARGIN = 10
"""Fewer than 10^(MARGIN - 1) weights, each below 10^(c - MARGIN), have a sum below 10^(c - 1)."""


def choose(weights: Sequence[Decimal], *, entropy: Entropy) -> int:
    """Index i with probability exactly weights[i] / sum(weights); positive weights of at most fifty digits.

    A weight may be 10^-1000000 times another: a common denominator would not fit in memory. Integers are drawn on a scale
    that holds the largest weights and one slot, wider than all the others together; a draw in that slot is looked
    at on a finer scale, and where it meets no weight there everything is drawn anew.
    """
    leading = [weight.adjusted() for weight in weights]
    top, least = max(leading) + MARGIN + 1, min(leading)
    slot = 10 ** (MARGIN + DIGITS - 1)
    while True:
        ceiling = top  # all weights below 10^(ceiling - MARGIN) are still in play
        while ceiling - MARGIN > least:
            floor = ceiling - WINDOW
            unit = floor - MARGIN - DIGITS + 1  # every weight from 10^(floor - MARGIN) on is a multiple of 10^unit
            members = [i for i, power in enumerate(leading) if floor <= power + MARGIN < ceiling]
            with localcontext(CONTEXT):
                ends = list(accumulate(int(weights[i].scaleb(-unit)) for i in members))
            total = ends[-1] if ends else 0
            bound = total + slot if ceiling == top else 10 ** (ceiling - unit)
            drawn = entropy.below(bound)
            if drawn < total:
                return members[bisect_right(ends, drawn)]
            if drawn >= total + slot:
                break
            ceiling = floor


class SequentialWeights(Protocol):
    """Weights of the number of records in one cell after the other."""

    def weights(self, cell: int, *, left: int) -> Sequence[Decimal]:
        """Weight of s = 0..left records in `cell` when `left` records are to be placed in this cell and the later ones."""


class CellWeights:
    """The weight of a histogram is the product of its cells' weights: convolutions.

    O(z m^2) products; O(z m) where each cell's weights fall geometrically, by one common `ratio`, on both sides of a kink.
    """

    def __init__(self, cells: Sequence[Sequence[Decimal]], *, kinks: Sequence[int] = (), ratio: Decimal | None = None) -> None:
        self._cells = cells
        rest: list[Sequence[Decimal]] = [cells[-1]]
        with localcontext(CONTEXT):
            powers = None if ratio is None else Powers(ratio, len(cells[0]))
            for cell in range(len(cells) - 2, 0, -1):
                if powers is None:
                    rest.append(convolved(cells[cell], rest[-1]))
                else:
                    rest.append(geometrically_convolved(cells[cell], rest[-1], kink=kinks[cell], powers=powers))
        self._rest = rest[::-1]

    def weights(self, cell: int, *, left: int) -> Sequence[Decimal]:
        """Own weight times that of all ways to place the rest in the later cells."""
        rest = self._rest[cell]
        with localcontext(CONTEXT):
            return list(map(operator.mul, self._cells[cell], rest[left::-1]))


def convolved(own: Sequence[Decimal], rest: Sequence[Decimal]) -> list[Decimal]:
    """Sum of own[s] rest[r - s] over s = 0..r, for every r."""
    backwards, m = rest[::-1], len(rest) - 1
    return [sum(map(operator.mul, own, backwards[m - r :]), Decimal(0)) for r in range(m + 1)]


class Powers:
    """ratio^k and ratio^-k for k = 0..size-1; a decimal's exponent has room for both."""

    def __init__(self, ratio: Decimal, size: int) -> None:
        self.up = list(accumulate([ratio] * (size - 1), operator.mul, initial=Decimal(1)))
        self.down = list(accumulate([1 / ratio] * (size - 1), operator.mul, initial=Decimal(1)))


def geometrically_convolved(own: Sequence[Decimal], rest: Sequence[Decimal], *, kink: int, powers: Powers) -> list[Decimal]:
    """The same where own[s] = own[kink] ratio^(kink - s) up to the kink, own[kink + 1] ratio^(s - kink - 1) beyond it.

    Up to the kink the sum is one over a sliding window of ratio^k rest[k]. A running difference would cancel, so blocks of the
    window's width are summed from both ends: a window is the end of one block and the beginning of the next.
    """
    m, width = len(rest) - 1, kink + 1
    tilted = list(map(operator.mul, powers.up, rest))
    begun: list[Decimal] = []
    ending: list[Decimal] = []
    for start in range(0, m + 1, width):
        block = tilted[start : start + width]
        begun += accumulate(block)
        ending += list(accumulate(reversed(block)))[::-1]
    beyond = list(accumulate(map(operator.mul, powers.down, rest)))
    out = []
    for r in range(m + 1):
        first = r - kink
        if first <= 0:
            value = own[kink] * powers.up[-first] * begun[r]
        else:
            window = ending[first] if first % width == 0 else ending[first] + begun[r]
            value = own[kink] * powers.down[first] * window + own[kink + 1] * powers.up[first - 1] * beyond[first - 1]
        out.append(value)
    return out


class TotalWeights:
    """The weight is a product over running totals: suffix sums, O(z m)."""

    def __init__(self, totals: Sequence[Sequence[Decimal]]) -> None:
        m = len(totals[0]) - 1
        after = [Decimal(1)] * (m + 1)
        table = []
        with localcontext(CONTEXT):
            for own in reversed(totals):
                product = list(map(operator.mul, own, after))
                table.append(product)
                after = list(accumulate(reversed(product)))[::-1]
        self._m = m
        self._table = table[::-1]

    def weights(self, cell: int, *, left: int) -> Sequence[Decimal]:
        """The running total before the cell is m - left; after it m - left + s."""
        return self._table[cell][self._m - left :]


def draw_sequentially(law: SequentialWeights, *, cells: int, records: int, entropy: Entropy) -> list[int]:
    """Counts of all cells; the last one takes what is left."""
    drawn: list[int] = []
    left = records
    for cell in range(cells - 1):
        drawn.append(choose(law.weights(cell, left=left), entropy=entropy))
        left -= drawn[-1]
    return [*drawn, left]


def cell_tables(loss: Loss, counts: Sequence[int], *, n: int, m: int, rate: Decimal) -> list[list[Decimal]]:
    """Weights of s = 0..m records for each cell; equal counts share one table."""
    with localcontext(CONTEXT):
        tables = {x: term_weights(loss, x, n=n, m=m, rate=rate) for x in set(counts)}
    return [tables[x] for x in counts]


def total_tables(
    loss: Loss, counts: Sequence[int], *, gaps: Sequence[int], n: int, m: int, rate: Decimal
) -> list[list[Decimal]]:
    """Weights of the running totals 0..m after each cell but the last, where the total is m in any case."""
    pairs = list(zip(list(accumulate(counts))[:-1], gaps, strict=True))
    with localcontext(CONTEXT):
        tables = {pair: term_weights(loss, pair[0], n=n, m=m, rate=rate * pair[1]) for pair in set(pairs)}
    return [tables[pair] for pair in pairs]


def candidate_weights(loss: Loss, counts: Sequence[int], *, n: int, m: int, rate: Decimal) -> list[Decimal]:
    """e^(-rate sqrt(sum of terms)) of every histogram of m records, the first cell's count varying slowest."""
    with localcontext(CONTEXT):
        terms = {x: [loss.term(x, n, m, s) for s in range(m + 1)] for x in set(counts)}
        partial = [(m, Decimal(0))]
        for x in counts[:-1]:
            partial = [(left - s, done + terms[x][s]) for left, done in partial for s in range(left + 1)]
        last = terms[counts[-1]]
        return [(-rate * (done + last[left]).sqrt()).exp() for left, done in partial]


def candidate(index: int, *, cells: int, records: int) -> list[int]:
    """The histogram at this place of `candidate_weights`."""
    out: list[int] = []
    left = records
    for later in range(cells - 1, 0, -1):
        s = 0
        while index >= (ways := math.comb(left - s + later - 1, later - 1)):
            index -= ways
            s += 1
        out.append(s)
        left -= s
    return [*out, left]
