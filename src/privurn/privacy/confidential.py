"""Results that depend on the confidential data themselves, marked as such by their type.

A figure computed from the data (an instance-level delta, an empirical Bayes estimate) says something about the data.
It may be shown to the custodian; it may not travel in a certificate, and a parameter chosen by looking at it voids the
guarantee unless that look is paid for.
"""

from dataclasses import dataclass, fields
from typing import Any, ClassVar, NoReturn

from privurn.errors import NotCertifiable


class Confidential:
    """Mixin for dataclasses: readable field by field, refused by everything public, and silent when printed."""

    confidential: ClassVar[bool] = True

    def to_public(self) -> NoReturn:
        """Refuse: there is no public form."""
        raise NotCertifiable(
            f"{type(self).__name__} was computed from the confidential data and cannot enter a public certificate.",
            hint="Certificates state global guarantees, for example DirichletMultinomialProfile(...).delta(epsilon)",
        )

    def to_confidential(self) -> dict[str, Any]:
        """Every field, with the mark that it must stay inside: for the custodian's own screen and files."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        return {"confidential": True, **own}

    def __repr__(self) -> str:
        """Name the type only: a repr ends up in logs and tracebacks."""
        return f"{type(self).__name__}(confidential)"


@dataclass(frozen=True, kw_only=True, repr=False)
class ConfidentialNumber(Confidential):
    """One number computed from the confidential data; `float(...)` takes it out."""

    value: float
    meaning: str

    def __float__(self) -> float:
        return self.value
