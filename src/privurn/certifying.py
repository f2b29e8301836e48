"""What a release says about itself: the fields of its certificate, all of them public."""

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Protocol

from privurn.channels.local_release import PREFIX, LocalRelease
from privurn.channels.randomised_responses import RESPONSES
from privurn.choosing import unit_profile
from privurn.mechanisms.label_discovery import DiscoveredUrn
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.registry import mechanism_from_parameters
from privurn.privacy.certificate import SCHEMA, Certificate, achieved, profile_points
from privurn.privacy.entropy import Entropy, SystemEntropy
from privurn.privacy.profile import Guarantee, PrivacyProfile

PACKAGES = ("privurn", "numpy", "numba", "scipy", "duckdb", "pyarrow", "opendp")


class Certifiable(Protocol):
    """What a certificate says of whatever made a release: a mechanism, or a channel applied to every record."""

    @property
    def name(self) -> str:
        """What `rebuild` knows it by."""

    @property
    def n(self) -> int | None:
        """Public number of confidential records, None where it is secret."""

    @property
    def records(self) -> int:
        """Number of records drawn."""

    @property
    def rows(self) -> int | None:
        """Rows of the published table where the parameters fix them."""

    @property
    def profile(self) -> PrivacyProfile:
        """The guarantee for one record."""

    def parameters(self) -> dict[str, Any]:
        """Plain data from which `rebuild` makes the same again."""


def rebuild(name: str, parameters: dict[str, Any]) -> Certifiable:
    """What a certificate or ledger entry names, from its parameters."""
    if name.startswith(PREFIX):
        return LocalRelease.from_parameters(name, parameters)
    return mechanism_from_parameters(name, parameters)


def certify(
    mechanism: Certifiable,
    *,
    guarantee: Guarantee,
    domain: dict[str, Any],
    columns: list[str],
    entropy: Entropy,
    payment: dict[str, Any],
) -> Certificate:
    """Certificate of a release that is about to be handed over; `save` adds the file's hash."""
    profile = unit_profile(mechanism.profile, guarantee)
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
            "n": mechanism.n,
            "records": mechanism.records,
            "target": target,
            "achieved": achieved(profile, target=target),
            "profile": profile_points(profile, also=guarantee.epsilon),
            "assumptions": assumptions(guarantee, local=isinstance(mechanism, LocalRelease)),
            "randomness": source_of_randomness(entropy, noise=adds_noise(mechanism)),
            "private": entropy.private,
            "software": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
            "output": None,
            "ledger": payment,
            **({"rho": mechanism.rho(guarantee.contributions)} if isinstance(mechanism, LocalRelease) else {}),
        }
    )


OPENDP_AND_SYSTEM = (
    "noise: OpenDP's generator, seeded by the operating system; all else: operating system (os.urandom); exact integers"
)


def adds_noise(mechanism: Certifiable) -> bool:
    """Whether OpenDP draws some of the release's randomness."""
    if isinstance(mechanism, LocalRelease):
        return not isinstance(mechanism.channel, RESPONSES)
    return isinstance(mechanism, (PerturbedHistogram, DiscoveredUrn))


def source_of_randomness(entropy: Entropy, *, noise: bool) -> str:
    """What a certificate calls the source; a seeded release is marked as such, whoever drew its noise."""
    return OPENDP_AND_SYSTEM if noise and entropy.private else entropy.description


def is_private_source(stated: str, *, noise: bool) -> bool:
    """Whether a certificate names the private source. Earlier versions did not tell OpenDP's noise from the rest."""
    return stated in (source_of_randomness(SystemEntropy(), noise=noise), SystemEntropy.description)


NEIGHBOURS = {
    "replace-one": "Two tables are neighbours when one record is replaced by another; the number of records is public.",
    "add-remove": "Two tables are neighbours when one holds one record more than the other; the number of records is secret.",
}


def privacy_unit(guarantee: Guarantee) -> dict[str, Any]:
    """Whose records are protected together."""
    k = guarantee.contributions
    return {"unit": "one record" if k == 1 else f"up to {k} records of one person", "contributions": k}


LOCAL_MODEL = (
    "Local model: every record was privatised by itself, with randomness of its own, so the guarantee protects each record "
    "against everyone who sees the output, whoever holds the other records. Whoever ran the channel saw what it was given."
)


def assumptions(guarantee: Guarantee, *, local: bool = False) -> list[str]:
    """What has to be true for the guarantee to hold, in plain words; `local`: every record went through a channel by itself."""
    owns = "one record" if guarantee.contributions == 1 else f"at most {guarantee.contributions} records"
    return [
        *([LOCAL_MODEL] if local else []),
        NEIGHBOURS[guarantee.neighbouring],
        f"One person owns {owns}.",
        "The domain, the number of released records and all parameters were chosen without looking at the data.",
        "What the domain declares of the table (its columns, their types, no nulls where it says so) holds for all neighbours.",
        "The operating system's random numbers are unpredictable, and running time and memory are not observed.",
    ]
