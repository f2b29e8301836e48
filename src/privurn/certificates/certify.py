"""What a release says about itself: the fields of its certificate, all of them public.

One rule each for whatever made the release, be it a mechanism on counts, a channel on records or noisy sums: how it is rebuilt
from its parameters, its profile for a person's records, its rho, its source of randomness.
"""

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Protocol

from privurn.errors import CertificateError, ModelError, NotCertifiable
from privurn.mechanisms.local.local_release import PREFIX, LocalRelease
from privurn.mechanisms.perturbed_histogram import PerturbedHistogram
from privurn.mechanisms.registry import mechanism_from_parameters
from privurn.mechanisms.sums.registry import STATISTICS, statistic_from_parameters
from privurn.mechanisms.sums.statistic import StatisticMechanism
from privurn.privacy.certificate import SCHEMA, Certificate, achieved, canonical, parsed, profile_points
from privurn.privacy.entropy import Entropy, SeededEntropy, SystemEntropy
from privurn.privacy.profile import ROUND_UP, Guarantee, PrivacyProfile

PACKAGES = ("privurn", "numpy", "numba", "scipy", "duckdb", "pyarrow", "opendp")


class Certifiable(Protocol):
    """What a certificate says of whatever made a release: a mechanism, noisy sums, or a channel applied to every record."""

    @property
    def name(self) -> str:
        """What `rebuild` knows it by."""

    @property
    def n(self) -> int | None:
        """Public number of confidential records, None where it is secret or no parameter."""

    @property
    def records(self) -> int:
        """Number of records drawn."""

    @property
    def rows(self) -> int | None:
        """Rows that are published where the parameters fix them."""

    @property
    def adds_noise(self) -> bool:
        """Whether OpenDP draws some of the randomness."""

    @property
    def profile(self) -> PrivacyProfile:
        """The guarantee for one record; of noisy sums, for as many as they have `contributions`."""

    def parameters(self) -> dict[str, Any]:
        """Plain data from which `rebuild` makes the same again."""


def rebuild(name: str, parameters: dict[str, Any]) -> Certifiable:
    """What a certificate or ledger entry names, from its parameters: all of them, of the right types, and no others."""
    if name.startswith(PREFIX):
        made: Certifiable = LocalRelease.from_parameters(name, parameters)
    elif name in STATISTICS:
        made = statistic_from_parameters(name, parameters)
    else:
        made = mechanism_from_parameters(name, parameters)
    if canonical(made.parameters()) != canonical(parameters):
        raise CertificateError("the mechanism's parameters are not those that it would state itself.")
    return made


def check_certifiable(mechanism: Certifiable, domain: dict[str, Any]) -> None:
    """Before anything is paid: a certificate of this, with its domain, could be read and rebuilt."""
    from privurn.privacy.certificate_schema import MOST_RECORDS

    if max(mechanism.records, mechanism.rows or 0) > MOST_RECORDS:
        raise NotCertifiable(f"at most {MOST_RECORDS:,} records can be certified.", hint="Ask for fewer records")
    try:
        rebuild(mechanism.name, parsed(canonical(mechanism.parameters()).decode()))
        parsed(canonical(domain).decode())
    except (CertificateError, TypeError, ValueError):
        raise NotCertifiable(
            "a certificate of these parameters could not be verified.",
            hint="Use a mechanism of privurn's own, and numbers with fewer digits",
        ) from None


def certified_profile(mechanism: Certifiable, guarantee: Guarantee) -> PrivacyProfile:
    """The profile for the privacy unit: one record, or all that one person may own.

    Noisy sums are calibrated for a person's records together, and their profile is for these already.
    """
    if not isinstance(mechanism, StatisticMechanism):
        return mechanism.profile.group(guarantee.contributions)
    if mechanism.contributions != guarantee.contributions:
        raise ModelError("the privacy unit is not the one that the statistics are accounted for.")
    return mechanism.profile


def zcdp(mechanism: Certifiable, guarantee: Guarantee) -> float | None:
    """The rho for which the release is rho-zCDP for the privacy unit; None where none is claimed.

    Noise has its own, which grows by k^2 for k records of one person (Bun and Steinke 2016, proposition 1.9); records noised
    one by one add theirs; a pure epsilon-DP release is epsilon^2/2-zCDP.
    """
    if isinstance(mechanism, StatisticMechanism):
        return mechanism.zcdp
    if isinstance(mechanism, LocalRelease):
        return mechanism.rho(guarantee.contributions)
    if isinstance(mechanism, PerturbedHistogram):
        return mechanism.profile.zcdp * guarantee.contributions**2
    if guarantee.delta > 0.0:
        return None
    return 0.5 * min(guarantee.epsilon, certified_profile(mechanism, guarantee).pure_epsilon) ** 2 * ROUND_UP


def certify(
    mechanism: Certifiable,
    *,
    guarantee: Guarantee,
    domain: dict[str, Any],
    columns: list[str],
    entropy: Entropy,
    payment: dict[str, Any],
    n: int | None = None,
    output: dict[str, Any] | None = None,
) -> Certificate:
    """Certificate of a release that is about to be handed over; `save` adds the data file's hash.

    `n` is given where it is public and no parameter of the mechanism, `output` where there is no data file to be saved.
    """
    profile = certified_profile(mechanism, guarantee)
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
            "rho": zcdp(mechanism, guarantee),
            "profile": profile_points(profile, also=guarantee.epsilon),
            "assumptions": assumptions(guarantee, local=isinstance(mechanism, LocalRelease)),
            "randomness": source_of_randomness(entropy, noise=mechanism.adds_noise),
            "private": entropy.private,
            "software": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
            "output": output,
            "ledger": payment,
        }
    )


OPENDP_AND_SYSTEM = (
    "noise: OpenDP's generator, seeded by the operating system; all else: operating system (os.urandom); exact integers"
)


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
