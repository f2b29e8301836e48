"""What all commands that make a release print."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from privurn.cli.console import note, print_json, print_text

if TYPE_CHECKING:
    from privurn.certificates.release import Release
    from privurn.privacy.certificate import Certificate


def print_opening(certificate: "Certificate", what: str) -> None:
    """What was made, and whether its guarantee holds."""
    print_text(what)
    if not certificate["private"]:
        print_text("Seeded, so NOT private: for tests only. Without the seed it would be:")


def guarantee_words(certificate: "Certificate") -> str:
    """Epsilon and delta, and for whom."""
    target, unit = certificate["target"], certificate["privacy_unit"]["unit"]
    return f"Guarantee: ({target['epsilon']:g}, {target['delta']:g})-differential privacy for {unit}"


def warn(certificate: "Certificate") -> None:
    """On standard error: a seed, or no ledger."""
    if not certificate["private"]:
        note("warning: seeded: not private. Use it for tests only.")
    if certificate["ledger"].get("declined"):
        note("warning: no ledger was used although one stands beside the data; the certificate says so.")
    elif not certificate["ledger"]["used"]:
        note("warning: no ledger was used, so nothing stops a second release; the certificate says so.")


def show_folder(made: "Release", output: Path, *, json: bool, words: Callable[[], None]) -> None:
    """A folder that was written: one JSON object, or a command's own words and where everything is."""
    from privurn.tables.parts import FOLDER, MANIFEST

    certificate = made.certificate
    data = (certificate["synthetic"] or certificate["output"])["file"]
    paths = {
        "folder": str(output),
        "data": str(output / (FOLDER if data == MANIFEST else data)),
        **({} if certificate["synthetic"] is None else {"measurements": str(output / certificate["output"]["file"])}),
        "certificate": str(output / "certificate.json"),
    }
    if json:
        print_json({"paths": paths, "remarks": list(made.remarks), "certificate": dict(certificate.data)})
        return
    words()
    warn(certificate)
    print_text(f"Data:        {paths['data']}")
    if "measurements" in paths:
        print_text(f"Measured:    {paths['measurements']}   (what privurn infer reads)")
    print_text(f"Certificate: {paths['certificate']}   (check it: privurn verify {output})")
