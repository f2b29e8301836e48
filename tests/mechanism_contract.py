"""What every registered mechanism, channel and statistic must pass: one class to inherit, a few small adapters to write.

A subclass says how its mechanism is asked for through the public call, gives a tiny one, and lists the exact laws of the tiny
one's output on neighbouring data. Everything else is the same for all.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, ClassVar

import pytest

from privurn.audits.mechanisms import mechanism_target
from privurn.certificates.spending import entry_profile, spending
from privurn.certificates.verify import check_certificate, verify
from privurn.errors import BudgetExceeded, CertificateError, PrivurnError
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.registry import rebuild
from privurn.privacy.audit.findings import Claim
from privurn.privacy.certificate import Certificate, canonical
from privurn.privacy.ledger import Ledger
from privurn.privacy.profile import Guarantee

EPSILONS = (0.0, 0.1, 0.3, 0.7, 1.0, 1.5, 2.5)
Law = Mapping[Any, float]


def divergence(first: Law, second: Law, epsilon: float) -> float:
    """The smallest delta for an ordered pair of laws."""
    ratio = math.exp(epsilon)
    return math.fsum(max(0.0, float(p) - ratio * float(second.get(output, 0.0))) for output, p in first.items())


def replaced_records(n: int, values: Iterable[Any]) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Every two tables of n records that differ in one of them, in either order; records have no order."""
    values = list(values)
    for common in combinations_with_replacement(values, n - 1):
        for one in values:
            for other in values:
                if one != other:
                    yield (*common, one), (*common, other)


class MechanismContract:
    """Inherit, and fill in what follows. The name of the class must begin with Test."""

    name: ClassVar[str]
    """In the registry."""
    epsilon: ClassVar[float] = 1.0
    delta: ClassVar[float] = 1e-3
    """What `release` asks for."""
    closest: ClassVar[float] = 0.9
    """Share of the claim that the enumerated truth reaches somewhere: an enumeration that sees nothing would pass otherwise."""
    no_likelihood: ClassVar[str | None] = None
    """Words of the refusal to infer from a release; None: there is a likelihood."""

    def release(self, *, ledger: Any = None) -> Any:
        """A release of made-up data through the public call; it has `certificate` and `save`."""
        raise NotImplementedError

    def tiny(self) -> Mechanism:
        """A mechanism whose output can be listed."""
        raise NotImplementedError

    def laws(self, mechanism: Any) -> Iterator[tuple[Law, Law]]:
        """Exact laws of the tiny mechanism's output on neighbouring data."""
        raise NotImplementedError

    def likelihood(self, path: Path) -> Any:
        """What inference makes of a saved release, or its refusal."""
        raise NotImplementedError

    # -- what all share

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(epsilon=self.epsilon, delta=self.delta)

    @pytest.fixture(scope="class")
    @classmethod
    def saved(cls, tmp_path_factory):
        made = cls()
        path = tmp_path_factory.mktemp("release") / "out"
        made.release(ledger=False).save(path)
        return path

    def test_a_release_verifies_and_its_mechanism_comes_back(self, saved):
        certificate = Certificate.read(saved)
        stated = certificate["mechanism"]
        made = rebuild(**stated)
        assert stated["name"] == made.name == self.name
        assert canonical(made.parameters()) == canonical(stated["parameters"])
        assert verify(saved).reasons == ()
        target = Guarantee(**certificate["target"], neighbouring=certificate["neighbouring"])
        assert made.unit_profile(target).delta(target.epsilon) <= target.delta
        assert certificate["rho"] == made.zcdp(target)

    def test_a_smaller_promise_is_convicted(self, saved):
        smaller = Certificate.read(saved).with_fields(target={"epsilon": self.epsilon / 100, "delta": self.delta / 100})
        assert any("exceeds the target" in reason for reason in check_certificate(smaller))

    def test_parameters_are_all_needed_and_no_others_are_taken(self):
        made = self.tiny()
        plain = json.loads(canonical(made.parameters()))
        assert canonical(rebuild(made.name, plain).parameters()) == canonical(plain)
        for broken in ({"more": 1} | plain, *({k: v for k, v in plain.items() if k != key} for key in plain)):
            with pytest.raises(CertificateError):
                rebuild(made.name, broken)

    def test_the_ledger_is_debited_and_its_tight_figure_recomputed(self, tmp_path):
        ledger = Ledger.create(tmp_path / "a.ledger", epsilon=2 * self.epsilon, delta=max(2 * self.delta, 1e-9))
        out = self.release(ledger=ledger)
        [entry] = ledger.entries()
        assert (entry.description, float(entry.epsilon), float(entry.delta)) == (self.name, self.epsilon, self.delta)
        again = entry_profile(entry, ledger)
        if entry.parameters is not None:  # label discovery pays before its urn is known
            made = rebuild(self.name, json.loads(entry.parameters))
            assert canonical(made.parameters()) == canonical(out.certificate["mechanism"]["parameters"])
            assert [again.delta(e) for e in EPSILONS] == [made.unit_profile(self.guarantee).delta(e) for e in EPSILONS]
        assert again.delta(self.epsilon) <= self.delta
        tight = spending(ledger)
        assert (tight.epsilon, tight.delta) == (self.epsilon, self.delta)
        assert tight.tight_epsilon <= self.epsilon
        assert again.delta(tight.tight_epsilon) <= self.delta

    def test_a_ledger_without_the_budget_refuses(self, tmp_path):
        ledger = Ledger.create(tmp_path / "a.ledger", epsilon=self.epsilon / 2, delta=max(2 * self.delta, 1e-9))
        with pytest.raises(BudgetExceeded):
            self.release(ledger=ledger)
        assert ledger.entries() == []

    def test_the_claim_is_no_less_than_the_truth(self):
        made = self.tiny()
        profile, reached, pairs = made.profile, 0.0, list(self.laws(made))
        for epsilon in EPSILONS:
            claim = profile.delta(epsilon)
            truth = max(divergence(first, second, epsilon) for first, second in pairs)
            assert truth <= claim + 1e-12
            reached = max(reached, truth / claim if claim > 1e-12 else 0.0)
        assert reached >= self.closest

    def test_an_audit_can_run_it(self):
        made = self.tiny()
        target = mechanism_target(made, Claim(1.0, 0.0), contributions=1, seed=1)
        assert target.seconds > 0.0
        for pair in target.pairs[:3]:
            assert len(target.sampler(pair.first, size=3)) == len(target.sampler(pair.second, size=3)) == 3

    def test_it_says_what_it_is(self):
        made = self.tiny()
        assert made.in_words != Mechanism.in_words.fget(made)
        assert made.error_sources.noise
        assert made.rows_are

    def test_a_release_is_inferred_from_or_says_why_not(self, saved):
        if self.no_likelihood is None:
            assert self.likelihood(saved) is not None
        else:
            with pytest.raises(PrivurnError, match=self.no_likelihood):
                self.likelihood(saved)
