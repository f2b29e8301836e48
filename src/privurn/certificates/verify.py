"""Re-check a release from what was published alone: recompute every figure, compare every stated field and the hashes.

This detects edits and mistakes. It is no proof against forgery: a liar can write a consistent certificate for data that
were made another way. What is checked how, field by field: docs/reference/certificate.md.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from privurn.certificates.certify import assumptions, privacy_unit, stated_randomness
from privurn.certificates.parts import changed_parts, waves
from privurn.errors import CertificateError, FormatError, PrivurnError
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.published import Content, SyntheticContent, copy_column
from privurn.mechanisms.registry import rebuild
from privurn.privacy.certificate import Certificate, achieved, file_hash, profile_points
from privurn.privacy.profile import Guarantee
from privurn.tables.engine import Answered, Tasks
from privurn.tables.parts import MANIFEST, data_files, read_manifest
from privurn.tables.released import released_batches, released_columns
from privurn.tables.spark_tasks import SparkTasks

RELATIVE_AGREEMENT = 1e-9
"""Two machines may round a sum differently; more than this is an edit."""

SEEDED = "the release was made with seeded randomness: not private"


@dataclass(frozen=True)
class Verification:
    """Whether a release checks, and every reason why not; `hint` says what to do where that is known."""

    valid: bool
    reasons: tuple[str, ...]
    hint: str | None = field(default=None, repr=False, compare=False)


def verify(path: str | Path, *, spark: Any = None) -> Verification:
    """Verify a release folder, or a certificate file next to its data.

    `spark`: a Spark session whose executors, which need privurn for it, read the parts of a large release.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise FormatError(f"an object of type {type(path).__name__} is no path.", hint="Give the folder of a release")
    path, hint = Path(path), None
    tasks = None if spark is None else SparkTasks(partial(nullcontext, spark))
    try:
        certificate = Certificate.read(path)
        reasons = _check_data(certificate, path if path.is_dir() else path.parent, tasks)
        reasons = [*check_certificate(certificate), *reasons]
    except CertificateError as error:
        reasons, hint = [error.message.removesuffix(".")], error.hint
    return Verification(not reasons, tuple(reasons), hint)


def check_certificate(certificate: Certificate) -> list[str]:
    """Everything that can be checked without the data file: the layout first, then what it says."""
    try:
        certificate = Certificate.from_json(certificate.to_json())
    except CertificateError as error:
        return [error.message.removesuffix(".")]
    except (TypeError, ValueError, RecursionError):
        return ["the certificate is no plain data"]
    reasons = [] if certificate.intact else ["the certificate's own hash does not fit its content: it was edited"]
    if certificate["private"] is not True:
        reasons.append(SEEDED)
    try:
        stated = certificate["mechanism"]
        mechanism = rebuild(stated["name"], stated["parameters"])
        target = Guarantee(
            epsilon=certificate["target"]["epsilon"],
            delta=certificate["target"]["delta"],
            contributions=certificate["privacy_unit"]["contributions"],
            neighbouring=certificate["neighbouring"],
        )
        words = [*_check_words(certificate, mechanism, target), *_check_sizes(certificate, mechanism)]
        reasons += words or _check_figures(certificate, mechanism, target)  # huge sizes end at the first
    except Exception as error:  # whatever impossible parameters end in, an answer is given
        detail = error.message.removesuffix(".") if isinstance(error, PrivurnError) else type(error).__name__
        reasons.append(f"the guarantee cannot be recomputed: {detail}")
    return reasons


def _check_words(certificate: Certificate, mechanism: Mechanism, target: Guarantee) -> list[str]:
    """What people read must say what the numbers say."""
    rests_on = assumptions(mechanism, target)
    randomness = stated_randomness(private=certificate["private"], noise=mechanism.adds_noise)
    holds = {
        "the privacy unit or the assumptions are not those of the guarantee": (
            certificate["privacy_unit"] == privacy_unit(target) and certificate["assumptions"] == rests_on
        ),
        "the source of randomness is not the private one": certificate["randomness"] == randomness,
    }
    return [reason for reason, true in holds.items() if not true]


def _check_sizes(certificate: Certificate, mechanism: Mechanism) -> list[str]:
    """Numbers of records and cells, the domain and the columns: one statement made in several places."""
    output = certificate["output"]
    rows = None if output is None else output["rows"]
    holds = {
        "the neighbouring relation is not the mechanism's": certificate["neighbouring"] == mechanism.relation,
        "n or records do not fit the mechanism's parameters": (
            (certificate["n"] is None) == (mechanism.relation == "add-remove")
            and certificate["records"] == mechanism.records
            and mechanism.n in (None, certificate["n"])
        ),
        "the number of published rows does not fit the mechanism's parameters": (
            rows is None or (rows == mechanism.rows if mechanism.rows is not None else rows <= mechanism.records)
        ),
        "the domain does not fit the mechanism's parameters": mechanism.fits(certificate["domain"]),
        "the columns do not fit the domain": certificate["columns"] == mechanism.columns_for(certificate["domain"]),
        "records are made from measurements, and from nothing else": output is None
        or (
            (mechanism.makes_records or certificate["synthetic"] is None)
            and mechanism.measures == output["file"].startswith("measurements")
        ),
    }
    return [reason for reason, true in holds.items() if not true]


