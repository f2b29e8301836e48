"""The exact law of what random choices make: every way that they can go is taken, with its probability."""

from collections import Counter
from fractions import Fraction


class EveryWay:
    """A source of randomness that takes one way after the other."""

    def __init__(self):
        self.taken = []

    def choose(self, outcomes):
        """The outcome of the way that is being taken; `outcomes` are pairs of a probability and a value."""
        if self.at == len(self.taken):
            self.taken.append([0, outcomes])
        place, known = self.taken[self.at]
        self.at += 1
        self.chance *= known[place][0]
        return known[place][1]

    def law(self, draw):
        """Of what is drawn, by all ways."""
        found = Counter()
        while True:
            self.at, self.chance = 0, Fraction(1)
            found[draw()] += self.chance
            while self.taken and self.taken[-1][0] + 1 == len(self.taken[-1][1]):
                self.taken.pop()
            if not self.taken:
                return found
            self.taken[-1][0] += 1
