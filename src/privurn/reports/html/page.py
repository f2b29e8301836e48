"""From a release to one HTML file: read and check, put the sections together, write all of it or nothing."""

from pathlib import Path
from typing import Any

from privurn.certificates.verify import verify
from privurn.errors import CertificateError, FormatError, NoRelease
from privurn.extras import need
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.registry import rebuild
from privurn.output_files import check_new_file, write_file
from privurn.privacy.certificate import Certificate
from privurn.privacy.profile import Guarantee
from privurn.reports.html import guarantee as public
from privurn.reports.html.columns import compared_columns, released_columns
from privurn.reports.html.conclusions import conclusions, face_value
from privurn.reports.html.markup import Markup, joined, tag, void
from privurn.reports.html.measured import published_records, published_sums
from privurn.reports.html.released import read_data, read_release
from privurn.reports.html.style import STYLE
from privurn.reports.html.whole_tables import table_sections

PUBLIC_NAME = "report.html"
CONFIDENTIAL_NAME = "CONFIDENTIAL-report.html"
CONFIDENTIAL = "CONFIDENTIAL"
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Should anything slip through, the browser still loads and runs nothing."""


def report(folder: str | Path, *, data: Any = None, output: str | Path | None = None) -> Path:
    """Write one self-contained HTML page about a saved release; returns where.

    Parameters
    ----------
    folder
        A release folder that verifies. A seeded test release is accepted, and the page says that it is not private.
    data
        The confidential table that was released, in any form that `release` takes. With it the page also holds figures
        computed from it and is marked CONFIDENTIAL; without it the page uses the folder alone and is as public as the
        folder is.
    output
        A new file. Left out: `report.html` in the folder, or `CONFIDENTIAL-report.html` beside it. A confidential page must be
        named so and is refused inside the folder, which is made to be handed over.
    """
    need("plots", what="reports")
    home = Path(folder)
    confidential = data is not None
    target = _default(home, confidential=confidential) if output is None else Path(output)
    certificate = _checked(home)
    _check_target(target, home, confidential=confidential)
    promise = _promise(certificate, confidential=confidential)
    if certificate["synthetic"] is not None:
        need("inference", what="reports on measurements")
    page = _document(
        promise,
        _title(certificate, confidential=confidential),
        [
            public.what_was_released(promise),
            public.what_is_promised(promise),
            public.pictures(promise),
            *_content(home, certificate, data, promise.mechanism),
            public.parameters(promise),
            public.payment(promise),
            public.assumptions(promise),
            public.how_to_verify(promise, folder=home.resolve().name),
        ],
        confidential=confidential,
    )
    return write_file(target, lambda partial: partial.write_text(page, encoding="utf-8"), private=confidential)


def _content(folder: Path, certificate: Certificate, data: Any, mechanism: Mechanism) -> list[Markup]:
    """What was released, beside the data where they are given, and what may be concluded from it."""
    if certificate["domain"]["kind"] == "statistics":
        return published_sums(folder)
    if not mechanism.synthetic:
        return published_records(folder, certificate, mechanism)
    if certificate["domain"]["kind"] == "table":
        return table_sections(folder, certificate, data)
    released = read_release(folder, certificate)
    own = None if data is None else compared_columns(released, read_data(data, certificate), certificate)
    columns = released_columns(released, certificate) if own is None else own
    return [columns, face_value(folder, certificate, mechanism), conclusions(folder, certificate)]


def _checked(folder: Path) -> Certificate:
    """Only what verifies is reported on; being seeded is said on the page instead."""
    if not folder.is_dir():
        raise NoRelease(f"there is no release folder {str(folder)!r}.", hint="Name the folder that release made")
    certificate = Certificate.read(folder)
    reasons = [each for each in verify(folder).reasons if certificate["private"] is True or "seeded" not in each]
    if reasons:
        raise CertificateError(f"{str(folder)!r} does not verify: {reasons[0]}.", hint=f"All reasons: privurn verify {folder}")
    return certificate


def _default(folder: Path, *, confidential: bool) -> Path:
    if not confidential:
        return folder / PUBLIC_NAME
    beside = folder.parent if folder.name not in ("", "..") else folder.resolve().parent
    return beside / CONFIDENTIAL_NAME


def _check_target(target: Path, folder: Path, *, confidential: bool) -> None:
    """Before anything is computed: the file is new, can be written, and says what it is."""
    check_new_file(target)
    if confidential:
        if CONFIDENTIAL.lower() not in target.name.lower():
            raise FormatError(
                "a page with confidential figures must say so in its name.", hint=f"For example {CONFIDENTIAL_NAME}"
            )
        if folder.resolve() in (target.absolute().parent.resolve() / target.name).parents:
            raise FormatError(
                "a confidential page does not go into the release folder, which is made to be handed over.",
                hint="Name a file somewhere else with output= (-o)",
            )


def _promise(certificate: Certificate, *, confidential: bool) -> public.Promise:
    target = Guarantee(
        epsilon=certificate["target"]["epsilon"],
        delta=certificate["target"]["delta"],
        neighbouring=certificate["neighbouring"],
        contributions=certificate["privacy_unit"]["contributions"],
    )
    mechanism = rebuild(**certificate["mechanism"])
    if confidential and not mechanism.synthetic:
        raise FormatError(
            f"confidential data are shown beside synthetic records, and these are {mechanism.rows_are}.", hint="Leave data out"
        )
    return public.Promise(certificate=certificate, target=target, mechanism=mechanism)


def _title(certificate: Certificate, *, confidential: bool) -> str:
    stated = certificate["domain"]
    columns = [stated["column"]] if stated["kind"] == "open-labels" else stated.get("columns", certificate["columns"])
    what = f"Differentially private release of {', '.join(map(str, columns))}"
    return f"{CONFIDENTIAL}: {what}" if confidential else what


def _document(promise: public.Promise, title: str, sections: list[Markup], *, confidential: bool) -> str:
    head = tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", **{"http-equiv": "Content-Security-Policy", "content": POLICY}),
        void("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        void("meta", name_="robots", content="noindex"),
        tag("title", title),
        tag("style", Markup(STYLE)),
    )
    warnings = []
    if confidential:
        warnings.append(
            "CONFIDENTIAL. This page holds figures computed from the confidential data, which no guarantee covers. Do not "
            "publish it or hand it over with the release."
        )
    if promise.certificate["private"] is not True:
        warnings.append(
            "NOT PRIVATE. This release was made with seeded random numbers, for tests. The guarantee below does not hold."
        )
    header = tag(
        "header",
        *(tag("p", each, class_="banner", role="note") for each in warnings),
        tag("h1", title),
        tag("p", f"{promise.pair}, for {promise.owner}.", class_="lead"),
    )
    about = "confidential" if confidential else "public: computed from the release folder alone, without the confidential data"
    version = promise.certificate["software"].get("privurn", "")
    footer = tag("footer", tag("p", f"Report of privurn {version}. This page is {about}. It loads nothing from a network."))
    body = tag("body", header, tag("main", joined(sections)), footer)
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"
