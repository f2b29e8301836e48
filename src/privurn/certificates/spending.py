"""What a ledger has spent: the figure it enforces, and the tight one beside it.

The ledger enforces basic (or zCDP) composition, which stays valid when a later release is chosen after seeing earlier ones.
Tight composition of the privacy losses is smaller but holds only for a plan that was fixed beforehand, so it is reported
and never enforced.
"""

import json
from dataclasses import dataclass
from fractions import Fraction

from privurn.mechanisms.registry import rebuild
from privurn.privacy.composition import compose
from privurn.privacy.ledger import Ledger
from privurn.privacy.ledger_book import Entry
from privurn.privacy.profile import Guarantee, Neighbouring, PointProfile, PrivacyProfile


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Sums of the entries, and the tight epsilon at the spent delta if the plan had been fixed beforehand."""

    epsilon: float
    delta: float
    tight_epsilon: float | None


def spending(ledger: Ledger) -> Spending:
    """Both figures for all entries of a ledger; the tight one is None while nothing was spent."""
    entries = ledger.entries()
    epsilon = float(sum(Fraction(entry.epsilon) for entry in entries))
    delta = float(sum(Fraction(entry.delta) for entry in entries))
    if not entries:
        return Spending(epsilon=0.0, delta=0.0, tight_epsilon=None)
    if delta == 0.0:  # pure releases: only the sum holds at delta = 0
        return Spending(epsilon=epsilon, delta=0.0, tight_epsilon=epsilon)
    tight = compose([entry_profile(entry, ledger) for entry in entries]).epsilon(delta)
    return Spending(epsilon=epsilon, delta=delta, tight_epsilon=min(tight, epsilon))


def entry_profile(entry: Entry, ledger: Ledger) -> PrivacyProfile:
    """Profile of what an entry paid for: exact where its parameters are known, else the point that was paid."""
    neighbouring: Neighbouring = "add-remove" if ledger.meta["neighbouring"] == "add-remove" else "replace-one"
    paid = Guarantee(
        epsilon=float(entry.epsilon), delta=float(entry.delta), neighbouring=neighbouring, contributions=ledger.contributions
    )
    if entry.parameters is None:
        return PointProfile(epsilon0=paid.epsilon, delta0=paid.delta, neighbouring=neighbouring)
    return rebuild(entry.description, json.loads(entry.parameters)).unit_profile(paid)
