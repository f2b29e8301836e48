"""A statistics file: noisy statistics and their certificate in one JSON file that an analyst can be handed.

The certificate holds the hash of the statistics, and its own; a file that was edited is refused. As with every certificate,
that detects edits and is no proof against forgery.
"""

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from privurn.certifying import PACKAGES, assumptions, is_private_source, privacy_unit, source_of_randomness
from privurn.errors import CertificateError, FormatError, ModelError, PrivurnError
from privurn.noisy_statistics.calibrating import Budget
from privurn.noisy_statistics.registry import statistic_from_parameters
from privurn.noisy_statistics.statistic import NoisyStatistics, StatisticMechanism, opened
from privurn.privacy.certificate import SCHEMA as CERTIFICATE_SCHEMA
from privurn.privacy.certificate import Certificate, achieved, canonical, profile_points
from privurn.privacy.entropy import Entropy, SystemEntropy
from privurn.privacy.ledger import Ledger, Spent
from privurn.privacy.payer import LedgerChoice, Payer
from privurn.privacy.profile import Guarantee
from privurn.verification import RELATIVE_AGREEMENT, Verification

SCHEMA = "privurn-statistics/1"


@dataclass(frozen=True, kw_only=True)
class ReleasedStatistics:
    """Noisy statistics with their certificate; public."""

    statistics: NoisyStatistics
    certificate: Certificate = field(repr=False)
    ledger: Ledger | None = field(default=None, repr=False)
    remarks: tuple[str, ...] = ()
    """For the custodian; not in the file."""

    def to_json(self) -> dict[str, Any]:
        """What the file holds."""
        return {"schema": SCHEMA, "statistics": plain(self.statistics), "certificate": dict(self.certificate.data)}

    def save(self, path: str | Path) -> "ReleasedStatistics":
        """Write the file, all of it or nothing; it must not exist."""
        target = check_new_file(path)
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        handle, partial = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.absolute().parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            mask = os.umask(0)
            os.umask(mask)
            Path(partial).chmod(0o666 & ~mask)
            target.hardlink_to(partial)  # fails if the file has appeared meanwhile
        finally:  # Ctrl-C too
            Path(partial).unlink(missing_ok=True)
        if self.ledger is not None:
            self.ledger.complete(self.certificate["ledger"]["entry"], output=self.certificate["output"]["sha256"])
        return self


def release_statistics(
    data: Any,
    *,
    mechanism: StatisticMechanism,
    budget: Budget,
    ledger: LedgerChoice = None,
    entropy: Entropy | None = None,
) -> ReleasedStatistics:
    """Read the data, pay, add noise, certify.

    `ledger`: one that pays, or its path; left out: FILE.ledger beside the data, where that stands; False: none.

    Examples
    --------
    >>> from privurn.noisy_statistics.regression_statistic import RegressionStatistic
    >>> budget = Budget(epsilon=1, epsilon_n=0.1)
    >>> made = RegressionStatistic.calibrated(response="column_1", covariates=["column_0"], bounds=(-5, 5), budget=budget)
    >>> data = np.random.default_rng(1).normal(size=(1000, 2))
    >>> out = release_statistics(data, mechanism=made, budget=budget)
    >>> out.certificate["target"], out.statistics.n
    ({'epsilon': 1.1, 'delta': 0.0}, None)
    """
    promise = budget.guarantee
    if (mechanism.neighbouring, mechanism.contributions) != (promise.neighbouring, promise.contributions):
        raise ModelError("the mechanism and the budget are for different neighbours.")
    if mechanism.profile.delta(promise.epsilon) > promise.delta:
        raise ModelError("the mechanism does not meet the budget.", hint="Use the mechanism's `calibrated`")
    source_of_noise = entropy or SystemEntropy()
    with opened(data) as source:
        payer = Payer.find(ledger, source)
        sums, n = mechanism.sum_units(source)
    payment = payer.pay(Spent(guarantee=promise, rho=mechanism.zcdp, description=mechanism.name), n=n)
    statistics = mechanism.add_noise(sums, n, entropy=source_of_noise)
    certificate = _certify(statistics, promise=promise, entropy=source_of_noise, payment=payment.stamp)
    return ReleasedStatistics(statistics=statistics, certificate=certificate, ledger=payer.ledger, remarks=payment.remarks)


def plain(statistics: NoisyStatistics) -> dict[str, Any]:
    """The released numbers as plain data."""
    return {
        "model": statistics.model,
        "entries": list(statistics.mechanism.names),
        "values": [float(each) for each in statistics.values],
        "n": statistics.n,
        "noisy_n": statistics.noisy_n,
    }


def _certify(statistics: NoisyStatistics, *, promise: Guarantee, entropy: Entropy, payment: dict[str, Any]) -> Certificate:
    mechanism = statistics.mechanism
    target = {"epsilon": promise.epsilon, "delta": promise.delta}
    return Certificate.seal(
        {
            "schema": CERTIFICATE_SCHEMA,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "mechanism": {"name": mechanism.name, "parameters": mechanism.parameters()},
            "domain": {"kind": "statistics", **mechanism.own_parameters()},
            "columns": list(mechanism.columns),
            "neighbouring": mechanism.neighbouring,
            "privacy_unit": privacy_unit(promise),
            "n": statistics.n,
            "records": 0,
            "target": target,
            "achieved": achieved(mechanism.profile, target=target),
            "profile": profile_points(mechanism.profile, also=promise.epsilon),
            "assumptions": assumptions(promise),
            "randomness": source_of_randomness(entropy, noise=True),
            "private": entropy.private,
            "software": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
            "output": {"rows": len(statistics.values), "sha256": _hash(plain(statistics))},
            "ledger": payment,
        }
    )


def _hash(statistics: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(statistics)).hexdigest()


