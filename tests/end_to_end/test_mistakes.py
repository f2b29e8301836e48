"""Plausible mistakes, and the words that tell a newcomer what to type instead; nothing is paid or written."""

import contextlib
import io
import re
import shlex
import sys
from itertools import pairwise
from types import SimpleNamespace

import pytest
import typer

from privurn.cli.main import app
from privurn.cli.main import run as main
from privurn.cli.mechanism_options import SHORT
from privurn.mechanisms.registry import channel_recipes, recipes

RELEASE = "release pay.csv --column pay --grid 0:100:5 --epsilon 1 --delta 1e-6 -o out"
FIRST = "For example privurn release pay.csv --column pay --grid 0:200000:500 --epsilon 1 --delta 1e-6 -o out"
NUMBERS = "0.5, 1e-6 or 1000"


def instead(old, new, line=RELEASE):
    assert old in line
    return line.replace(old, new)


MISTAKES = {
    # the file and its columns
    "a file that is not there": (instead("pay.csv", "pya.csv"), 2, "Give a CSV or Parquet file"),
    "a folder for a file": (instead("pay.csv", "folder"), 2, "a glob such as"),
    "a column's name in capitals": (instead("--column pay", "--column Pay"), 2, "no column 'Pay'"),
    "no column of several": (instead("--column pay ", ""), 2, "--column income"),
    "two columns and one domain": (instead("--column pay", "--column pay --column town"), 2, "--grid age=0:100:1"),
    "a grid for text": (instead("--column pay", "--column town"), 2, "declare categories"),
    "numbers with commas": (instead("--column pay", "--column price"), 2, "like 1234.5: no commas"),
    # the domain
    "no domain": (
        instead("--grid 0:100:5 ", ""),
        2,
        "--grid LO:HI:STEP, --bins EDGES, --dates START,END,STEP, --categories",
    ),
    "two domains": (
        f"{RELEASE} --open-labels",
        2,
        "--grid LO:HI:STEP, --bins EDGES, --dates START,END,STEP, --categories",
    ),
    "a grid from high to low": (instead("0:100:5", "100:0:5"), 2, "for example --grid 0:200000:500"),
    "a grid without a step": (instead("0:100:5", "0:100"), 2, "--grid 0:200000:500"),
    "a step that does not fit": (instead("0:100:5", "0:100:7"), 2, "Try --grid 0:98:7"),
    "a comma in a step": (instead("0:100:5", "0:100:0,5"), 2, "For example 0, 250 or 0.5"),
    "bins from high to low": (instead("--grid 0:100:5", "--bins 100,50,0"), 2, "0,18,65,120"),
    "dates for a grid": (instead("0:100:5", "2024-01-01:2024-12-31:1"), 2, "--dates 2020-01-01,2023-12-31,month"),
    "bins like a grid": (instead("--grid 0:100:5", "--bins 0:100:5"), 2, "--bins 0,18,65,120"),
    "an empty list": (instead("--grid 0:100:5", "--categories ''"), 2, "--categories north,south,east,west"),
    "a category twice": (instead("--grid 0:100:5", "--categories a,b,a"), 2, "List every value once"),
    "a category with an equals sign": (
        instead("--column pay --grid 0:100:5", "--column town --categories '>9,<=9'"),
        2,
        "--categories 'pay=<=50K,>50K'",
    ),
    "a domain file that is not there": (instead("--grid 0:100:5", "--domain no.yaml"), 2, "Give a YAML or JSON file"),
    "another column's domain file": (
        instead("--column pay --grid 0:100:5", "--column town --domain pay.yaml"),
        2,
        "Leave --column out, or name 'pay'",
    ),
    "a domain file with a slip": (
        instead("--grid 0:100:5", "--domain slip.yaml"),
        2,
        "{kind: grid, low: 0, high: 99, step: 1}",
    ),
    # the guarantee
    "no epsilon": (instead("--epsilon 1 ", ""), 2, FIRST),
    "epsilon 0": (instead("--epsilon 1", "--epsilon 0"), 2, "For example --epsilon 1"),
    "a negative epsilon": (instead("--epsilon 1", "--epsilon -1"), 2, "For example --epsilon 1"),
    "delta 1": (instead("--delta 1e-6", "--delta 1"), 2, "For example --delta 1e-6"),
    "a percent sign": (instead("--delta 1e-6", "--delta 5%"), 2, NUMBERS),
    "a comma for a point": (instead("--epsilon 1", "--epsilon 0,5"), 2, NUMBERS),
    "a wrong neighbour": (f"{RELEASE} --neighbouring add", 2, "--neighbouring add-remove"),
    "a secret number of records, and no other": (f"{RELEASE} --neighbouring add-remove", 2, "--records 1000"),
    "nobody's records": (f"{RELEASE} --contributions 0", 2, "from 1 to 1,000,000"),
    "labels without a delta": ("release pay.csv --column town --open-labels --epsilon 1 -o out", 3, "--delta 1e-06"),
    "too much for the ledger": (f"{RELEASE} --ledger small.ledger", 4, "at most --epsilon 0.5"),
    "a ledger that is not there": (
        f"{RELEASE} --ledger no.ledger",
        4,
        "privurn ledger init no.ledger --epsilon 1 --delta 1e-6",
    ),
    # the mechanism and its options
    "a mechanism that is not known": (f"{RELEASE} --mechanism laplas", 2, "--mechanism and one of auto, "),
    "another mechanism's option": (f"{RELEASE} --alpha 2", 2, "Leave it out, or name that with --mechanism"),
    "no records": (f"{RELEASE} --records 0", 2, "Leave it out"),
    "records in words": (f"{RELEASE} --records many", 2, "For example 10000 or 1e7"),
    "an option misspelt": (instead("--epsilon", "--epsilom"), 2, "--epsilon"),
    "a command misspelt": (instead("release", "relese"), 2, "'release'"),
    # the output
    "no output": (instead(" -o out", ""), 2, FIRST),
    "a list with blanks": ("release pay.csv --column town --categories A, B, C --epsilon 1 -o out", 2, "in quotes"),
    "nulls misspelt": (f"{RELEASE} --nulls cells", 2, "For example --nulls cell"),
    "outside misspelt": (f"{RELEASE} --outside others", 2, "For example --outside null"),
    "an output that exists": (instead("-o out", "-o folder"), 2, "Name a new folder"),
    "an output nowhere": (instead("-o out", "-o no/such/out"), 2, "mkdir -p"),
    "a format that is not known": (f"{RELEASE} --format excel", 2, "--format csv or --format parquet"),
    # planning, accounting, privatising
    "thousands with a comma": ("plan --n 1,000 --cells 5 --epsilon 1", 2, "For example 10000 or 1e7"),
    "a plan without a domain": ("plan --n 1000 --epsilon 1", 2, "--grid LO:HI:STEP"),
    "neither epsilon nor delta": ("account dirichlet-multinomial --n 9 --cells 3 --alpha 1 --records 5", 2, "give --epsilon"),
    "a ledger without a budget": ("ledger init new.ledger", 2, "--epsilon 4, --delta 1e-6; or --rho 0.5"),
    "bounds from high to low": ("privatise pay.csv --column pay --bounds 9:0 --epsilon 1 -o out", 2, "--bounds 0:100"),
    "a channel that is not known": (
        "privatise pay.csv --column pay --bounds 0:9 --channel gauss --epsilon 1 -o out",
        2,
        "--channel and one of auto, laplace",
    ),
    # conclusions
    "infer without a release": ("infer", 2, "For example privurn infer out"),
    "infer from the data": ("infer pay.csv", 2, "Give the folder of the release"),
    "infer from nothing": ("infer nowhere", 2, "Name the folder that privurn release"),
    "a question that is not known": ("infer town --ask average", 2, "For example mean, variance"),
    "a bracket left open": ("infer town --ask P(x", 2, """--ask "P(income='>50K')\""""),
    "signs without quotes": ("infer town --ask 'P(town=>50K)'", 2, """--ask "P(income='>50K')\""""),
    "a column that is not there": ("infer town --ask 'P(income=A)'", 2, "Columns: town"),
    "a value that is not there": ("infer town --ask 'P(town=a)'", 2, "It holds A, B, C"),
    "a mean of words": ("infer town --ask mean", 2, "P(town=LABEL)"),
    "a quantile in percent": ("infer town --ask q95", 2, "For example q0.5"),
    "a level in percent": ("infer town --level 95", 2, "--level 0.95"),
    "copies into nowhere": ("infer town --copies 5", 2, "--copies 20 -o NEWDIR"),
    "copies without a likelihood": ("infer drawn --copies 5 -o new", 2, "docs/reference/inference.md"),
    "a picture of a wrong kind": ("infer town --plot curve.gif", 2, ".png, .svg or .pdf"),
    "draws as a table": ("infer town -o draws.csv", 2, ".nc"),
    "a report on nothing": ("report nowhere", 2, "Name a folder that privurn release made"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, an old folder, a small ledger and two releases; what a mistake must leave as it is."""
    home = tmp_path_factory.mktemp("mistakes")
    (home / "pay.csv").write_text(
        "pay,town,price\n" + "\n".join(f'{i * 37 % 100},{"ABC"[i % 3]},"{i},50"' for i in range(300)) + "\n"
    )
    (home / "slip.yaml").write_text("kind: grid\n low: 0\nhigh: 100\n")
    (home / "pay.yaml").write_text("pay: {kind: grid, low: 0, high: 100, step: 5}\n")
    (home / "folder").mkdir()
    words = "release pay.csv --column town --categories A,B,C --epsilon 1 --no-ledger -o"
    for line in (
        "ledger init small.ledger --epsilon 0.5 --delta 1e-5",
        f"{words} town --delta 1e-6 --records 100",
        f"{words} drawn --mechanism exponential --records 9",
    ):
        assert typed(line, home).code == 0
    return home


def typed(line, folder):
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["privurn", *shlex.split(line)])
        patch.chdir(folder)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as stopped:
            main()
    return SimpleNamespace(out=out.getvalue(), err=err.getvalue(), code=stopped.value.code or 0)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_what_to_type(mistake, folder):
    line, code, words = MISTAKES[mistake]
    before = {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
    done = typed(line, folder)
    assert (done.code, done.out) == (code, ""), done.err
    assert done.err.startswith("error: ")
    assert words in done.err
    assert len(done.err.strip().splitlines()) >= 2, "what happened, and what to type"
    assert {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")} == before


def commands(command, path=()):
    """Every command with its words."""
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))
    yield path, command


def test_examples_of_the_help_make_no_mistake():
    """They name commands, options, mechanisms and channels that there are."""
    known = {"--mechanism": recipes(), "--channel": channel_recipes()}
    every = dict(commands(typer.main.get_command(app)))
    seen = 0
    for path, command in every.items():
        for line in re.findall(r"^privurn .+$", command.epilog or "", re.MULTILINE):
            words = shlex.split(line.partition(" > ")[0])[1:]
            for name, kind in SHORT.items():  # what that command is short for has its options
                if any(word == "--mechanism" and after in kind.recipes() for word, after in pairwise(words)):
                    words = [name, *(f"--{kind.word}" if word == "--mechanism" else word for word in words[1:])]
            named = max((each for each in every if tuple(words[: len(each)]) == each), key=len)
            assert named[:1] == path[:1] or named[0] in SHORT, line
            params = every[named].get_params(typer.Context(every[named]))
            options = {name for each in params for name in (*each.opts, *each.secondary_opts)}
            assert {word for word in words if re.match("--?[a-z]", word)} <= options, line
            for option, names in known.items():
                assert all(name in (*names, "auto") for word, name in pairwise(words) if word == option), line
            seen += 1
    assert seen > 40


def test_there_are_enough_of_them():
    assert len(MISTAKES) >= 25
