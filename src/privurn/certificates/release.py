"""A finished release: what was published, and its certificate."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from privurn.certificates.folder import SyntheticTable, save_release
from privurn.errors import PrivurnError
from privurn.privacy.certificate import Certificate
from privurn.privacy.ledger import Ledger
from privurn.tables import to_kind
from privurn.tables.blocks import InParts
from privurn.tables.output import needs_marks

MARKED = (
    "text that a spreadsheet would run as a formula is written behind an apostrophe in the CSV file; privurn reads it as it "
    "was, other programs should take the apostrophe off, or read Parquet."
)


@dataclass(frozen=True)
class Release:
    """A finished release. It holds public data only.

    `table` is what the mechanism published: records, a noisy table, or measurements. `synthetic` are the records that were made
    from measurements, where that is what was published (`measured`).
    """

    table: Any = field(repr=False)
    kind: str
    certificate: Certificate = field(repr=False)
    remarks: tuple[str, ...] = ()
    ledger: Ledger | None = field(default=None, repr=False)
    synthetic: SyntheticTable | None = field(default=None, repr=False)
    measured: bool = False

    @property
    def data(self) -> Any:
        """The records (or the noisy table), as the kind of frame that came in (Arrow for files)."""
        table = self.table if self.synthetic is None else self.synthetic.table
        if isinstance(table, InParts):
            return table.frame() if self.kind == "spark" else table.to_arrow()
        return to_kind(table, self.kind)

    @property
    def measurements(self) -> Any:
        """The noisy measurements that the records were made from, likewise; None where the records were drawn themselves."""
        return to_kind(self.table, self.kind) if self.measured else None

    def with_records(self, make: Callable[[], SyntheticTable]) -> "Release":
        """The release with records made from its measurements; where they cannot be made, what was paid for, and why.

        Ctrl-C ends the making of records, not the release: the ledger has paid for the measurements.
        """
        try:
            return replace(self, synthetic=make())
        except (PrivurnError, ArithmeticError, ValueError, MemoryError, KeyboardInterrupt) as error:
            why = "interrupted" if isinstance(error, KeyboardInterrupt) else type(error).__name__
            if isinstance(error, PrivurnError):
                why = error.message.removesuffix(".")
            return replace(
                self, remarks=(*self.remarks, f"No records were made from the measurements ({why}); infer reads them.")
            )

    def save(
        self,
        folder: str | Path,
        *,
        file_format: Literal["csv", "parquet"] = "csv",
        progress: Callable[[str], None] = lambda stage: None,
    ) -> "Release":
        """Write data and certificate into a new folder, all or nothing; returns the release with its final certificate.

        A release from a cluster with more records than fit on one computer comes in parts: files in the folder `data`, and a
        manifest of them; `progress` is told how many are written. In CSV, text that a spreadsheet would run as a formula is
        written behind an apostrophe; a remark says so.
        """
        certificate = save_release(
            self.table,
            self.certificate,
            Path(folder),
            file_format=file_format,
            synthetic=self.synthetic,
            measured=self.measured,
            progress=progress,
        )
        if self.ledger is not None:
            self.ledger.complete(certificate["ledger"]["entry"], output=certificate["output"]["sha256"])
        tables = [self.table] if self.synthetic is None else [self.table, self.synthetic.table]
        looked_at = [each.rows if isinstance(each, InParts) else each for each in tables]
        remarks = (*self.remarks, MARKED) if file_format == "csv" and any(map(needs_marks, looked_at)) else self.remarks
        return replace(self, certificate=certificate, remarks=remarks)
