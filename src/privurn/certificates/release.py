"""A finished release: what was published, and its certificate."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from privurn.certificates.folder import save_release
from privurn.privacy.certificate import Certificate
from privurn.privacy.ledger import Ledger
from privurn.tables import to_kind
from privurn.tables.output import needs_marks

MARKED = (
    "text that a spreadsheet would run as a formula is written behind an apostrophe in the CSV file; privurn reads it as it "
    "was, other programs should take the apostrophe off, or read Parquet."
)


@dataclass(frozen=True)
class Release:
    """A finished release. It holds public data only: the synthetic records (or noisy table) and their certificate.

    Where measurements are what is released, `table` holds them, and `synthetic` the records made from them with the public
    seed `post_seed`.
    """

    table: Any = field(repr=False)
    kind: str
    certificate: Certificate = field(repr=False)
    remarks: tuple[str, ...] = ()
    ledger: Ledger | None = field(default=None, repr=False)
    synthetic: Any = field(default=None, repr=False)
    post_seed: int = 0

    @property
    def data(self) -> Any:
        """The synthetic records, as the kind of frame that came in (Arrow for files)."""
        return to_kind(self.table if self.synthetic is None else self.synthetic, self.kind)

    @property
    def measurements(self) -> Any:
        """What was measured, where records were made from that; else the records."""
        return to_kind(self.table, self.kind)

    def save(self, folder: str | Path, *, file_format: Literal["csv", "parquet"] = "csv") -> "Release":
        """Write data and certificate into a new folder, all or nothing; returns the release with its final certificate.

        In CSV, text that a spreadsheet would run as a formula is written behind an apostrophe; a remark says so.
        """
        certificate = save_release(
            self.table,
            self.certificate,
            Path(folder),
            file_format=file_format,
            synthetic=self.synthetic,
            seed=self.post_seed,
        )
        if self.ledger is not None:
            self.ledger.complete(certificate["ledger"]["entry"], output=certificate["output"]["sha256"])
        remarks = (*self.remarks, MARKED) if file_format == "csv" and needs_marks(self._shown) else self.remarks
        return replace(self, certificate=certificate, remarks=remarks)

    @property
    def _shown(self) -> Any:
        return self.table if self.synthetic is None else self.synthetic
