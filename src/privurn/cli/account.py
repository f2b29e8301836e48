"""`privurn account`: the exact calculator that scripts rely on."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli import account_compose, account_instance
from privurn.cli.console import print_json, print_text
from privurn.cli.options import Json, NeighbouringOption
from privurn.cli.parsing import parse_neighbouring, records_number, whole_number
from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.privacy.profile import PrivacyProfile

EXAMPLES = """Examples:

privurn account dirichlet-process --n 11918162 --strength 1 --epsilon 2 --delta 1e-5 --solve records --json

privurn account pitman-yor --n 10000 --records 20 --strength 1 --discount 0.5 --epsilon 1 --json

privurn account dirichlet-multinomial --n 10000 --cells 100 --alpha 20 --records unlimited --delta 1e-6 --json

privurn account dirichlet-multinomial --n 1e6 --cells 100 --records 1e6 --epsilon 1 --delta 1e-6 --solve alpha --json"""

app = typer.Typer(help="Exact privacy accounting of the urns.", epilog=EXAMPLES, no_args_is_help=True)
app.command("instance", epilog=account_instance.EXAMPLES)(account_instance.instance)
app.command("compose", epilog=account_compose.EXAMPLES)(account_compose.compose)

N = Annotated[str, typer.Option("--n", help="Number of confidential records.")]
Records = Annotated[str | None, typer.Option("--records", help="Number of released records.")]
Strength = Annotated[float, typer.Option("--strength", help="Strength of the urn.")]
Epsilon = Annotated[float | None, typer.Option("--epsilon", help="Give it to get delta.")]
Delta = Annotated[float | None, typer.Option("--delta", help="Give it to get epsilon.")]
Solve = Annotated[str | None, typer.Option("--solve", help="With both: what to solve for, records or alpha.")]


@app.command("dirichlet-process", epilog=EXAMPLES)
def dirichlet_process(
    n: N,
    strength: Strength,
    records: Records = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    solve: Solve = None,
    json: Json = False,
) -> None:
    """Urn of a Dirichlet process, non-atomic base measure."""
    from privurn.privacy.laws.urn import DirichletProcessProfile

    given: dict[str, Any] = {"n": whole_number(n), "strength": strength}
    _only(solve, "records")
    m = _records(records, solve, unlimited=False)
    profile = DirichletProcessProfile(n=given["n"], records=m, strength=strength)
    _answer("dirichlet-process", given, profile, m, epsilon, delta, solve, json=json)


@app.command("pitman-yor", epilog=EXAMPLES)
def pitman_yor(
    n: N,
    strength: Strength,
    discount: Annotated[float, typer.Option("--discount", help="Discount, in (0, 1).")],
    records: Records = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    solve: Solve = None,
    json: Json = False,
) -> None:
    """Urn of a Pitman-Yor process, non-atomic base measure; discount 0 is the Dirichlet process."""
    from privurn.privacy.laws.urn import DirichletProcessProfile, PitmanYorProfile

    given: dict[str, Any] = {"n": whole_number(n), "strength": strength, "discount": discount}
    _only(solve, "records")
    m = _records(records, solve, unlimited=False)
    profile: PrivacyProfile
    if discount == 0.0:
        profile = DirichletProcessProfile(n=given["n"], records=m, strength=strength)
    else:
        profile = PitmanYorProfile(n=given["n"], records=m, strength=strength, discount=discount)
    _answer("pitman-yor", given, profile, m, epsilon, delta, solve, json=json)


@app.command("dirichlet-multinomial", epilog=EXAMPLES)
def dirichlet_multinomial(
    cells: Annotated[str, typer.Option("--cells", help="Number of cells of the public domain.")],
    n: Annotated[str | None, typer.Option("--n", help="Number of confidential records (not with add-remove).")] = None,
    alpha: Annotated[float | None, typer.Option("--alpha", help="Prior records in each cell.")] = None,
    records: Annotated[str | None, typer.Option("--records", help="Number of released records, or unlimited.")] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    solve: Solve = None,
    neighbouring: NeighbouringOption = "replace-one",
    json: Json = False,
) -> None:
    """Urn on a public domain."""
    from privurn.privacy.calibration import smallest_alpha
    from privurn.privacy.laws.add_remove import AddRemoveDirichletMultinomialProfile, smallest_alpha_add_remove
    from privurn.privacy.laws.urn import DirichletMultinomialProfile

    secret = parse_neighbouring(neighbouring) == "add-remove"
    if secret != (n is None):
        raise FormatError("n is given exactly when it is public.", hint="--n N, or --neighbouring add-remove without it")
    given: dict[str, Any] = {} if n is None else {"n": whole_number(n)}
    given["cells"] = whole_number(cells)
    _only(solve, "records", "alpha")
    if (alpha is None) != (solve == "alpha"):
        raise FormatError("alpha is either given or solved for.", hint="--alpha A, or --epsilon E --delta D --solve alpha")
    m = _records(records, solve, unlimited=True)
    if solve == "alpha":
        both = _both(epsilon, delta)
        answer = (smallest_alpha_add_remove if secret else smallest_alpha)(**given, records=m, **both)
        _print("dirichlet-multinomial", {**given, "alpha": answer, "records": m, **both}, neighbouring, json=json)
        return
    build = AddRemoveDirichletMultinomialProfile if secret else DirichletMultinomialProfile
    profile = build(**given, alpha=float(alpha or 0.0), records=m)
    _answer("dirichlet-multinomial", {**given, "alpha": alpha}, profile, m, epsilon, delta, solve, json=json)


def _only(solve: str | None, *allowed: str) -> None:
    if solve is not None and solve not in allowed:
        raise FormatError(f"cannot solve for {solve!r} here.", hint=f"--solve {' or '.join(allowed)}")


def _records(records: str | None, solve: str | None, *, unlimited: bool) -> Any:
    if (records is None) != (solve == "records"):
        raise FormatError("the number of records is either given or solved for.", hint="--records M, or --solve records")
    number = 1 if records is None else records_number(records)
    if number == "unlimited" and not unlimited:
        raise FormatError("this urn cannot release an unlimited number of records.", hint="Give --records as a whole number")
    return number


def _both(epsilon: float | None, delta: float | None) -> dict[str, float]:
    if epsilon is None or delta is None:
        raise FormatError("solving for a parameter needs both --epsilon and --delta.", hint="--epsilon 1 --delta 1e-6")
    return {"epsilon": epsilon, "delta": delta}


def _answer(
    model: str,
    given: dict[str, Any],
    profile: "PrivacyProfile",
    records: Any,
    epsilon: float | None,
    delta: float | None,
    solve: str | None,
    *,
    json: bool,
) -> None:
    from privurn.privacy.certificate import finite_or_none
    from privurn.privacy.profile import check_delta

    if solve == "records":
        both = _both(epsilon, delta)
        _print(model, {**given, "records": _most_records(profile, both), **both}, profile.neighbouring, json=json)
        return
    if (epsilon is None) == (delta is None):
        raise FormatError(
            "give --epsilon to get delta, or --delta to get epsilon.", hint="With both, add --solve records or --solve alpha"
        )
    result: dict[str, Any]
    if epsilon is not None:
        result = {"epsilon": epsilon, "delta": profile.delta(_not_negative(epsilon))}
    else:
        result = {"epsilon": finite_or_none(profile.epsilon(check_delta(delta or 0.0))), "delta": delta}
    _print(model, {**given, "records": records, **result}, profile.neighbouring, json=json)


def _most_records(profile: "PrivacyProfile", both: dict[str, float]) -> Any:
    from privurn.privacy.calibration import largest_records
    from privurn.privacy.laws.add_remove import AddRemoveDirichletMultinomialProfile, largest_records_add_remove

    if isinstance(profile, AddRemoveDirichletMultinomialProfile):
        return largest_records_add_remove(cells=profile.cells, alpha=profile.alpha, **both)
    return largest_records(profile, **both)


def _not_negative(epsilon: float) -> float:
    if not 0.0 <= epsilon < float("inf"):
        raise FormatError("epsilon must be 0 or more.", hint="For example --epsilon 1")
    return epsilon


def _print(model: str, result: dict[str, Any], neighbouring: str, *, json: bool) -> None:
    data = {"model": model, "neighbouring": neighbouring, **result}
    if json:
        print_json(data)
        return
    for key, value in data.items():
        print_text(f"{key:13} {'infinite' if value is None else value}")
