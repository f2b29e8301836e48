"""Everything privurn raises on purpose.

    PrivurnError
      DomainError(ValueError)          data or a domain that the declared public knowledge does not allow
      PrivacyError
        BudgetExceeded                 the ledger has not enough left
        NotCertifiable                 no guarantee can be stated for what was asked
        CalibrationError               the guarantee cannot be met; carries the nearest things that can
        CertificateError               a certificate that is malformed or does not check
          NoRelease(FormatError)       something else where a release was asked for
        LedgerError                    a ledger that cannot be read, created or written
      ModelError(ValueError)           impossible parameters (strength, discount, alpha, counts)
      SamplingError(RuntimeError)      a sampler that could not finish
      FormatError(ValueError)          files and arguments that cannot be understood
      MissingExtra(ImportError)        packages that a core installation leaves out
    ConfidentialWarning(UserWarning)   what the custodian alone is told of the data
    InferenceWarning(UserWarning)      what must be known before a posterior is used
      NotMixed                         the chains have not mixed
      TellsLittle                      the release has hardly moved what the prior says
      PriorDecides                     the posterior is further from the unbiased estimate than chance explains
      MuchClamped                      many records seem to lie at the bounds, or beyond them
      NoMaximum                        the maximum of a likelihood was not found, or there is none

A message says what happened, what was expected and what to write in Python; the command line turns that into what to type.
None ever contains a confidential value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_OFFERED = 3


class ConfidentialWarning(UserWarning):
    """Something about the confidential data that is for the custodian alone; it never stands in a release."""


class InferenceWarning(UserWarning):
    """What must be known before a posterior is used; every inference gives these, in the same words (inference/cautions.py)."""


class NotMixed(InferenceWarning):
    """Chains that did not mix: their summary cannot be trusted."""


class TellsLittle(InferenceWarning):
    """The release has hardly moved what the prior says of something that was asked for."""


class PriorDecides(InferenceWarning):
    """The posterior is further from the unbiased estimate than chance explains: the prior decides."""


class MuchClamped(InferenceWarning):
    """Many records seem to lie at the bounds, or beyond them: means and tails know nothing of how far beyond."""


class NoMaximum(InferenceWarning):
    """The maximum of a likelihood was not found, or there is none."""


class Placeholder(str):
    """Python text that stands for a value which only the caller can give."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """Something that can be had in place of what was refused: in words, and as the keyword arguments to call with instead.

    >>> str(Alternative(words="the same at a larger epsilon", changes={"epsilon": 2.0}))
    'the same at a larger epsilon: epsilon=2.0'
    """

    words: str
    changes: Mapping[str, Any]
    weak: bool = False
    """Whether it is hardly any protection: offered only where there is nothing else."""
    refused: Any = None
    """The mechanism asked for, which `changes` may replace."""

    def __str__(self) -> str:
        return f"{self.words}: {', '.join(f'{name}={value!r}' for name, value in self.changes.items())}"


class PrivurnError(Exception):
    """Root of the tree; `exit_code` is what the command line returns for it.

    `alternatives` are the nearest things that can be had, or None where that is not the question.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None, alternatives: Sequence[Alternative] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.alternatives = None if alternatives is None else tuple(alternatives)

    @property
    def offered(self) -> tuple[Alternative, ...]:
        """The alternatives that are shown: the nearest three, what hardly protects last."""
        return tuple(sorted(self.alternatives or (), key=lambda each: each.weak))[:MOST_OFFERED]

    def __str__(self) -> str:
        shown = [self.message, *([] if self.hint is None else [f"  {self.hint}"])]
        if self.offered:
            shown += ["  What can be had:", *(f"    - {each}" for each in self.offered)]
        return "\n".join(shown)


class DomainError(PrivurnError, ValueError):
    """Data or a domain that the declared public knowledge does not allow."""


class ModelError(PrivurnError, ValueError):
    """Impossible parameters."""


class FormatError(PrivurnError, ValueError):
    """Files and arguments that cannot be understood."""


class MissingExtra(PrivurnError, ImportError):
    """Packages that a core installation leaves out, and that were needed."""


class SamplingError(PrivurnError, RuntimeError):
    """A sampler that could not finish."""


class PrivacyError(PrivurnError):
    """A guarantee that cannot be given, kept or checked."""

    exit_code = 3


class BudgetExceeded(PrivacyError):
    """The ledger has not enough left for this release."""

    exit_code = 4


class NotCertifiable(PrivacyError):
    """No guarantee can be stated for what was asked."""


class CalibrationError(PrivacyError):
    """The guarantee cannot be met."""


class CertificateError(PrivacyError):
    """A certificate that is malformed or does not check."""

    exit_code = 1


class NoRelease(CertificateError, FormatError):
    """Something else where a release was asked for: input that cannot be used."""

    exit_code = 2


class LedgerError(PrivacyError):
    """A ledger that cannot be read, created or written."""

    exit_code = 4