def check_new_file(path: str | Path) -> Path:
    """A file that can be written and does not exist yet, checked before anything is paid."""
    target = Path(path)
    if target.exists():
        raise FormatError(f"the file {str(target)!r} exists.", hint="Name a new file, or remove the old one first")
    if not target.absolute().parent.is_dir():
        raise FormatError(f"there is no folder {str(target.absolute().parent)!r} to write into.", hint="Create it first")
    if not os.access(target.absolute().parent, os.W_OK):
        raise FormatError(f"cannot write into {str(target.absolute().parent)!r}.", hint="Name a folder you may write to")
    return target


def is_statistics_file(path: str | Path) -> bool:
    """Whether this is a file, and says that it holds statistics."""
    try:
        return Path(path).is_file() and f'"{SCHEMA}"' in Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def read_statistics(path: str | Path) -> ReleasedStatistics:
    """Statistics and certificate of a file; one that was edited is refused."""
    released, reasons = _parsed(Path(path))
    if reasons:
        raise CertificateError(f"the statistics {str(path)!r} cannot be used: {reasons[0]}.", hint="Ask for the file again")
    return released


def verify_statistics(path: str | Path) -> Verification:
    """Recompute the guarantee from the parameters in a statistics file, and compare the hashes."""
    try:
        released, reasons = _parsed(Path(path))
        reasons = [*reasons, *_check_guarantee(released)]
    except (PrivurnError, KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        detail = error.message.removesuffix(".") if isinstance(error, PrivurnError) else type(error).__name__
        return Verification(False, (f"the guarantee cannot be recomputed: {detail}",))
    return Verification(not reasons, tuple(reasons))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError
    return dict(pairs)


def _parsed(path: Path) -> tuple[ReleasedStatistics, list[str]]:
    """What the file holds, and how its hashes contradict it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once)
    except (OSError, UnicodeDecodeError):
        raise FormatError(
            f"there are no readable statistics at {str(path)!r}.", hint="privurn statistics ... -o FILE"
        ) from None
    except (ValueError, RecursionError):
        raise FormatError(f"{str(path)!r} is not JSON, or names a field twice.") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or data.keys() != {"schema", "statistics", "certificate"}:
        raise FormatError(f"{str(path)!r} is not a statistics file.", hint="Name a file that privurn statistics has written")
    try:
        certificate = Certificate.from_json(json.dumps(data["certificate"]))
        stated, numbers = certificate["mechanism"], data["statistics"]
        mechanism = statistic_from_parameters(stated["name"], stated["parameters"])
        statistics = NoisyStatistics(
            mechanism=mechanism,
            values=np.array([float(each) for each in numbers["values"]]),
            n=None if numbers["n"] is None else int(numbers["n"]),
            noisy_n=None if numbers["noisy_n"] is None else float(numbers["noisy_n"]),
        )
        output = certificate["output"]["sha256"]
    except PrivurnError as error:
        raise CertificateError(f"the statistics {str(path)!r} do not fit their mechanism: {error.message}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise CertificateError(f"the statistics {str(path)!r} are malformed.", hint="Ask for the file again") from None
    reasons = [] if certificate.intact else ["the certificate's own hash does not fit its content: it was edited"]
    try:
        same = _hash(numbers) == output and numbers == plain(statistics)
    except ValueError:
        same = False
    if not same:
        reasons.append("the statistics were edited: their hash does not fit")
    return ReleasedStatistics(statistics=statistics, certificate=certificate), reasons


def _check_guarantee(released: ReleasedStatistics) -> list[str]:
    certificate, statistics = released.certificate, released.statistics
    mechanism = statistics.mechanism
    target = Guarantee(
        epsilon=certificate["target"]["epsilon"],
        delta=certificate["target"]["delta"],
        contributions=certificate["privacy_unit"]["contributions"],
        neighbouring=certificate["neighbouring"],
    )
    profile = mechanism.profile
    figures = {"epsilon": target.epsilon, "delta": target.delta}
    points = profile_points(profile, also=target.epsilon)
    stated = {
        "the release was made with seeded randomness: not private": certificate["private"] is True,
        "the source of randomness is not the private one": is_private_source(certificate["randomness"], noise=True),
        "the neighbouring relation is not the mechanism's": target.neighbouring == mechanism.neighbouring,
        "the privacy unit is not the mechanism's": target.contributions == mechanism.contributions,
        "the privacy unit or the assumptions are not those of the guarantee": (
            certificate["privacy_unit"] == privacy_unit(target) and certificate["assumptions"] == assumptions(target)
        ),
        "n does not fit the statistics": certificate["n"] == statistics.n,
        "the columns or bounds are not the mechanism's": (
            certificate["columns"] == list(mechanism.columns)
            and certificate["domain"] == {"kind": "statistics", **mechanism.own_parameters()}
        ),
        "the certificate does not say whether a ledger paid": isinstance(certificate["ledger"].get("used"), bool),
        "the recomputed delta at the target epsilon exceeds the target": profile.delta(target.epsilon) <= target.delta,
        "the achieved guarantee is not what the parameters give": _agree(
            certificate["achieved"], achieved(profile, target=figures)
        ),
        "the profile is not what the parameters give": len(points) == len(certificate["profile"])
        and all(_agree(one, other) for one, other in zip(certificate["profile"], points, strict=True)),
    }
    return [reason for reason, holds in stated.items() if not holds]


def _agree(stated: Mapping[str, float | None], computed: Mapping[str, float | None]) -> bool:
    if stated.keys() != computed.keys():
        return False
    pairs = [(stated[key], value) for key, value in computed.items()]
    return all(
        one is other if one is None or other is None else abs(one - other) <= RELATIVE_AGREEMENT * abs(other) + 1e-290
        for one, other in pairs
    )
