"""From a release to what can be attacked: the mechanism that its certificate names, and the guarantee it promises."""

from pathlib import Path
from typing import Any

from privurn.audits.mechanisms import mechanism_target
from privurn.audits.target import Target
from privurn.domain import JointDomain, domain_from_json
from privurn.errors import CertificateError
from privurn.mechanisms.registry import rebuild
from privurn.privacy.audit.attack import Progress
from privurn.privacy.audit.findings import AuditResult, Claim
from privurn.privacy.certificate import Certificate


def audit_certificate(
    certificate: Certificate | str | Path,
    *,
    samples: int | None = None,
    failure_probability: float = 1e-3,
    seed: int | None = None,
    progress: Progress = lambda done, wanted: None,
) -> AuditResult:
    """Run what a certificate describes on made-up neighbours, against the guarantee it promises.

    Left out, `samples` is what can be drawn in about a minute,
    50,000 at most; the result says which leaks that could have shown.
    """
    target = certificate_target(certificate, seed=seed)
    return target.audit(samples=samples, failure_probability=failure_probability, progress=progress)


def certificate_target(certificate: Certificate | str | Path, *, seed: int | None = None) -> Target:
    """What there is to audit."""
    read = certificate if isinstance(certificate, Certificate) else Certificate.read(certificate)
    claim = _claim(read)
    try:
        stated = read["mechanism"]
        mechanism = rebuild(stated["name"], stated["parameters"])
        contributions = int(read["privacy_unit"]["contributions"])
    except (KeyError, TypeError, ValueError):
        raise CertificateError("the certificate does not say what was promised.") from None
    return mechanism_target(mechanism, claim, contributions=contributions, domain=_domain(read), seed=seed)


def _claim(certificate: Certificate) -> Claim:
    try:
        target: Any = certificate["target"]
        return Claim(float(target["epsilon"]), float(target["delta"]))
    except (KeyError, TypeError, ValueError):
        raise CertificateError("the certificate does not say what was promised.") from None


def _domain(certificate: Certificate) -> JointDomain | None:
    """The public domain, where there is one: open labels and numbers within bounds have none."""
    stated = certificate["domain"]
    if not isinstance(stated, dict) or stated.get("kind") != "joint":
        return None
    fields = {key: value for key, value in stated.items() if key in ("kind", "columns")}
    domain = domain_from_json(fields)
    return domain if isinstance(domain, JointDomain) else None
