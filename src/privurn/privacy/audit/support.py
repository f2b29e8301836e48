"""Events that are impossible without a certain record: a mark that only it carries appears in the output.

Put marks into a data set x, one in each of several records: labels that nobody else has, or numbers drawn at random. Let y_i
be x with the i-th marked record replaced. Whatever the mechanism does on y_i, mark i is not there to be published, so
(epsilon, delta)-DP says P_x(mark i appears) <= delta + e^epsilon P_(y_i)(mark i appears), where the last probability is 0, or
that of guessing a random mark. Averaged over i: the expected share of marks that appear is at most delta (plus the guesses),
although x and each y_i differ in one record only. One output with 5,000 lone labels tests 5,000 such pairs at once.

If a mechanism treats its labels independently, as label discovery does, each is a trial of its own. The test does not rest on
that: it bets on the share in each output, and only outputs have to be independent of each other (bets.py).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from privurn.privacy.audit.bets import LARGEST, TINIEST, Floats, largest_refuted, log_wealth_of_shares, share_stakes
from privurn.privacy.audit.findings import Claim, Finding
from privurn.privacy.audit.power import Power, least_leak_in_shares


@dataclass(frozen=True)
class SupportAttack:
    """Marks in records, and the share of them that appears in each of `runs` independent outputs."""

    name: str
    event: str
    shares: Callable[[int], Floats]
    """Draws so many outputs; the share of marks in each."""
    marks: int
    """In each output."""
    runs: int
    claims: tuple[Claim, ...]
    guess: float = 0.0
    """Most that the probability of a mark can be where no record carries it."""

    def findings(self, *, failure: float) -> list[Finding]:
        """Draw, and test every claim on the same outputs."""
        shares = self.shares(self.runs)
        return [self._finding(shares, claim, failure) for claim in self.claims]

    def _finding(self, shares: Floats, claim: Claim, failure: float) -> Finding:
        epsilon, needed = claim.finite, -math.log(failure)
        stakes = share_stakes(self._bound(claim))
        guesses = 0.0 if epsilon is None else math.exp(min(epsilon, LARGEST)) * self.guess

        def wealth_at(delta: float) -> float:
            return log_wealth_of_shares(shares, bound=delta + guesses, stakes=stakes)

        wealth = log_wealth_of_shares(shares, bound=self._bound(claim), stakes=stakes)
        refuted = largest_refuted(wealth_at, needed=needed, most=1.0)
        refutes = wealth >= needed
        return Finding(
            pair=self.name,
            direction="first over second",
            event=self.event,
            claim=claim,
            hits=(round(float(shares.sum()) * self.marks), 0),
            trials=self.runs * self.marks,
            evidence=wealth,
            convicted=refutes and epsilon is not None,
            # an impossible event refutes every epsilon at once, but for the guesses
            epsilon_lower=(math.inf if self.guess == 0.0 else epsilon or 0.0) if refutes else 0.0,
            delta_lower=None if epsilon is None else (refuted or 0.0),
        )

    def _bound(self, claim: Claim) -> float:
        epsilon = claim.finite
        guesses = 0.0 if epsilon is None else math.exp(min(epsilon, LARGEST)) * self.guess
        return max(claim.delta + guesses, TINIEST)

    def power(self, *, failure: float) -> list[Power]:
        """Smallest probability of a mark that would have been convicted, for each claim."""
        needed = -math.log(failure)
        independent = "if marks are disclosed independently of each other" if self.marks > 1 else ""
        return [
            Power(
                attack=self.event,
                of=claim.of,
                trials=self.runs * self.marks,
                leak=least_leak_in_shares(self.runs, self.marks, bound=self._bound(claim), needed=needed),
                delta=claim.delta,
                provided=independent,
            )
            for claim in self.claims
            if claim.finite is not None
        ]
