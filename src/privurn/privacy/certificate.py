"""The public certificate of a release: everything a third party needs to recompute the guarantee.

It is plain JSON with a schema version. Its own SHA-256 is that of its canonical JSON (sorted keys, no spaces) without the
hash itself, so any edit shows. That detects edits; it is no proof against forgery: whoever can write a certificate can
also write its hash. Publish the hash, or sign the file, where that matters.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privurn.errors import CertificateError
from privurn.privacy.profile import PrivacyProfile

SCHEMA = "privurn-certificate/1"
REQUIRED = frozenset(
    [
        "schema",
        "created",
        "mechanism",
        "domain",
        "columns",
        "neighbouring",
        "privacy_unit",
        "n",
        "records",
        "target",
        "achieved",
        "profile",
        "assumptions",
        "randomness",
        "private",
        "software",
        "output",
        "ledger",
        "sha256",
    ]
)
GRID = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)


def canonical(data: Mapping[str, Any]) -> bytes:
    """The bytes that are hashed."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def file_hash(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with path.open("rb") as handle:
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


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys occur once: a reader sees the first, a parser would take the last."""
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError
    return dict(pairs)


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
        """Parse, and check that it has the shape of a certificate."""
        try:
            data = json.loads(text, object_pairs_hook=_once)
        except (ValueError, RecursionError):
            raise CertificateError("the certificate is not JSON, or names a field twice.") from None
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise CertificateError(f"this is not a certificate of schema {SCHEMA!r}.")
        missing = REQUIRED - data.keys()
        if missing:
            raise CertificateError(f"the certificate lacks {', '.join(sorted(missing))}.")
        return cls(data)

    @classmethod
    def read(cls, path: str | Path) -> "Certificate":
        """Read certificate.json, or the folder that holds it."""
        path = Path(path)
        file = path / "certificate.json" if path.is_dir() else path
        try:
            return cls.from_json(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            raise CertificateError(
                f"there is no readable certificate at {str(file)!r}.", hint="Name the release folder"
            ) from None

    def to_json(self) -> str:
        """Text for people and machines."""
        return json.dumps(self.data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @property
    def intact(self) -> bool:
        """Whether the certificate's own hash fits its content."""
        body = {key: value for key, value in self.data.items() if key != "sha256"}
        try:
            return self.data.get("sha256") == hashlib.sha256(canonical(body)).hexdigest()
        except ValueError:
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
    kind = "Locally privatised" if local else "Synthetic"
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
                if data["n"] is None
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
                "post_processing": "Released cells are mapped to the public values of the domain and put into random order.",
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
