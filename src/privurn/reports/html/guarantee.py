"""The public part of the page: what was released, what it promises, and how anyone can check that."""

import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privurn.domain import domain_from_json
from privurn.drawing import profile_curves, trade_off_curves
from privurn.mechanisms.mechanism import Mechanism
from privurn.privacy.certificate import Certificate
from privurn.privacy.profile import Guarantee, PrivacyProfile
from privurn.privacy.trade_off import power_bound
from privurn.reports.html.markup import Markup, bullets, facts, number, percent_up, section, small, table, tag
from privurn.reports.html.pictures import plot

LEVELS = (0.01, 0.05, 0.1, 0.25)
MOST_LISTED = 8
LONGEST_VALUE = 200
NEGLIGIBLE = 1e-15
"""Points of the profile beyond the first delta below this are left to the certificate."""

PARAMETERS = {
    "n": "confidential records",
    "cells": "cells of the public domain",
    "alpha": "prior records in each cell",
    "records": "records drawn",
    "strength": "strength: prior records in total",
    "discount": "discount of the Pitman-Yor urn",
    "noise": "kind of noise",
    "scale": "scale of the noise",
    "threshold": "threshold a noisy count must pass",
    "smoothing": "weight of the uniform distribution",
    "weight": "weight of the uniform distribution",
    "draws": "posterior samples",
    "publish": "what is published",
}

NEIGHBOURS = {
    "replace-one": ("the same table with {records} replaced by anything else", "the number of records is public"),
    "add-remove": ("the same table without {records}, or with as many more", "the number of records is secret"),
}


@dataclass(frozen=True, kw_only=True)
class Promise:
    """A certificate whose guarantee was recomputed: its target, and the mechanism that it names."""

    certificate: Certificate
    target: Guarantee
    mechanism: Mechanism

    @property
    def profile(self) -> PrivacyProfile:
        """For the privacy unit."""
        return self.mechanism.unit_profile(self.target)

    @property
    def pair(self) -> str:
        """(epsilon, delta) in words."""
        return f"epsilon = {self.target.epsilon:g}, delta = {self.target.delta:g}"

    @property
    def owner(self) -> str:
        """What one person may own in the table."""
        k = self.target.contributions
        return "one record" if k == 1 else f"up to {k:,} records of one person"


def what_was_released(promise: Promise) -> Markup:
    """Columns, domain, mechanism and size."""
    certificate = promise.certificate
    mechanism = promise.mechanism
    stated = certificate["domain"]
    domains = _domains(stated) if mechanism.synthetic else []
    sized = "secret" if certificate["n"] is None else f"{certificate['n']:,}"
    return section(
        "What was released",
        facts(
            [
                ("rows", f"{certificate['output']['rows']:,} {mechanism.rows_are}"),
                *_records(certificate),
                ("columns", ", ".join(map(str, certificate["columns"]))),
                ("mechanism", mechanism.name),
                ("confidential records", sized),
                ("made", certificate["created"]),
                ("file", certificate["output"]["file"]),
            ]
        ),
        tag("p", f"The mechanism: {mechanism.in_words}."),
        *([] if domains else [tag("p", "The public bounds or values, declared without looking at the data, stand below.")]),
        *([tag("p", "The public domain, declared without looking at the data:")] if domains else []),
        *([bullets(tag("span", tag("strong", column), f": {words}") for column, words in domains)] if domains else []),
        name="released",
    )


