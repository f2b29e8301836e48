"""The library speaks Python; the command line turns it into flags, in one place, from what the mechanisms themselves say."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import privurn
from privurn.cli.flags import translated, typed
from privurn.cli.main import command, spoken
from privurn.cli.mechanism_options import recipe_fields
from privurn.errors import Alternative, CalibrationError, FormatError, ModelError, Placeholder
from privurn.inference.draws import NotMixed
from privurn.mechanisms.models import Beta, Normal
from privurn.mechanisms.registry import recipes
from sources import FILES, nodes, place

RECIPES = recipes()

SOURCE = Path(privurn.__file__).parent
NAMES = {
    "epsilon",
    "epsilon_n",
    "delta",
    "records",
    "nulls",
    "bounds",
    "categories",
    "ledger",
    "part",
    "x",
    "noise",
    "asymptotic",
    "rho",
    "mechanism",
    "column",
    "chains",
}


def documentation(path):
    """The nodes that are docstrings."""
    for node in nodes(path):
        body = getattr(node, "body", None)
        for first in body if isinstance(body, list) else ():
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


STYLE_SHEET = "reports/html/style.py"
"""Its variables are written as options are."""


def flags_in(found, left_out=()):
    """Texts among nodes that hold an option of the command line, also one whose name is filled in."""
    left_out = set(left_out)
    texts = [node.value for node in found if isinstance(node, ast.Constant) and node not in left_out]
    filled = [
        "".join(each.value if isinstance(each, ast.Constant) else "x" for each in node.values)
        for node in found
        if isinstance(node, ast.JoinedStr)
    ]
    known = [re.sub(r"var\(--[a-z-]+", "", text) for text in (*texts, *filled) if isinstance(text, str)]  # a style sheet's
    return [text for text in known if re.search(r"(?<![\w-])--[a-z]", text)]


def test_no_message_of_the_library_speaks_in_flags():
    for path in FILES:
        if "cli" not in path.parts and place(path) != STYLE_SHEET:
            assert flags_in(list(nodes(path)), documentation(path)) == [], place(path)


@pytest.mark.parametrize("said", ['"Ask for fewer (--records 5)"', 'f"--{x}"', 'f"leave --{x} out"', 'f"{x} --alpha {y}"'])
def test_a_flag_would_be_noticed(said):
    assert flags_in(list(ast.walk(ast.parse(said))))
    assert not flags_in(list(ast.walk(ast.parse("f'{a}--{b}', 'a -- b', 'color: var(--ink)'"))))


@pytest.mark.parametrize(
    ("said", "spoken"),
    [
        ("For example epsilon=2.", "For example --epsilon 2."),
        ("nulls='cell' or records=1000", "--nulls cell or --records 1000"),
        ("such as bounds=(0, 100)", "such as --bounds 0:100"),
        ("such as bounds={'pay': (0, 100), 'age': (0, 120)}", "such as --bounds pay=0:100 --bounds age=0:120"),
        ("categories=['a', 'b']", "--categories a,b"),
        ("parts=['sleep', 'work']", "--part sleep --part work"),
        ("covariates=['age'], or none", "--x age, or none"),
        ("ledger=False uses none", "--no-ledger uses none"),
        ("asymptotic=True for one", "--asymptotic for one"),
        ("epsilon = 1 and unknown=3 stay", "epsilon = 1 and unknown=3 stay"),
        ("epsilon_n is a part, in epsilon_n.", "--epsilon-n is a part, in --epsilon-n."),
        ("a column 'epsilon_n' and my_epsilon_n stay", "a column 'epsilon_n' and my_epsilon_n stay"),
        ("Leave epsilon_n out, or epsilon_n=0.1", "Leave --epsilon-n out, or --epsilon-n 0.1"),
        ("Try Grid(0, '1/3', 7)", "Try --grid 0:1/3:7"),
        ("mechanism=privurn.Urn()", "--mechanism dirichlet-multinomial"),
        ("mechanism=NoisyCounts(noise='laplace')", "--mechanism perturbed-histogram --noise laplace"),
        ("Name it: domain={'pay': Grid(0, 100, 1)}", "Name it: --column pay"),
        ("Ledger.create('a b', epsilon=1, delta=1e-6)", "privurn ledger init 'a b' --epsilon 1 --delta 1e-6"),
        ("at least two. Run(chains=4)", "at least two. --chains 4"),
        ("no draws of 'P(x=3)', \"x=3\", P(x=3) or mean(y | x=3)", "no draws of 'P(x=3)', \"x=3\", P(x=3) or mean(y | x=3)"),
        ("for example --plot records=p.png", "for example --plot records=p.png"),
        ("alpha=1 and response='y' are for another command", "alpha=1 and response='y' are for another command"),
    ],
)
def test_keywords_become_flags(said, spoken):
    assert translated(said, NAMES) == spoken


@pytest.mark.parametrize(
    ("refused", "changes", "expected"),
    [
        (privurn.Urn(alpha=1), {"mechanism": privurn.Urn(alpha=1, records=4)}, "--records 4"),
        (privurn.Urn(alpha=1), {"mechanism": privurn.Urn(alpha=2.5)}, "--alpha 2.5"),
        (privurn.Urn(alpha=1), {"epsilon": 2.5}, "--epsilon 2.5"),
        (
            privurn.Urn(alpha=1, records=3),
            {"mechanism": privurn.NoisyCounts(records=3)},
            "--mechanism perturbed-histogram (leave --alpha out)",
        ),
        (privurn.NoisyCounts(noise="laplace"), {"mechanism": privurn.NoisyCounts()}, "--noise discrete-laplace"),
        (privurn.Pseudo(), {"mechanism": privurn.Pseudo(model=Beta())}, "--model beta"),
        (
            privurn.Pseudo(draws=2),
            {"mechanism": privurn.Pseudo(draws=2, model=Normal(mean=(0, 9), deviation=(1, 9)))},
            """--model '{"kind": "normal", "mean": [0, 9], "deviation": [1, 9]}'""",
        ),
        (
            privurn.PosteriorDraws(records=10**6),
            {"mechanism": privurn.Discover(share=0.25), "delta": 1e-6},
            "--mechanism label-discovery --discovery-share 0.25 --delta 1e-06 (leave --records out)",
        ),
        (privurn.Discover(), {"domain": Placeholder("Categories([...])")}, "--categories LIST (leave --open-labels out)"),
    ],
)
def test_an_alternative_is_typed_as_the_difference(refused, changes, expected):
    assert typed(Alternative(words="so", changes=changes, refused=refused)) == expected


def test_an_error_shows_three_alternatives_and_the_weak_ones_last():
    ways = [Alternative(words=f"way {i}", changes={"epsilon": i}, weak=i == 0) for i in range(3)]
    error = CalibrationError("no.", alternatives=ways)
    assert str(error) == "no.\n  What can be had:\n    - way 1: epsilon=1\n    - way 2: epsilon=2\n    - way 0: epsilon=0"
    assert spoken(error, ["release"]).endswith("    - way 0: --epsilon 0")
    assert len(CalibrationError("no.", alternatives=ways * 2).offered) == 3
    assert ModelError("no.", hint="Leave alpha=1 out").alternatives is None


def test_recipes_only_store_and_show_what_was_given():
    assert repr(privurn.Urn()) == "Urn()"
    assert repr(privurn.PitmanYorUrn(discount=0.5, records=3)) == "PitmanYorUrn(records=3, discount=0.5)"
    assert privurn.NoisyCounts(noise="no such noise").noise == "no such noise"


def test_the_help_page_has_a_group_of_options_for_each_mechanism(privurn_command):
    text = privurn_command("release", "--help").stdout
    for alias, kind in RECIPES.items():
        group = re.search(rf"─ --mechanism {alias}\b.*?╰", text, re.DOTALL)[0]
        for flag in recipe_fields(kind):
            assert f"--{flag} " in (text if flag == "records" else group)


@pytest.mark.parametrize("alias", RECIPES)
def test_an_option_that_a_mechanism_does_not_have_is_refused(alias, tmp_path):
    (tmp_path / "x.csv").write_text("x\n1\n2\n")
    known = recipe_fields(RECIPES[alias])
    others = {flag: each for kind in RECIPES.values() for flag, each in recipe_fields(kind).items() if flag not in known}
    needed = ["--discount", "0.5"] if alias == "pitman-yor" else []
    place, out = ["release", str(tmp_path / "x.csv"), "--column", "x", "--grid", "1:2:1"], tmp_path / "out"
    for flag, each in others.items():
        own = [*needed, f"--{flag}", *([] if each.type is bool else ["1"])]
        with pytest.raises(FormatError, match=f"the mechanism {alias} has no --{flag}: that is for "):
            command()([*place, "--epsilon", "1", "-o", str(out), "--mechanism", alias, *own], standalone_mode=False)
        assert not out.exists()


PACKAGES = ("privurn", "privurn.audits", "privurn.inference.mixtures", "privurn.inference.sums", "privurn.mechanisms.local")


@pytest.mark.parametrize("package", PACKAGES)
def test_no_public_name_takes_more_than_ten_parameters(package):
    found = import_module(package)
    for name in found.__all__:
        public = getattr(found, name)
        if callable(public) and public is not NotMixed and getattr(public, "__module__", "").startswith("privurn"):
            made = getattr(public, "calibrated", public)  # how noisy sums are asked for
            assert len(inspect.signature(made).parameters) <= 10, name


def test_no_function_or_method_of_inference_takes_more_than_ten_parameters():
    found = {}
    for path in sorted((SOURCE / "inference").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                found[f"{path.relative_to(SOURCE)}: {node.name}"] = len([each for each in names if each not in ("self", "cls")])
    assert len(found) > 500
    assert {name: number for name, number in found.items() if number > 10} == {}


def test_commands_still_take_every_option_of_every_mechanism():
    release = command().commands["release"]
    known = {flag for kind in RECIPES.values() for flag in recipe_fields(kind)}
    context = release.make_context("release", ["x.csv", "--epsilon", "1", "-o", "out"])
    assert known <= {name.removeprefix("--") for each in release.get_params(context) for name in each.opts}


@pytest.mark.parametrize("given", [{"epsilon": None}, {"epsilon": "one"}, {"epsilon": 1, "delta": None}])
def test_what_is_no_number_is_no_guarantee(given):
    with pytest.raises(ModelError, match=rf"{list(given)[-1]} must"):
        privurn.release([1, 2], domain=privurn.Grid(0, 9, 1), **given)
