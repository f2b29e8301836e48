"""What a release says about itself: the fields of its certificate, all of them public."""

import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any

from privurn.counts import MOST_PUBLISHED
from privurn.errors import CertificateError, NotCertifiable
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.registry import rebuild
from privurn.privacy.certificate import SCHEMA, Certificate, achieved, canonical, parsed, profile_points
from privurn.privacy.entropy import Entropy, SeededEntropy, SystemEntropy
from privurn.privacy.profile import Guarantee

PACKAGES = ("privurn", "numpy", "numba", "scipy", "duckdb", "pyarrow", "opendp")


def check_certifiable(mechanism: Mechanism, domain: dict[str, Any]) -> None:
    """Before anything is paid: a certificate of this, with its domain, could be read and rebuilt."""
    if max(mechanism.records, mechanism.rows or 0) > MOST_PUBLISHED:
        raise NotCertifiable(f"at most {MOST_PUBLISHED:,} records can be certified.", hint="Ask for fewer records")
    try:
        rebuild(mechanism.name, parsed(canonical(mechanism.parameters()).decode()))
        parsed(canonical(domain).decode())
    except (CertificateError, TypeError, ValueError):
        raise NotCertifiable(
            "a certificate of these parameters could not be verified.",
            hint="Use a mechanism of privurn's own, and numbers with fewer digits",
        ) from None


def certify(
    mechanism: Mechanism,
    *,
    guarantee: Guarantee,
    domain: dict[str, Any],
    columns: list[str],
    entropy: Entropy,
    payment: dict[str, Any],
    n: int | None = None,
) -> Certificate:
    """Certificate of a release that is about to be handed over; `save` adds the data file's hash.

    `n` is given where it is public and no parameter of the mechanism.
    """
    profile = mechanism.unit_profile(guarantee)
    target = {"epsilon": float(guarantee.epsilon), "delta": float(guarantee.delta)}
    return Certificate.seal(
        {
            "schema": SCHEMA,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "mechanism": {"name": mechanism.name, "parameters": mechanism.parameters()},
            "domain": domain,
            "columns": columns,
            "neighbouring": guarantee.neighbouring,
            "privacy_unit": privacy_unit(guarantee),
            "n": mechanism.n if n is None else n,
            "records": mechanism.records,
            "target": target,
            "achieved": achieved(profile, target=target),
            "rho": mechanism.zcdp(guarantee),
            "profile": profile_points(profile, also=guarantee.epsilon),
            "assumptions": assumptions(mechanism, guarantee),
            "randomness": source_of_randomness(entropy, noise=mechanism.adds_noise),
            "private": entropy.private,
            "software": dict(_versions()),
            "output": None,
            "synthetic": None,
            "ledger": payment,
        }
    )


OPENDP_AND_SYSTEM = (
    "noise: OpenDP's generator, seeded by the operating system; all else: operating system (os.urandom); exact integers"
)


@cache
def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def source_of_randomness(entropy: Entropy, *, noise: bool) -> str:
    """What a certificate calls the source; a seeded release is marked as such, whoever drew its noise."""
    return OPENDP_AND_SYSTEM if noise and entropy.private else entropy.description


def stated_randomness(*, private: bool, noise: bool) -> str:
    """What a certificate must call the source of a private release, or of a seeded one."""
    if not private:
        return SeededEntropy.description
    return OPENDP_AND_SYSTEM if noise else SystemEntropy.description


NEIGHBOURS = {
    "replace-one": "Two tables are neighbours when one record is replaced by another; the number of records is public.",
    "add-remove": "Two tables are neighbours when one holds one record more than the other; the number of records is secret.",
}


def privacy_unit(guarantee: Guarantee) -> dict[str, Any]:
    """Whose records are protected together."""
    k = guarantee.contributions
    return {"unit": "one record" if k == 1 else f"up to {k} records of one person", "contributions": k}


def assumptions(mechanism: Mechanism, guarantee: Guarantee) -> list[str]:
    """What has to be true for the guarantee to hold, in plain words."""
    owns = "one record" if guarantee.contributions == 1 else f"at most {guarantee.contributions} records"
    return [
        *mechanism.assumes,
        NEIGHBOURS[guarantee.neighbouring],
        f"One person owns {owns}.",
        "The domain, the number of released records and all parameters were chosen without looking at the data.",
        "What the domain declares of the table (its columns, their types, no nulls where it says so) holds for all neighbours.",
        "The operating system's random numbers are unpredictable, and running time and memory are not observed.",
    ]