def _check_figures(certificate: Certificate, mechanism: Mechanism, target: Guarantee) -> list[str]:
    """The guarantee, recomputed from the parameters."""
    profile = mechanism.unit_profile(target)
    figures = {"epsilon": target.epsilon, "delta": target.delta}
    points = profile_points(profile, also=target.epsilon)
    stated = certificate["profile"]
    holds = {
        "the recomputed delta at the target epsilon exceeds the target": profile.delta(target.epsilon) <= target.delta,
        "the achieved guarantee is not what the parameters give": _agree(
            certificate["achieved"], achieved(profile, target=figures)
        ),
        "rho is not what the parameters give": _agree({"rho": certificate["rho"]}, {"rho": mechanism.zcdp(target)}),
        "the profile is not what the parameters give": len(stated) == len(points)
        and all(one["epsilon"] == other["epsilon"] and _agree(one, other) for one, other in zip(stated, points, strict=True)),
    }
    return [reason for reason, true in holds.items() if not true]


def _agree(stated: Mapping[str, float | None], computed: Mapping[str, float | None]) -> bool:
    pairs = [(stated[key], value) for key, value in computed.items()]
    return all(  # isclose takes 0 for nothing but 0: no delta, and a tiny one, are different claims
        one is other if one is None or other is None else math.isclose(one, other, rel_tol=RELATIVE_AGREEMENT)
        for one, other in pairs
    )


def _check_data(certificate: Certificate, folder: Path, tasks: Tasks | None) -> list[str]:
    """The data file, and the records made from it where there are any: hash, then what they hold."""
    output, synthetic = certificate["output"], certificate["synthetic"]
    if output is None:
        return ["the certificate names no data file: the release was never saved"]
    files = [output] if synthetic is None else [output, synthetic]
    reasons = [reason for each in files for reason in _changed(folder, each, tasks)]
    if reasons:
        return reasons
    stated, domain = certificate["mechanism"], certificate["domain"]
    try:
        mechanism = rebuild(stated["name"], stated["parameters"])
        fits = mechanism.fits(domain)
    except Exception:
        fits = False
    if not fits:
        return []  # for `check_certificate` to say
    found = _check_content(folder, output, certificate["columns"], lambda: mechanism.content(domain), tasks)
    if synthetic is not None and mechanism.makes_records:
        copies, n = synthetic["copies"], certificate["n"]
        columns = [copy_column(domain["columns"])] * (copies > 1) + list(domain["columns"])
        found += _check_content(folder, synthetic, columns, lambda: SyntheticContent(domain, copies=copies, n=n), tasks)
    return found


def _changed(folder: Path, stated: Mapping[str, Any], tasks: Tasks | None) -> list[str]:
    """Why a file, or the parts that it lists, is not what is stated."""
    name = stated["file"]
    try:
        same = file_hash(folder / name) == stated["sha256"]
    except FileNotFoundError:
        if name == MANIFEST:
            return ["the manifest is missing: the release was not finished, or was not copied whole"]
        return [f"the data file {name!r} is missing"]
    except OSError:
        return [f"the data file {name!r} cannot be read, or is no regular file"]
    if not same:
        return [f"the data file {name!r} was changed: its hash does not fit"]
    return changed_parts(folder, stated, tasks) if name == MANIFEST else []


def _check_content(
    folder: Path, stated: Mapping[str, Any], columns: list[str], content: Callable[[], Content], tasks: Tasks | None
) -> list[str]:
    name = stated["file"]
    try:
        found = check_published(folder / name, columns, stated["rows"], content(), tasks)
        return [f"the data file {name!r} {each}" for each in found]
    except Exception as error:  # whatever impossible parameters end in, an answer is given
        detail = error.message.removesuffix(".") if isinstance(error, PrivurnError) else type(error).__name__
        return [f"the data file {name!r} cannot be checked: {detail}"]


def check_published(file: Path, columns: list[str], stated: int, content: Content, tasks: Tasks | None = None) -> list[str]:
    """How data, read in batches, contradict their certificate; a FormatError where they cannot be read at all."""
    sizes = [each.rows for each in read_manifest(file)] if file.name == MANIFEST else [stated]
    files = list(zip(data_files(file.absolute()), sizes, strict=True))
    if tasks is not None and file.name == MANIFEST and content.by_batches:
        for wave in waves(files):

            def task(number: int, wave: Sequence[tuple[Path, int]] = wave) -> Answered:
                return _contradiction(*wave[number], columns, content) or "", 0, ""

            found = [each for each, _, _ in tasks.answers(task, len(wave)) if each]
            if found:
                return found[:1]
        return []
    for each, size in files:
        if (wrong := _contradiction(each, size, columns, content)) is not None:
            return [wrong]
    return [] if content.complete() else [content.wrong]


def _contradiction(file: Path, size: int, columns: list[str], content: Content) -> str | None:
    """What one file says that the certificate does not."""
    if released_columns(file) != columns:
        return "does not hold the columns that are stated"
    rows = 0
    for batch in released_batches(file):
        rows += batch.num_rows
        if rows > size:
            break
        if not content.holds(batch):
            return content.wrong
    return None if rows == size else "does not hold the rows that are stated"
