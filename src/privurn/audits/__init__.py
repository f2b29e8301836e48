"""Audit our own mechanisms, a certificate or a user's function, on neighbours chosen to be as revealing as possible.

    mechanism, certificate or function --> sampler + pairs of neighbours + marks --> privacy.audit.audit --> AuditResult

Nothing confidential is touched: the data sets are made here, from public sizes, domains and bounds alone.
"""

from privurn.audits.certificates import audit_certificate
from privurn.audits.functions import audit_callable
from privurn.audits.mechanisms import audit_mechanism, mechanism_sampler
from privurn.privacy.audit.findings import Claim

__all__ = ["Claim", "audit_callable", "audit_certificate", "audit_mechanism", "mechanism_sampler"]
