"""Everything privurn raises on purpose.

    PrivurnError
      DomainError(ValueError)          data or a domain that the declared public knowledge does not allow
      PrivacyError
        BudgetExceeded                 the ledger has not enough left
        NotCertifiable                 no guarantee can be stated for what was asked
        CalibrationError               the guarantee cannot be met; carries the nearest things that can
        CertificateError               a certificate that is malformed or does not check
        LedgerError                    a ledger that cannot be read, created or written
      ModelError(ValueError)           impossible parameters (strength, discount, alpha, counts)
      SamplingError(RuntimeError)      a sampler that could not finish
      FormatError(ValueError)          files and arguments that cannot be understood

A message says what happened, what was expected and what to type. None ever contains a confidential value.
"""


class PrivurnError(Exception):
    """Root of the tree; `exit_code` is what the command line returns for it."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  {self.hint}"


class DomainError(PrivurnError, ValueError):
    """Data or a domain that the declared public knowledge does not allow."""


class ModelError(PrivurnError, ValueError):
    """Impossible parameters."""


class FormatError(PrivurnError, ValueError):
    """Files and arguments that cannot be understood."""


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
    """The guarantee cannot be met; `alternatives` are the nearest things that can be had, in words."""

    def __init__(self, message: str, *, alternatives: tuple[str, ...] = ()) -> None:
        hint = "What can be had:\n" + "\n".join(f"    - {each}" for each in alternatives) if alternatives else None
        super().__init__(message, hint=hint)
        self.alternatives = alternatives


class CertificateError(PrivacyError):
    """A certificate that is malformed or does not check."""

    exit_code = 1


class LedgerError(PrivacyError):
    """A ledger that cannot be read, created or written."""

    exit_code = 4