def _domains(stated: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Columns, and what is public of each."""
    if stated["kind"] == "open-labels":
        listed = f"{len(stated['labels']):,} of them named" if "labels" in stated else "copied as they are"
        return [(stated["column"], f"labels nobody listed beforehand, {listed}")]
    return [(column, each.describe()) for column, each in domain_from_json(stated).columns.items()]  # type: ignore[union-attr]


def _records(certificate: Certificate) -> list[tuple[str, str]]:
    """Of the records made from measurements."""
    made = certificate["synthetic"]
    if made is None:
        return []
    copies = "" if made["copies"] == 1 else f" in {made['copies']:,} copies"
    return [("records", f"{made['rows']:,} synthetic records{copies}, made from these numbers alone ({made['file']})")]


def what_is_promised(promise: Promise) -> Markup:
    """The guarantee in plain words, with worked numbers."""
    target, profile = promise.target, promise.profile
    other, size = NEIGHBOURS[target.neighbouring]
    coin = 0.5 * (1.0 + min(1.0, profile.delta(0.0)))
    simple = power_bound(target, level=LEVELS)
    tight = power_bound(profile, level=LEVELS)
    rows = [
        (f"{level:.0%}", f"{level:.0%}", percent_up(float(a)), percent_up(float(b)))
        for level, a, b in zip(LEVELS, simple, tight, strict=True)
    ]
    at = LEVELS.index(0.05)
    return section(
        "The guarantee",
        tag(
            "p",
            "This release is ",
            tag("strong", f"({target.epsilon:g}, {target.delta:g})-differentially private"),
            f" for {promise.owner}.",
            class_="promise",
        ),
        tag(
            "p",
            f"Think of an attacker who knows every other record, knows how this release was made, has unlimited computers, and "
            f"wants to know whether it was made from the real table or from {other.format(records=promise.owner)} ({size}). "
            "The guarantee limits how well any such attacker can do.",
        ),
        tag(
            "p",
            "If the attacker wants a false-alarm rate of at most gamma, the chance to be right about the real table (the power "
            "of the test) is at most ",
            tag("strong", "gamma e^epsilon + delta"),
            f". For gamma = 5% that is 5% of {_factor(target.epsilon)}, plus {target.delta:g}: at most "
            f"{percent_up(float(simple[at]))}. The whole profile of this mechanism, not just this pair, allows no more than "
            f"{percent_up(float(tight[at]))}. Without seeing the release, the power is 5%.",
        ),
        table(
            "Largest power of any attack, rounded up",
            ("false-alarm rate gamma", "without the release", "gamma e^epsilon + delta", "by the whole profile"),
            rows,
        ),
        tag(
            "p",
            "If both tables were equally likely beforehand, an attacker who guesses after seeing the release is right with "
            f"probability at most {percent_up(coin)}, in place of 50%.",
        ),
        tag(
            "p",
            "It does not say that nothing can be learned: what holds for people in general can be learned from the release, "
            "and that is its purpose. It limits what the release adds about any one person because their data were used.",
        ),
        name="guarantee",
    )


def _factor(epsilon: float) -> str:
    factor = math.exp(epsilon)
    return f"{factor:,.3f}" if factor < 1e4 else f"{factor:.3g}"


def pictures(promise: Promise) -> Markup:
    """Profile and trade-off curve."""
    achieved = promise.certificate["achieved"]
    points = promise.certificate["profile"]
    near = ", ".join(
        f"{small(each['delta'])} at epsilon {each['epsilon']:g}" for each in points if each["epsilon"] in (0.5, 1.0, 2.0)
    )
    profile = plot(
        profile_curves({"this release": promise.profile}, guarantees={"this release": promise.target}),
        name="profile",
        title="Privacy profile",
        description=f"The smallest delta for each epsilon: {near}. The mark is what was promised.",
    )
    curve = plot(
        trade_off_curves({"this release": promise.profile}, guarantees=[promise.target], points=51),
        name="trade-off",
        title="Trade-off curve",
        description="Of all tests that tell two neighbouring tables apart: the smallest false-negative rate at each "
        "false-positive rate. The closer to the diagonal, the less anyone can tell.",
        size=(4.7, 5.6),
    )
    last = 1 + next((i for i, each in enumerate(points) if each["delta"] < NEGLIGIBLE), len(points))
    smallest = "none" if achieved["epsilon"] is None else f"{achieved['epsilon']:.6g}"
    return section(
        "The whole profile",
        tag("div", profile, curve, class_="plots"),
        facts(
            [
                ("asked for", promise.pair),
                (f"delta at epsilon = {promise.target.epsilon:g}, recomputed", small(achieved["delta"])),
                (f"smallest epsilon at delta = {promise.target.delta:g}, recomputed", smallest),
            ]
        ),
        table(
            "Points of the profile",
            ("epsilon", "smallest delta"),
            [(f"{each['epsilon']:g}", small(each["delta"])) for each in points[:last]],
        ),
        name="profile",
    )


def parameters(promise: Promise) -> Markup:
    """Everything that fixes the law of the output."""
    rows = [
        (tag("code", name), _value(value), PARAMETERS.get(name.rpartition(".")[2], ""))
        for name, value in _flat(promise.certificate["mechanism"]["parameters"])
    ]
    shown = table("Everything that fixes the law of the output", ("parameter", "value", "meaning"), rows)
    return section("Parameters", Markup(shown.replace("<table>", '<table class="words">', 1)), name="parameters")


def _flat(data: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in data.items():
        found += _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else [(f"{prefix}{key}", value)]
    return found


def _value(value: Any) -> str:
    if value is None:
        return "secret or not used"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return number(float(value)) if isinstance(value, float) else f"{value:,}"
    if isinstance(value, list):
        text = ", ".join(str(each) if isinstance(each, (str, int, float)) else json.dumps(each) for each in value[:MOST_LISTED])
        text += f", … ({len(value):,} in all)" if len(value) > MOST_LISTED else ""
    else:
        text = str(value)
        if "/" in text and text.replace("/", "", 1).isdigit():
            text += f" = {number(float(Fraction(text)))}"
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"


def payment(promise: Promise) -> Markup:
    """The ledger entry."""
    stamp = promise.certificate["ledger"]
    if stamp.get("used"):
        body = _paid(promise, stamp)
    else:
        body = tag(
            "p",
            "No ledger was used for this release. Nothing but the custodian's own care stops a second release of the same "
            "data, which would add to what an attacker can learn.",
        )
    return section("Ledger", body, name="ledger")


def _paid(promise: Promise, stamp: Mapping[str, Any]) -> Markup:
    return tag(
        "div",
        tag(
            "p",
            "The custodian's ledger was debited before the first random number was drawn. It adds up what all releases of "
            "these data cost and refuses the one that would exceed its budget.",
        ),
        facts([("ledger", stamp["ledger"]), ("entry", stamp["entry"]), ("debited", promise.pair)]),
    )


def assumptions(promise: Promise) -> Markup:
    """What the guarantee rests on."""
    return section("What it rests on", bullets(promise.certificate["assumptions"]), name="assumptions")


def how_to_verify(promise: Promise, *, folder: str) -> Markup:
    """Commands and hashes."""
    certificate = promise.certificate
    file = certificate["output"].get("file")
    commands = f"privurn verify {shlex.quote(folder)}"
    if file is not None:
        commands += f"\ncd {shlex.quote(folder)} && sha256sum {shlex.quote(file)}"
    versions = ", ".join(f"{name} {version}" for name, version in certificate["software"].items())
    return section(
        "How to verify",
        tag(
            "p",
            f"Anyone with the {'file' if file is None else 'folder'} can recompute the guarantee from the certificate's "
            "parameters and compare the hashes. This was done when the page was made. It finds edits and mistakes; it is no "
            "proof against a custodian who lies about how the data were made.",
        ),
        tag("pre", tag("code", commands)),
        facts(
            [
                (f"SHA-256 of {file or 'the published numbers'}", tag("code", certificate["output"]["sha256"])),
                ("SHA-256 of the certificate's content", tag("code", certificate["sha256"])),
                ("randomness", certificate["randomness"]),
                ("software", versions),
            ]
        ),
        name="verify",
    )
