"""What all releases do before anything is drawn: tell the custodian, and pay for what can be certified."""

import warnings
from collections.abc import Iterable
from typing import Any

from privurn.certificates.certify import check_certifiable
from privurn.errors import ConfidentialWarning
from privurn.mechanisms.mechanism import Mechanism
from privurn.privacy.ledger import Spent
from privurn.privacy.payer import Payer, Payment
from privurn.privacy.profile import Guarantee


def tell_custodian(remarks: Iterable[str]) -> None:
    """Warn of what was seen in the data, before anything is paid; no part of a release."""
    for remark in remarks:
        warnings.warn(f"confidential, for the custodian alone: {remark}", ConfidentialWarning, stacklevel=3)


def pay(payer: Payer, mechanism: Mechanism, guarantee: Guarantee, *, domain: dict[str, Any], n: int | None) -> Payment:
    """Debit the guarantee asked for, because that is what the certificate promises, for what can be certified."""
    check_certifiable(mechanism, domain)
    rho = mechanism.zcdp(guarantee)
    return payer.pay(Spent(guarantee=guarantee, rho=rho, description=mechanism.name, parameters=mechanism.parameters()), n=n)
