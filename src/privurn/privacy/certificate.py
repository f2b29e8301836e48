"""The public certificate of a release: everything a third party needs to recompute the guarantee.

It is plain JSON with a schema version. Its own SHA-256 is that of its canonical JSON (sorted keys, no spaces) without the
hash itself, so any edit shows. That detects edits; it is no proof against forgery: whoever can write a certificate can
also write its hash. Publish the hash, or sign the file, where that matters.
"""

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from privurn.errors import CertificateError, NoRelease
from privurn.privacy.profile import PrivacyProfile

SCHEMA = "privurn-certificate/2"

NAME = "certificate.json"
LARGEST_FILE = 2**28
"""Bytes of a certificate: the longest lists of labels and cells fit."""

LONGEST_NUMBER = 20
"""Digits of a whole number; rationals are text."""

GRID = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)


def canonical(data: Mapping[str, Any]) -> bytes:
    """The bytes that are hashed."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def file_hash(path: Path) -> str:
    """SHA-256 of a regular file, read in pieces; OSError for anything else, links included."""
    with open_plain(path, follow=False) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def profile_points(profile: PrivacyProfile, *, also: float) -> list[dict[str, float]]:
    """The profile at a fixed grid of epsilons and at the target."""
    return [{"epsilon": epsilon, "delta": profile.delta(epsilon)} for epsilon in sorted({*GRID, also})]


def achieved(profile: PrivacyProfile, *, target: Mapping[str, float]) -> dict[str, float | None]:
    """What the mechanism gives at the target: delta at its epsilon, and the smallest epsilon at its delta."""
    delta, epsilon = profile.delta(target["epsilon"]), profile.epsilon(target["delta"])
    if delta <= target["delta"]:  # the solver's last digit is not allowed to contradict the line above
        epsilon = min(epsilon, target["epsilon"])
    return {"epsilon": finite_or_none(epsilon), "delta": delta}


def finite_or_none(value: float) -> float | None:
    """JSON has no infinity: null stands for it."""
    return None if math.isinf(value) else value


def parsed(text: str) -> Any:
    """JSON as certificates use it; whatever else the text holds is a CertificateError.

    An object names a field once (a reader would see the first, a parser take the last), numbers are finite, and whole numbers
    have no more digits than 64 bits have.
    """
    try:
        data = json.loads(text, object_pairs_hook=_once, parse_int=_short_int, parse_float=_finite, parse_constant=_no_constant)
        canonical(data)  # lone surrogates, and depths that the parser alone endures
    except (ValueError, RecursionError):
        raise CertificateError("this is not JSON, names a field twice, or holds a number that is no certificate's.") from None
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError
    return dict(pairs)


def _short_int(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ValueError
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def _no_constant(text: str) -> float:
    raise ValueError(text)


def read_json(path: str | Path) -> Any:
    """The content of a certificate, or of that in a folder."""
    path = Path(path)
    file = path / NAME if os.path.isdir(path) else path
    try:
        with open_plain(file) as handle:
            raw = handle.read(LARGEST_FILE + 1)
        if len(raw) > LARGEST_FILE:
            raise CertificateError(f"{str(file)!r} is too long for a certificate.")
        data = parsed(raw.decode("utf-8"))
    except (OSError, ValueError):
        raise no_release(path) from None
    except CertificateError:
        if file.name == NAME:
            raise
        raise no_release(path) from None
    if file.name != NAME and not (isinstance(data, dict) and str(data.get("schema")).startswith("privurn-")):
        raise no_release(path)
    return data


def no_release(path: Path) -> NoRelease:
    """Says that something is no release, and what to name in its place."""
    if os.path.isdir(path):
        message = f"{str(path)!r} is no release: there is no readable {NAME} in it."
    elif os.path.exists(path):
        message = f"{str(path)!r} is no release, and no certificate of one."
    else:
        message = f"there is no {str(path)!r}, so no release."
    beside = path.parent if os.path.isfile(path) and path.name != NAME and os.path.isfile(path.parent / NAME) else None
    named = "Name the folder that privurn release, privatise or statistics has made"
    return NoRelease(message, hint=named if beside is None else f"The folder of a release, not a file in it: {str(beside)!r}")


def open_plain(file: Path, *, follow: bool = True) -> BufferedReader:
    """A regular file, opened to be read; OSError for folders, pipes and devices, and for links unless they are followed."""
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("not a regular file")
    return os.fdopen(handle, "rb")


def _check_version(stated: Any) -> None:
    """The schema that this version reads; others get a reason of their own."""
    if stated == SCHEMA:
        return
    name, _, number = SCHEMA.partition("/")
    earlier = "Release again with this version"
    if isinstance(stated, str) and stated.startswith("privurn-statistics/"):
        raise CertificateError("noisy statistics are a folder now, and this is a file of an earlier version.", hint=earlier)
    if not isinstance(stated, str) or not re.fullmatch(rf"{name}/[0-9]{{1,9}}", stated):
        raise CertificateError(f"this is not of schema {SCHEMA!r}.", hint="Name a folder that privurn wrote")
    if int(stated.partition("/")[2]) < int(number):
        raise CertificateError(f"it was made by an earlier version ({stated}) whose checks were weaker.", hint=earlier)
    raise CertificateError(f"it was made by a later version ({stated}); this one reads {SCHEMA}.", hint="Update privurn")


@dataclass(frozen=True)
class Certificate:
    """An immutable certificate. Build one with `Certificate.seal`, read one with `Certificate.read`."""

    data: Mapping[str, Any]

    @classmethod
    def seal(cls, fields: Mapping[str, Any]) -> "Certificate":
        """Add the certificate's own hash."""
        body = {key: value for key, value in fields.items() if key != "sha256"}
        return cls({**body, "sha256": hashlib.sha256(canonical(body)).hexdigest()})

    def with_fields(self, **fields: Any) -> "Certificate":
        """The same certificate with some fields set anew, sealed again."""
        return Certificate.seal({**self.data, **fields})

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Parse, and check that it has the layout of a certificate."""
        return cls.typed(parsed(text))

    @classmethod
    def typed(cls, data: Any) -> "Certificate":
        """A certificate of plain data that has its layout, types and all; CertificateError for anything else."""
        from privurn.privacy.certificate_schema import CertificateFields, problems

        _check_version(data.get("schema") if isinstance(data, dict) else None)
        found = problems(CertificateFields, data)
        if found:
            raise CertificateError(f"the certificate is malformed: {'; '.join(found)}.")
        return cls(data)

    @classmethod
    def read(cls, path: str | Path) -> "Certificate":
        """Read certificate.json, or the folder that holds it."""
        return cls.typed(read_json(path))

    def to_json(self) -> str:
        """Text for people and machines."""
        return json.dumps(self.data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @property
    def intact(self) -> bool:
        """Whether the certificate's own hash fits its content."""
        body = {key: value for key, value in self.data.items() if key != "sha256"}
        try:
            return self.data.get("sha256") == hashlib.sha256(canonical(body)).hexdigest()
        except (TypeError, ValueError, RecursionError):
            return False

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def to_registry_yaml(self) -> str:
        """The fields of the OpenDP deployments registry that a certificate can fill; the rest is for people to add."""
        import yaml

        return yaml.safe_dump(registry_fields(self.data), sort_keys=False, allow_unicode=True, width=100)


