"""`privurn account compose`: what several releases cost together."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli.console import note, print_json, print_text, rounded_up
from privurn.cli.named_releases import CertifiedRelease, Releases, certified_releases
from privurn.cli.options import Json
from privurn.errors import FormatError, ModelError, PrivacyError

if TYPE_CHECKING:
    from privurn.privacy.profile import Guarantee

EXAMPLES = """Examples:

privurn account compose january february march --delta 1e-5

privurn account compose january february march --epsilon 2 --json

privurn account compose january sums --delta 1e-5"""

CONDITION = "tight figures hold for a plan fixed beforehand; basic ones also when later parameters depend on earlier outputs"


def compose(
    releases: Releases,
    delta: Annotated[float | None, typer.Option("--delta", help="Give it to get the joint epsilon.")] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="Give it to get the joint delta.")] = None,
    json: Json = False,
) -> None:
    """Joint guarantee of several releases of the same people, tight and by basic composition.

    The tight figure convolves the privacy losses of the releases' profiles. It holds when all parameters were fixed before the
    first output was seen; otherwise the basic figure, which adds what was promised, is the one to quote.
    """
    from privurn.privacy.certificate import finite_or_none
    from privurn.privacy.composition import compose as joined
    from privurn.privacy.profile import check_delta, check_epsilon

    if (epsilon is None) == (delta is None):
        raise FormatError("give --delta to get the joint epsilon, or --epsilon to get the joint delta.", hint="--delta 1e-5")
    found = certified_releases(releases)
    if len({each.promise.contributions for each in found}) > 1:
        raise PrivacyError(
            "Releases for different privacy units cannot be composed.",
            hint="Their certificates name how many records one person may own: it must be the same number",
        )
    profile = joined([each.profile for each in found])
    basic = _basic(found)
    if delta is not None:
        answer = {"epsilon": profile.epsilon(check_delta(delta)), "delta": delta}
        if basic is not None and delta >= basic.delta:  # the lattice may lose a few millionths where little is to be gained
            answer["epsilon"] = min(answer["epsilon"], basic.epsilon)
    else:
        epsilon = check_epsilon(epsilon or 0.0)
        answer = {"epsilon": epsilon, "delta": profile.delta(epsilon)}
        if basic is not None and epsilon >= basic.epsilon:
            answer["delta"] = min(answer["delta"], basic.delta)
    result: dict[str, Any] = {
        "neighbouring": profile.neighbouring,
        "contributions": found[0].promise.contributions,
        "epsilon": finite_or_none(answer["epsilon"]),
        "delta": answer["delta"],
        "basic": None if basic is None else {"epsilon": basic.epsilon, "delta": basic.delta},
        "condition": CONDITION,
    }
    if json:
        print_json({**result, "releases": [each.to_json() for each in found]})
        return
    _print(result, found)


def _basic(found: list[CertifiedRelease]) -> "Guarantee | None":
    """Sum of the promises; None where that promises nothing any more (delta of 1)."""
    from privurn.privacy.composition import basic_composition

    try:
        return basic_composition(each.promise for each in found)
    except ModelError:
        return None


def _print(result: dict[str, Any], found: list[CertifiedRelease]) -> None:
    for each in found:
        print_text(f"{each.name}: ({each.promise.epsilon:g}, {each.promise.delta:g})")
    joint = "infinite" if result["epsilon"] is None else rounded_up(result["epsilon"])
    print_text(f"jointly, tight: epsilon = {joint} at delta = {rounded_up(result['delta'])} ({result['neighbouring']})")
    basic = result["basic"]
    added = (
        "no guarantee" if basic is None else f"epsilon = {rounded_up(basic['epsilon'])} at delta = {rounded_up(basic['delta'])}"
    )
    print_text(f"jointly, basic: {added}")
    note(f"note: {result['condition']}.")
