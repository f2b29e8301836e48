"""Re-check a release from what was published alone: recompute every figure, compare every stated field and the hashes.

This detects edits and mistakes. It is no proof against forgery: a liar can write a consistent certificate for data that
were made another way. What is checked how, field by field: docs/reference/certificate.md.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privurn.certificates.certify import (
    Certifiable,
    assumptions,
    certified_profile,
    privacy_unit,
    rebuild,
    stated_randomness,
    zcdp,
)
from privurn.certificates.published import check_published
from privurn.domain import JointDomain, domain_from_json
from privurn.errors import CertificateError, PrivurnError
from privurn.mechanisms.label_discovery import OTHER, DiscoveredUrn
from privurn.mechanisms.local.local_release import LocalRelease
from privurn.mechanisms.local.randomised_responses import RESPONSES, RandomisedResponsesChannel
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.pitman_yor import FreshLabels, PitmanYor
from privurn.mechanisms.pseudo_posterior import PseudoPosterior
from privurn.mechanisms.sums.statistic import NoisyStatistics, StatisticMechanism
from privurn.privacy.certificate import (
    STATISTICS_SCHEMA,
    Certificate,
    achieved,
    canonical,
    check_version,
    file_hash,
    is_statistics,
    profile_points,
    read_json,
)
from privurn.privacy.profile import Guarantee
from privurn.tables.column_names import unused

RELATIVE_AGREEMENT = 1e-9
"""Two machines may round a sum differently; more than this is an edit."""

SEEDED = "the release was made with seeded randomness: not private"


@dataclass(frozen=True)
class Verification:
    """Whether a release checks, and every reason why not."""

    valid: bool
    reasons: tuple[str, ...]


def verify(path: str | Path) -> Verification:
    """Verify a release folder, a certificate file next to its data, or a file of noisy statistics."""
    path = Path(path)
    try:
        data = read_json(path)
        if is_statistics(data):
            certificate, statistics = statistics_of(data)
            reasons = [*check_certificate(certificate), *_check_statistics(certificate, statistics, data["statistics"])]
        else:
            certificate = Certificate.typed(data)
            reasons = _check_data(certificate, path if path.is_dir() else path.parent)
            reasons = [*check_certificate(certificate), *reasons]
    except CertificateError as error:
        reasons = [error.message.removesuffix(".")]
    return Verification(not reasons, tuple(reasons))


def check_certificate(certificate: Certificate) -> list[str]:
    """Everything that can be checked without the data file: the layout first, then what it says."""
    try:
        certificate = Certificate.from_json(certificate.to_json())
    except CertificateError as error:
        return [error.message.removesuffix(".")]
    except (TypeError, ValueError, RecursionError):
        return ["the certificate is no plain data"]
    reasons = [] if certificate.intact else ["the certificate's own hash does not fit its content: it was edited"]
    if certificate["private"] is not True:
        reasons.append(SEEDED)
    try:
        stated = certificate["mechanism"]
        mechanism = rebuild(stated["name"], stated["parameters"])
        target = Guarantee(
            epsilon=certificate["target"]["epsilon"],
            delta=certificate["target"]["delta"],
            contributions=certificate["privacy_unit"]["contributions"],
            neighbouring=certificate["neighbouring"],
        )
        words = [*_check_words(certificate, mechanism, target), *_check_sizes(certificate, mechanism)]
        reasons += words or _check_figures(certificate, mechanism, target)  # huge sizes end at the first
    except Exception as error:  # whatever impossible parameters end in, an answer is given
        detail = error.message.removesuffix(".") if isinstance(error, PrivurnError) else type(error).__name__
        reasons.append(f"the guarantee cannot be recomputed: {detail}")
    return reasons


def _check_words(certificate: Certificate, mechanism: Certifiable, target: Guarantee) -> list[str]:
    """What people read must say what the numbers say."""
    rests_on = assumptions(target, local=isinstance(mechanism, LocalRelease))
    randomness = stated_randomness(private=certificate["private"], noise=mechanism.adds_noise)
    holds = {
        "the privacy unit or the assumptions are not those of the guarantee": (
            certificate["privacy_unit"] == privacy_unit(target) and certificate["assumptions"] == rests_on
        ),
        "the source of randomness is not the private one": certificate["randomness"] == randomness,
    }
    return [reason for reason, true in holds.items() if not true]


def _check_sizes(certificate: Certificate, mechanism: Certifiable) -> list[str]:
    """Numbers of records and cells, the domain and the columns: one statement made in several places."""
    output = certificate["output"]
    rows = None if output is None else output["rows"]
    statistics = isinstance(mechanism, StatisticMechanism)
    if isinstance(mechanism, StatisticMechanism):
        neighbouring = mechanism.neighbouring
    else:
        neighbouring = "add-remove" if mechanism.n is None else "replace-one"
    holds = {
        "the neighbouring relation is not the mechanism's": certificate["neighbouring"] == neighbouring,
        "n or records do not fit the mechanism's parameters": (
            (certificate["n"] is None) == (neighbouring == "add-remove")
            and certificate["records"] == mechanism.records
            and (statistics or certificate["n"] == mechanism.n)
            and (output is None or ("file" in output) != statistics)
        ),
        "the number of published rows does not fit the mechanism's parameters": (
            rows is None or (rows == mechanism.rows if mechanism.rows is not None else rows <= mechanism.records)
        ),
        "the domain does not fit the mechanism's parameters": _domain_fits(certificate["domain"], mechanism),
        "the columns do not fit the domain": certificate["columns"] == _columns(certificate["domain"], mechanism),
    }
    return [reason for reason, true in holds.items() if not true]


def _domain_fits(stated: Mapping[str, Any], mechanism: Certifiable) -> bool:
    """Whether the domain is one that the mechanism is for, stated as privurn states it."""
    if isinstance(mechanism, StatisticMechanism):
        return canonical(stated) == canonical({"kind": "statistics", **mechanism.own_parameters()})
    if isinstance(mechanism, LocalRelease) and not isinstance(mechanism.channel, RESPONSES):
        bounds = dict(zip(("lower", "upper"), mechanism.channel.bounds, strict=True))
        named = {"kind": "bounds", "column": stated.get("column"), **bounds, "nulls": stated.get("nulls")}
        return canonical(stated) == canonical(named)
    if isinstance(mechanism, DiscoveredUrn):
        labels = stated.get("labels")
        if stated["kind"] != "open-labels" or labels is None or len(set(labels)) < len(labels):
            return False
        return stated.get("other") == unused(OTHER, labels) and mechanism.cells == len(labels) + 1
    if isinstance(mechanism, PitmanYor) and isinstance(mechanism.base, FreshLabels):
        return stated.keys() == {"kind", "column"} and stated["kind"] == "open-labels" and mechanism.base == FreshLabels()
    return stated["kind"] == "joint" and _joint_fits(stated, mechanism)


def _joint_fits(stated: Mapping[str, Any], mechanism: Certifiable) -> bool:
    domain = domain_from_json(stated)
    if not isinstance(domain, JointDomain) or canonical(domain.to_json()) != canonical(stated):
        return False
    columns = list(domain.columns.values())
    if isinstance(mechanism, LocalRelease):
        sizes = getattr(mechanism.channel, "sizes", (mechanism.cells,))
        return not domain.spread and sizes == tuple(each.size for each in columns)
    if not isinstance(mechanism, Mechanism) or domain.size != mechanism.cells:
        return False
    if mechanism.beside and domain.spread:
        return False
    return not isinstance(mechanism, PseudoPosterior) or (len(columns) == 1 and columns[0] == mechanism.domain)


def _columns(stated: Mapping[str, Any], mechanism: Certifiable) -> list[str] | None:
    """Names of the published columns; None where the domain names none."""
    if isinstance(mechanism, StatisticMechanism):
        return list(mechanism.columns)
    names = list(stated["columns"]) if stated["kind"] == "joint" else [str(stated.get("column"))]
    if isinstance(mechanism, LocalRelease):  # a channel may publish several numbers of one confidential column
        several = isinstance(mechanism.channel, RandomisedResponsesChannel)
        return names if several else mechanism.channel.columns(names[0]) if len(names) == 1 else None
    for name in mechanism.beside if isinstance(mechanism, Mechanism) else ():
        names.append(unused(name, names))
    return names


def _check_figures(certificate: Certificate, mechanism: Certifiable, target: Guarantee) -> list[str]:
    """The guarantee, recomputed from the parameters."""
    profile = certified_profile(mechanism, target)
    figures = {"epsilon": target.epsilon, "delta": target.delta}
    points = profile_points(profile, also=target.epsilon)
    stated = certificate["profile"]
    holds = {
        "the recomputed delta at the target epsilon exceeds the target": profile.delta(target.epsilon) <= target.delta,
        "the achieved guarantee is not what the parameters give": _agree(
            certificate["achieved"], achieved(profile, target=figures)
        ),
        "rho is not what the parameters give": _agree({"rho": certificate["rho"]}, {"rho": zcdp(mechanism, target)}),
        "the profile is not what the parameters give": len(stated) == len(points)
        and all(one["epsilon"] == other["epsilon"] and _agree(one, other) for one, other in zip(stated, points, strict=True)),
    }
    return [reason for reason, true in holds.items() if not true]


def _agree(stated: Mapping[str, float | None], computed: Mapping[str, float | None]) -> bool:
    pairs = [(stated[key], value) for key, value in computed.items()]
    return all(  # isclose takes 0 for nothing but 0: no delta, and a tiny one, are different claims
        one is other if one is None or other is None else math.isclose(one, other, rel_tol=RELATIVE_AGREEMENT)
        for one, other in pairs
    )


def _check_data(certificate: Certificate, folder: Path) -> list[str]:
    """The data file: its hash, then what it holds."""
    output = certificate["output"]
    if output is None or "file" not in output:
        return ["the certificate names no data file: the release was never saved"]
    name, file = output["file"], folder / output["file"]
    try:
        same = file_hash(file) == output["sha256"]
    except FileNotFoundError:
        return [f"the data file {name!r} is missing"]
    except OSError:
        return [f"the data file {name!r} cannot be read, or is no regular file"]
    if not same:
        return [f"the data file {name!r} was changed: its hash does not fit"]
    stated = certificate["mechanism"]
    try:
        mechanism = rebuild(stated["name"], stated["parameters"])
        fits = _domain_fits(certificate["domain"], mechanism)
    except Exception:
        fits = False
    if not fits:
        return []  # for `check_certificate` to say
    try:
        return [f"the data file {name!r} {each}" for each in check_published(file, certificate, mechanism)]
    except Exception as error:  # whatever impossible parameters end in, an answer is given
        detail = error.message.removesuffix(".") if isinstance(error, PrivurnError) else type(error).__name__
        return [f"the data file {name!r} cannot be checked: {detail}"]


def statistics_of(data: Any) -> tuple[Certificate, NoisyStatistics]:
    """Certificate and published numbers of a statistics file's content, typed; whether they are true is not asked here."""
    from privurn.privacy.certificate_schema import StatisticsFields, problems

    check_version(data.get("schema"), STATISTICS_SCHEMA)
    if data.keys() != {"schema", "statistics", "certificate"}:
        raise CertificateError("a statistics file holds a schema, statistics and a certificate.")
    certificate, numbers = Certificate.typed(data["certificate"]), data["statistics"]
    found = problems(StatisticsFields, numbers)
    if found:
        raise CertificateError(f"the statistics are malformed: {'; '.join(found)}.")
    stated = certificate["mechanism"]
    mechanism = rebuild(stated["name"], stated["parameters"])
    if not isinstance(mechanism, StatisticMechanism):
        raise CertificateError("the certificate is not of statistics.")
    try:
        statistics = NoisyStatistics(
            mechanism=mechanism, values=np.array(numbers["values"], np.float64), n=numbers["n"], noisy_n=numbers["noisy_n"]
        )
    except PrivurnError as error:
        raise CertificateError(f"the statistics do not fit their mechanism: {error.message}") from None
    if numbers != statistics.plain():
        raise CertificateError("the statistics are not named as their mechanism names them.")
    return certificate, statistics


def _check_statistics(certificate: Certificate, statistics: NoisyStatistics, stated: Mapping[str, Any]) -> list[str]:
    output = certificate["output"]
    holds = {
        "the statistics were edited: their hash does not fit": output is not None
        and output["sha256"] == statistics_hash(stated),
        "n does not fit the statistics": certificate["n"] == statistics.n,
        "the statistics do not lie on the lattice of their noise": statistics.possible,
    }
    return [reason for reason, true in holds.items() if not true]


def statistics_hash(statistics: Mapping[str, Any]) -> str:
    """SHA-256 of the published numbers, as plain data in canonical JSON."""
    return hashlib.sha256(canonical(statistics)).hexdigest()
