"""Re-check a release from its certificate alone: recompute the guarantee from the parameters, compare the hashes.

This detects edits and mistakes. It is no proof against forgery: a liar can write a consistent certificate for data that
were made another way.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privurn.certifying import Certifiable, adds_noise, assumptions, is_private_source, privacy_unit, rebuild
from privurn.channels.local_release import LocalRelease
from privurn.channels.randomised_responses import RESPONSES, RandomisedResponsesChannel
from privurn.choosing import unit_profile
from privurn.domain import JointDomain, domain_from_json
from privurn.errors import CertificateError, PrivurnError
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.mechanisms.exponential import ExponentialHistogram
from privurn.mechanisms.label_discovery import DiscoveredUrn
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.pitman_yor import FiniteBase, PitmanYor
from privurn.mechanisms.posterior_sample import PosteriorSample
from privurn.mechanisms.pseudo_posterior import PseudoPosterior
from privurn.mechanisms.smoothed_histogram import SmoothedHistogram
from privurn.privacy.certificate import Certificate, achieved, file_hash, profile_points
from privurn.privacy.profile import Guarantee
from privurn.tables import row_count

WITH_CELLS = (
    DirichletMultinomial,
    PerturbedHistogram,
    SmoothedHistogram,
    PosteriorSample,
    ExponentialHistogram,
    PseudoPosterior,
)

RELATIVE_AGREEMENT = 1e-9
"""Two machines may round a sum differently; more than this is an edit."""


@dataclass(frozen=True)
class Verification:
    """Whether a release checks, and every reason why not."""

    valid: bool
    reasons: tuple[str, ...]


def verify(folder: str | Path) -> Verification:
    """Verify a release folder (or a certificate file next to its data)."""
    path = Path(folder)
    try:
        certificate = Certificate.read(path)
    except CertificateError as error:
        return Verification(False, (error.message.removesuffix("."),))
    reasons = [*check_certificate(certificate), *_check_output(certificate, path if path.is_dir() else path.parent)]
    return Verification(not reasons, tuple(reasons))


def check_certificate(certificate: Certificate) -> list[str]:
    """Everything that can be checked without the data file."""
    reasons = [] if certificate.intact else ["the certificate's own hash does not fit its content: it was edited"]
    if certificate["private"] is not True:
        reasons.append("the release was made with seeded randomness: not private")
    try:
        reasons += _check_guarantee(certificate)
    except (PrivurnError, KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        detail = error.message.removesuffix(".") if isinstance(error, PrivurnError) else type(error).__name__
        reasons.append(f"the guarantee cannot be recomputed: {detail}")
    return reasons


def _check_guarantee(certificate: Certificate) -> list[str]:
    reasons = []
    stated = certificate["mechanism"]
    mechanism = rebuild(stated["name"], stated["parameters"])
    target = Guarantee(
        epsilon=certificate["target"]["epsilon"],
        delta=certificate["target"]["delta"],
        contributions=certificate["privacy_unit"]["contributions"],
        neighbouring=certificate["neighbouring"],
    )
    profile = unit_profile(mechanism.profile, target)
    reasons += _check_words(certificate, target, mechanism)
    if certificate["neighbouring"] != profile.neighbouring:
        reasons.append("the neighbouring relation is not the mechanism's")
    if (certificate["n"], certificate["records"]) != (mechanism.n, mechanism.records):
        reasons.append("n or records do not fit the mechanism's parameters")
    if _cells(mechanism) != _domain_size(certificate["domain"]):
        reasons.append("the mechanism's cells do not fit the domain")
    if not _bounds_fit(mechanism, certificate["domain"]):
        reasons.append("the bounds are not the channel's")
    if isinstance(mechanism, LocalRelease) and not _agree(certificate["rho"], mechanism.rho(target.contributions)):
        reasons.append("rho is not what the parameters give")
    output = certificate["output"]
    if mechanism.rows is not None and isinstance(output, dict) and output.get("rows") != mechanism.rows:
        reasons.append("the number of published rows does not fit the mechanism's parameters")
    delta = profile.delta(target.epsilon)
    if delta > target.delta:
        reasons.append("the recomputed delta at the target epsilon exceeds the target")
    recomputed = achieved(profile, target={"epsilon": target.epsilon, "delta": target.delta})
    if not all(_agree(certificate["achieved"][key], value) for key, value in recomputed.items()):
        reasons.append("the achieved guarantee is not what the parameters give")
    points = profile_points(profile, also=target.epsilon)
    stated_points = [(point["epsilon"], point["delta"]) for point in certificate["profile"]]
    if [epsilon for epsilon, _ in stated_points] != [point["epsilon"] for point in points] or not all(
        _agree(delta, point["delta"]) for (_, delta), point in zip(stated_points, points, strict=True)
    ):
        reasons.append("the profile is not what the parameters give")
    return reasons


def _check_words(certificate: Certificate, target: Guarantee, mechanism: Certifiable) -> list[str]:
    """What people read must say what the numbers say."""
    reasons = []
    rests_on = assumptions(target, local=isinstance(mechanism, LocalRelease))
    if certificate["privacy_unit"] != privacy_unit(target) or certificate["assumptions"] != rests_on:
        reasons.append("the privacy unit or the assumptions are not those of the guarantee")
    if certificate["private"] is True and not is_private_source(certificate["randomness"], noise=adds_noise(mechanism)):
        reasons.append("the source of randomness is not the private one")
    domain, columns = certificate["domain"], certificate["columns"]
    named = list(domain["columns"]) if domain["kind"] == "joint" else [domain["column"]]
    if isinstance(mechanism, LocalRelease) and isinstance(mechanism.channel, RandomisedResponsesChannel):
        sizes = [domain_from_json(each).size for each in domain.get("columns", {}).values()]  # type: ignore[union-attr]
        fits = columns == named and tuple(sizes) == mechanism.channel.sizes
    elif isinstance(mechanism, LocalRelease):  # a channel may publish several numbers of one confidential column
        fits = len(named) == 1 and columns == mechanism.channel.columns(str(named[0]))
    else:
        fits = columns[: len(named)] == named
    if not fits or domain.get("within", "uniform") != "uniform":
        reasons.append("the columns do not fit the domain")
    if not isinstance(certificate["ledger"], dict) or not isinstance(certificate["ledger"].get("used"), bool):
        reasons.append("the certificate does not say whether a ledger paid")
    if set(certificate["achieved"]) != {"epsilon", "delta"}:
        reasons.append("the achieved guarantee is not an epsilon and a delta")
    return reasons


def _agree(stated: float | None, computed: float | None) -> bool:
    if stated is None or computed is None:
        return stated is computed
    return math.isclose(stated, computed, rel_tol=RELATIVE_AGREEMENT, abs_tol=1e-290)


def _cells(mechanism: Certifiable) -> int | None:
    if isinstance(mechanism, LocalRelease):
        return mechanism.channel.categories if isinstance(mechanism.channel, RESPONSES) else None
    if isinstance(mechanism, WITH_CELLS):
        return mechanism.cells
    if isinstance(mechanism, DiscoveredUrn):
        return mechanism.urn.cells
    return mechanism.base.cells if isinstance(mechanism, PitmanYor) and isinstance(mechanism.base, FiniteBase) else None


def _bounds_fit(mechanism: Certifiable, stated: dict[str, Any]) -> bool:
    """A channel of numbers has bounds in place of a domain, and they are its own; nothing else has them."""
    channel = mechanism.channel if isinstance(mechanism, LocalRelease) else None
    if channel is None or isinstance(channel, RESPONSES):
        return bool(stated["kind"] != "bounds")
    same = stated["kind"] == "bounds" and (stated["lower"], stated["upper"]) == channel.bounds
    return same and stated["nulls"] in ("error", "lower")


def _domain_size(stated: dict[str, Any]) -> int | None:
    if stated["kind"] == "bounds":
        return None
    if stated["kind"] == "open-labels":
        return len(stated["labels"]) + 1 if "labels" in stated else None
    domain = domain_from_json(stated)
    return domain.size if isinstance(domain, JointDomain) else None


def _check_output(certificate: Certificate, folder: Path) -> list[str]:
    output = certificate["output"]
    if not isinstance(output, dict) or not {"file", "rows", "sha256"} <= output.keys():
        return ["the certificate names no data file: the release was never saved"]
    name = str(output["file"])
    if Path(name).name != name:
        return ["the data file's name leads out of the folder"]
    file = folder / name
    if not file.is_file():
        return [f"the data file {name!r} is missing"]
    if file_hash(file) != output["sha256"]:
        return [f"the data file {name!r} was changed: its hash does not fit"]
    return [] if row_count(file) == output["rows"] else [f"the data file {name!r} does not hold the rows that are stated"]