def registry_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """Map a certificate to the OpenDP deployments registry's layout."""
    target, unit = data["target"], data["privacy_unit"]
    pure = target["delta"] == 0.0
    local = data["mechanism"]["name"].startswith("local-")
    statistics = data["domain"]["kind"] == "statistics"
    kind = "Locally privatised" if local else "Statistical" if statistics else "Synthetic"
    after = "Released cells are mapped to the public values of the domain and put into random order."
    return {
        "status": "Draft",
        "deployment": {
            "product": {
                "name": f"{kind} data set released with privurn",
                "data_product_type": f"{kind} data",
                "publication_date": str(data["created"])[:10],
                "description": f"{kind} release of the columns {', '.join(data['columns'])} ({data['mechanism']['name']})",
            },
            "dp_flavor": {
                "name": "Pure DP" if pure else "Approximate DP",
                "input_metric": "symmetric distance (add or remove records)"
                if data["neighbouring"] == "add-remove"
                else "change-one distance (replace one record, number of records public)",
                "bound_on_input_distance": unit["contributions"],
                "output_measure": "max divergence" if pure else "smoothed max divergence",
                "bound_on_output_distance": target,
                "data_domain": json.dumps(data["domain"], ensure_ascii=False),
                "unprotected_quantities": "none" if data["n"] is None else f"number of confidential records (n = {data['n']})",
            },
            "privacy_loss": {
                "privacy_unit": unit["unit"],
                "privacy_parameters": {"epsilon": target["epsilon"], "delta": target["delta"]},
                "privacy_parameters_description": f"Recomputed from the parameters: {json.dumps(data['achieved'])}",
            },
            "model": {
                "model_name": "Local" if local else "Central",
                "release_type": "One release",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "Noisy sums are published as they are." if statistics else after,
                "composition": "Basic composition in the custodian's ledger"
                if data["ledger"].get("used")
                else "No ledger was used for this release",
            },
            "implementation": {
                "mechanisms": f"{data['mechanism']['name']} with {json.dumps(data['mechanism']['parameters'])}",
                "justification": " ".join(data["assumptions"]),
            },
        },
    }
