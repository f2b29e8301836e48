"""Profile of several posterior samples: independent urn releases of the same table, composed by their privacy losses.

Composition asks the profile of one release a thousand times. Where the release is much longer than the table that takes
seconds each time and gains next to nothing over the limit of unlimited records, a closed form; the limit, an upper bound,
then takes its place. Proof: docs/proofs/histograms.md; enumeration: tests/exact/test_histogram_mechanisms.py.
"""

from dataclasses import dataclass, replace

from privurn.privacy.composition import compose
from privurn.privacy.laws.add_remove import AddRemoveDirichletMultinomialProfile
from privurn.privacy.laws.urn import UNLIMITED, DirichletMultinomialProfile
from privurn.privacy.profile import PrivacyProfile

UrnProfile = DirichletMultinomialProfile | AddRemoveDirichletMultinomialProfile

MUCH_LONGER = 100
"""Released records for each confidential one from which on the limit is used: it asks for about 1% more prior."""


@dataclass(frozen=True, kw_only=True)
class LimitProfile(PrivacyProfile):
    """Upper bound of the urn's profile for m records: that of unlimited records, and 0 from the urn's own pure epsilon on."""

    urn: UrnProfile

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbouring", self.urn.neighbouring)

    @property
    def pure_epsilon(self) -> float:
        """That of m records."""
        return self.urn.pure_epsilon

    def delta(self, epsilon: float) -> float:
        """See the class."""
        return 0.0 if epsilon >= self.pure_epsilon else replace(self.urn, records=UNLIMITED).delta(epsilon)


def draws_profile(urn: UrnProfile, *, draws: int) -> PrivacyProfile:
    """Exactly the urn's for one draw; for several an upper bound of the joint release."""
    if draws == 1:
        return urn
    long = isinstance(urn, DirichletMultinomialProfile) and urn.records != UNLIMITED and urn.records >= MUCH_LONGER * urn.n
    return compose([LimitProfile(urn=urn) if long else urn], counts=[draws])
