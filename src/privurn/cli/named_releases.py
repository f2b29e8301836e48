"""Releases named on the command line, as the profiles that their certificates prove."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli.parsing import check_release
from privurn.errors import CertificateError, FormatError

if TYPE_CHECKING:
    from privurn.privacy.certificate import Certificate
    from privurn.privacy.profile import Guarantee, PrivacyProfile

Releases = Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders of releases, or their certificate.json.")]


@dataclass(frozen=True, kw_only=True)
class CertifiedRelease:
    """A release whose certificate checks: its promise, and the profile for its privacy unit."""

    name: str
    certificate: "Certificate"
    promise: "Guarantee"
    profile: "PrivacyProfile"

    def to_json(self) -> dict[str, Any]:
        """What identifies it and what it promises."""
        unit = self.certificate["privacy_unit"]
        return {
            "release": self.name,
            "sha256": self.certificate["sha256"],
            "mechanism": self.certificate["mechanism"]["name"],
            "neighbouring": self.profile.neighbouring,
            "unit": unit["unit"],
            "contributions": unit["contributions"],
            "target": dict(self.certificate["target"]),
        }


def certified_releases(paths: Sequence[Path]) -> list[CertifiedRelease]:
    """Read, check and rebuild each release named; the data files are not needed."""
    for path in paths:
        check_release(path)
    found = [_certified_release(path) for path in paths]
    if len({each.certificate["sha256"] for each in found}) < len(found):
        raise FormatError("the same certificate was named twice.", hint="A release that is published twice costs once")
    return found


def _certified_release(path: Path) -> CertifiedRelease:
    from privurn.certificates.verify import check_certificate
    from privurn.mechanisms.registry import rebuild
    from privurn.privacy.certificate import Certificate
    from privurn.privacy.profile import Guarantee

    certificate = Certificate.read(path)
    reasons = check_certificate(certificate)
    if reasons:
        raise CertificateError(f"{str(path)!r} does not verify: {reasons[0]}.", hint=f"All reasons: privurn verify {path}")
    promise = Guarantee(
        epsilon=certificate["target"]["epsilon"],
        delta=certificate["target"]["delta"],
        neighbouring=certificate["neighbouring"],
        contributions=certificate["privacy_unit"]["contributions"],
    )
    mechanism = rebuild(certificate["mechanism"]["name"], certificate["mechanism"]["parameters"])
    return CertifiedRelease(
        name=str(path.parent if path.name == "certificate.json" else path),
        certificate=certificate,
        promise=promise,
        profile=mechanism.unit_profile(promise),
    )
