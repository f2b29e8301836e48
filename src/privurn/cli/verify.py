"""`privurn verify`: re-check a release."""

from pathlib import Path
from typing import Annotated

import typer

from privurn.cli.console import print_json, print_text
from privurn.cli.options import Json, Master, Remote, session

EXAMPLES = """Examples:

privurn verify out

privurn verify out --json

privurn verify sums

privurn verify out --registry > deployment.yaml

privurn verify visits --engine spark --master spark://host:7077"""


def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a release, or its certificate.json.")],
    registry: Annotated[
        bool, typer.Option("--registry", help="Print the fields of the OpenDP deployments registry (YAML).")
    ] = False,
    engine: Annotated[
        str, typer.Option("--engine", help="What reads the parts of a large release: duckdb (this computer) or spark.")
    ] = "duckdb",
    master: Master = None,
    remote: Remote = None,
    json: Json = False,
) -> None:
    """Recompute the guarantee from the certificate's parameters; check every other field, the data's values and the hashes.

    Any file gets an answer. This detects edits; it is no proof against forgery. Exit code 0 when everything checks, 1 when not.
    """
    from privurn.certificates.verify import verify as check
    from privurn.privacy.certificate import Certificate

    with session(engine, master, remote) as spark:
        result = check(folder, spark=spark)
    if json:
        print_json({"valid": result.valid, "reasons": list(result.reasons)})
    elif registry and result.valid:
        print_text(Certificate.read(folder).to_registry_yaml().rstrip())
    elif result.valid:
        certificate = Certificate.read(folder)
        target = certificate["target"]
        print_text(
            f"valid: ({target['epsilon']:g}, {target['delta']:g})-differential privacy for "
            f"{certificate['privacy_unit']['unit']}, recomputed from the parameters; hashes fit."
        )
    else:
        print_text("NOT valid:")
        for reason in result.reasons:
            print_text(f"  - {reason}")
        if result.hint is not None:
            print_text(result.hint)
    if not result.valid:
        raise typer.Exit(1)
