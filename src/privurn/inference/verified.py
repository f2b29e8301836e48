"""A release that was checked before anything is concluded from it: its certificate, its mechanism, its data."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privurn.certificates.release import Release
from privurn.certificates.verify import SEEDED, check_certificate, verify
from privurn.errors import CertificateError, FormatError, NoRelease
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.registry import rebuild
from privurn.privacy.certificate import Certificate
from privurn.tables import Source, open_table
from privurn.tables.blocks import Blocks, InParts
from privurn.tables.parts import data_files
from privurn.tables.released import open_released


@dataclass(frozen=True, kw_only=True, eq=False)
class Verified:
    """A certificate that holds, the mechanism that it states, and the published table or its file."""

    certificate: Certificate
    mechanism: Mechanism
    data: Any

    def open(self) -> AbstractContextManager[Source]:
        """The published table."""
        if isinstance(self.data, Path):
            return open_released(self.data)
        return open_table(self.data.to_arrow() if isinstance(self.data, InParts) else self.data)

    def open_parts(self) -> Iterator[AbstractContextManager[Source]]:
        """Likewise part by part, so that one is in memory at a time; the only one where there are no parts."""
        if isinstance(self.data, Path):
            yield from map(open_released, data_files(self.data))
        elif isinstance(self.data, Blocks):
            yield from map(open_table, self.data.expanded())
        else:
            yield self.open()


def verified(source: Any) -> Verified:
    """What `release` made: the folder, its data file or its certificate file, or the result itself."""
    if isinstance(source, Verified):
        return source
    if isinstance(source, Release):
        certificate, data, reasons = source.certificate, source.table, check_certificate(source.certificate)
    elif isinstance(source, (str, Path)):
        place, certificate = _located(Path(source))
        data, reasons = (place if place.is_dir() else place.parent) / _output(certificate), list(verify(place).reasons)
    else:
        raise FormatError(
            f"an object of type {type(source).__name__} is no release.",
            hint="Give the folder of a release, or what privurn.release returned",
        )
    left = [reason for reason in reasons if reason != SEEDED]
    if left:
        raise CertificateError(
            "the release does not verify, so nothing is concluded from it: " + "; ".join(left) + ".",
            hint="Get the release again from its source; privurn verify DIR shows the same reasons",
        )
    return Verified(certificate=certificate, mechanism=rebuild(**certificate["mechanism"]), data=data)


def _located(path: Path) -> tuple[Path, Certificate]:
    """Where the certificate is, and what it says; a data file must be the one that the certificate beside it names."""
    if not os.path.isfile(path) or path.suffix == ".json":
        return path, Certificate.read(path)
    if not (path.parent / "certificate.json").exists():
        raise NoRelease(
            f"there is no certificate beside {path.name!r}, so how it was made is not known.",
            hint="Give the folder of the release",
        )
    certificate = Certificate.read(path.parent)
    if _output(certificate) != path.name:
        raise CertificateError(f"the certificate beside {path.name!r} belongs to another file.", hint="Give the whole folder")
    return path.parent, certificate


def _output(certificate: Certificate) -> str:
    output = certificate["output"]
    name = output.get("file") if isinstance(output, dict) else None
    if not isinstance(name, str):
        raise CertificateError("the certificate names no data file.")
    return name
