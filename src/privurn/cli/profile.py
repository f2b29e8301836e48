"""`privurn profile`: what a release promises at every epsilon, as a table and as a picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli.console import note, print_json, print_table, print_text, print_words, rounded_up
from privurn.cli.named_releases import CertifiedRelease, Releases, certified_releases
from privurn.cli.options import Json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = """Examples:

privurn profile out

privurn profile out --epsilon 0.5 --epsilon 1 --json

privurn profile out other --plot profiles.png

privurn profile out --trade-off --plot trade-off.svg

privurn profile sums"""

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
RATES = (0.01, 0.05, 0.1, 0.25, 0.5)
LEVEL = 0.05
AS_CERTIFIED, TAMPERED = "as certified", "not as certified"

Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Save a picture: .png, .svg or .pdf.")]


def profile(
    releases: Releases,
    epsilon: Annotated[
        list[float] | None, typer.Option("--epsilon", help="Where to read the profile; may be repeated.", show_default=False)
    ] = None,
    trade_off: Annotated[
        bool, typer.Option("--trade-off", help="Error rates of the best test in place of epsilon and delta.")
    ] = False,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Show the privacy profile of releases, recomputed from their certificates.

    delta is the smallest for each epsilon, and the power is the largest that any test at level 5% can have when it must tell
    from the release which of two neighbouring tables it came from.
    """
    from privurn.drawing import check_suffix, save

    if plot is not None:
        check_suffix(plot)
    found = certified_releases(releases)
    answers = [
        {**(_trade_off(each) if trade_off else _profile(each, epsilon)), "data_file": _data_file(path, each)}
        for path, each in zip(releases, found, strict=True)
    ]
    for answer in answers:
        if answer["data_file"] == TAMPERED:
            note(
                f"warning: {answer['release']}: the data file is not the one certified; the profile is the certificate's alone."
            )
    if plot is not None:
        save(_picture(found, trade_off=trade_off), plot)
    if json:
        print_json({"releases": answers, "plot": None if plot is None else str(plot)})
        return
    for answer in answers:
        _print(answer)
    if plot is not None:
        print_text(f"Picture: {plot}")


def _data_file(path: Path, release: CertifiedRelease) -> str:
    """Whether the data beside the certificate are those that it is about; they need not be there."""
    from privurn.certificates.verify import verify

    output = release.certificate["output"]
    folder = path if path.is_dir() else path.parent
    if output is None or not (folder / output["file"]).exists():
        return "not there"
    return AS_CERTIFIED if verify(path).valid else TAMPERED


def _profile(release: CertifiedRelease, epsilons: list[float] | None) -> dict[str, Any]:
    from privurn.privacy.profile import SMALLEST_DELTA, Guarantee, check_epsilon
    from privurn.privacy.trade_off import power_bound

    points = []
    for each in sorted({*map(check_epsilon, epsilons)} if epsilons else {*EPSILONS, release.promise.epsilon}):
        delta = release.profile.delta(each)
        shown = max(delta, SMALLEST_DELTA) if delta > 0.0 else 0.0
        power = 1.0 if shown >= 1.0 else float(power_bound(Guarantee(epsilon=each, delta=shown), level=LEVEL))
        points.append({"epsilon": each, "delta": delta, "power_at_5_percent": power})
    return {**release.to_json(), "profile": points, "power_at_5_percent": float(power_bound(release.profile, level=LEVEL))}


def _trade_off(release: CertifiedRelease) -> dict[str, Any]:
    from privurn.privacy.trade_off import trade_off

    rates = zip(RATES, trade_off(release.profile, false_positive=RATES).tolist(), strict=True)
    return {**release.to_json(), "trade_off": [{"false_positive": a, "false_negative": b} for a, b in rates]}


def _picture(releases: list[CertifiedRelease], *, trade_off: bool) -> "Figure":
    from privurn.drawing import profile_curves, trade_off_curves

    profiles = {each.name: each.profile for each in releases}
    promises = {each.name: each.promise for each in releases}
    if trade_off:
        return trade_off_curves(profiles, guarantees=promises.values())
    return profile_curves(profiles, guarantees=promises)


def _print(answer: dict[str, Any]) -> None:
    title = f"{answer['release']}: {answer['mechanism']}, {answer['neighbouring']}"
    if answer["contributions"] > 1:
        title += f", {answer['unit']}"
    if "trade_off" in answer:
        rows = [(f"{each['false_positive']:.0%}", f"{each['false_negative']:.2%}") for each in answer["trade_off"]]
        print_table(title, ("false-positive rate", "smallest false-negative rate"), rows)
        return
    points = answer["profile"]
    rows3 = [(f"{each['epsilon']:g}", rounded_up(each["delta"]), f"{each['power_at_5_percent']:.2%}") for each in points]
    print_table(title, ("epsilon", "delta", "power at 5% by this pair"), rows3)
    print_words(f"By the whole profile, no test at level 5% has more power than {answer['power_at_5_percent']:.2%}.")
