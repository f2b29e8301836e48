"""A newcomer's first minute: an example, what to type next, tables that fit, plain words about what is no release."""

import contextlib
import io
import json
import re
import shlex
import sys
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from rich.cells import cell_len

from privurn.cli.console import print_table
from privurn.cli.main import FIRST
from privurn.cli.main import run as main
from privurn.domain import domain_from_file
from privurn.inference.counts.functionals import parse_functionals

FRAMES = re.compile(r"[─-╿]")
TYPED = [line.strip() for line in FIRST.splitlines() if line.startswith("  privurn ")]


def shown(line, folder, columns=80):
    """What a command prints in a terminal of so many columns."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", shlex.split(line))
        patch.chdir(folder)
        patch.setenv("COLUMNS", str(columns))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as stopped:
            main()
    return SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue(), returncode=stopped.value.code or 0)


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """An empty folder in which someone has typed what `privurn` alone says; and what they saw."""
    folder = tmp_path_factory.mktemp("first-minute")
    first = shown("privurn ledger init incomes.csv.ledger --epsilon 3 --delta 1e-5", folder)
    assert first.returncode == 0
    seen = {line: shown(line, folder) for line in TYPED}
    return SimpleNamespace(folder=folder, seen=seen)


def test_privurn_alone_says_what_to_type_and_that_works(tmp_path, tried):
    alone = shown("privurn", tmp_path)
    assert alone.returncode == 0
    assert alone.stdout.strip() == FIRST.strip()
    assert len(alone.stdout.splitlines()) <= 8
    assert len(TYPED) == 4
    for line, done in tried.seen.items():
        assert done.returncode == 0, (line, done.stderr)
    assert tried.seen["privurn verify release"].stdout.startswith("valid")


def test_help_still_lists_everything(tmp_path):
    text = shown("privurn --help", tmp_path, columns=200).stdout
    for command in ("example", "plan", "release", "verify", "infer", "ledger", "account"):
        assert f" {command} " in text


@pytest.mark.parametrize(("name", "rows"), [("incomes.csv", 50_000), ("people.csv", 20_000)])
def test_examples_are_the_same_every_time_and_overwrite_nothing(name, rows, tmp_path):
    (tmp_path / "other").mkdir()
    assert shown(f"privurn example {name}", tmp_path).returncode == 0
    assert shown(f"privurn example other/{name}", tmp_path).returncode == 0
    written = (tmp_path / name).read_bytes()
    assert (tmp_path / "other" / name).read_bytes() == written
    assert pyarrow.csv.read_csv(tmp_path / name).num_rows == rows
    (tmp_path / name).write_text("mine\n")
    refused = shown(f"privurn example {name}", tmp_path)
    assert refused.returncode == 2
    assert f"privurn example {name} --force" in refused.stderr
    assert (tmp_path / name).read_text() == "mine\n"
    assert shown(f"privurn example {name} --force", tmp_path).returncode == 0
    assert (tmp_path / name).read_bytes() == written


def test_the_domain_of_people_is_true(tmp_path):
    for name in ("people.csv", "people.yaml"):
        assert shown(f"privurn example {name}", tmp_path).returncode == 0
    table = pyarrow.csv.read_csv(tmp_path / "people.csv")
    columns = domain_from_file(tmp_path / "people.yaml").columns
    assert list(columns) == table.column_names
    assert len(columns) == 8
    for name, domain in columns.items():
        values = set(table[name].to_pylist())
        if domain.kind == "categories":
            assert values == set(domain.values)
        else:
            low, high = (domain.edges[0], domain.edges[-1]) if domain.kind == "bins" else (domain.low, domain.high)
            assert float(low) <= min(values) <= max(values) <= float(high)


def test_an_unknown_example_names_those_there_are(tmp_path):
    refused = shown("privurn example pay.csv", tmp_path)
    assert refused.returncode == 2
    assert all(name in refused.stderr for name in ("incomes.csv", "people.csv", "people.yaml"))
    assert not any(tmp_path.iterdir())


@pytest.mark.usefixtures("few_simulated_tables")
@pytest.mark.parametrize(
    ("domain", "first"),
    [("--grid 0:100:5", "noisy-tree"), ("--categories 1,2,3", "perturbed-histogram"), ("--open-labels", "label-discovery")],
)
def test_a_plan_calls_that_the_default_which_a_release_makes(domain, first, tmp_path):
    answer = json.loads(shown(f"privurn plan --n 2000 {domain} --epsilon 1 --delta 1e-6 --json", tmp_path).stdout)
    named = [each["mechanism"] for each in answer["options"] if each["remark"].startswith("the default")]
    assert named == [first] == [answer["options"][0]["mechanism"]]
    assert answer["options"][0]["records"] == 2000
    (tmp_path / "few.csv").write_text("few\n" + "\n".join(["1", "2", "3", "1"] * 500) + "\n")
    release = shown(f"privurn release few.csv --column few {domain} --epsilon 1 --delta 1e-6 --json -o out", tmp_path)
    assert json.loads(release.stdout)["certificate"]["mechanism"]["name"] == first


def test_a_number_of_cells_alone_has_no_default(tmp_path):
    answer = json.loads(shown("privurn plan --n 2000 --cells 21 --epsilon 1 --delta 1e-6 --json", tmp_path).stdout)
    assert not any("the default" in each["remark"] for each in answer["options"])


# -- tables


def words_of(text):
    """Words and numbers, without the lines around them."""
    return Counter(FRAMES.sub(" ", text).split())


WORD = some.one_of(
    some.text("abcxyz-_'%", min_size=1, max_size=24), some.integers(0, 10**9).map("{:,}".format), some.just("beta[age]")
)
CELL = some.lists(WORD, max_size=6).map(" ".join)


@settings(max_examples=30)
@given(
    table=some.integers(1, 9).flatmap(
        lambda n: some.tuples(
            some.lists(CELL, min_size=n, max_size=n),
            some.lists(some.lists(CELL, min_size=n, max_size=n), min_size=1, max_size=3),
        )
    ),
    width=some.integers(60, 120),
)
def test_no_table_breaks_a_word_or_a_number(table, width):
    columns, rows = table
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setenv("COLUMNS", str(width))
        print_table("A title of some words that is longer than any of the terminals that are tried here, by far", columns, rows)
    assert max(map(cell_len, out.getvalue().splitlines())) <= width
    expected = sum((words_of(cell) for row in [columns, *rows] for cell in row), Counter())
    assert not expected - words_of(out.getvalue())


TABLES = [
    "privurn plan --n 50000 --grid 0:200000:1000 --epsilon 1 --delta 1e-6",
    "privurn plan --n 20000 --open-labels --epsilon 1 --delta 1e-6",
    "privurn ledger show incomes.csv.ledger",
    "privurn infer release --ask mean --ask 'P(50000<=x<100000)' --ask 'P(x>100000)' --seed 1",
    "privurn profile release",
    "privurn profile release --trade-off",
    "privurn account dirichlet-multinomial --n 1e6 --cells 100 --records 1e6 --epsilon 1 --delta 1e-6 --solve alpha",
    "privurn account compose release --delta 1e-5",
    "privurn compare few.csv --column few --grid 0:20:1 --epsilon 1 --delta 1e-6 --runs 3 --processes 1"
    " --mechanism dirichlet-multinomial --mechanism perturbed-histogram",
]


@pytest.mark.usefixtures("few_simulated_tables")
@pytest.mark.parametrize("line", TABLES)
def test_tables_fit_eighty_columns(line, tried):
    (tried.folder / "few.csv").write_text("few\n" + "\n".join(str(i * i % 21) for i in range(300)) + "\n")
    narrow, wide = (shown(line, tried.folder, columns=columns) for columns in (80, 400))
    assert narrow.returncode == wide.returncode == 0, narrow.stderr
    for text in narrow.stdout.splitlines():
        assert cell_len(text) <= 80 or " " not in text.strip(), text
    assert not words_of(wide.stdout) - words_of(narrow.stdout)


def test_a_terminal_of_no_columns_is_no_mistake(tried):
    line = "privurn ledger show incomes.csv.ledger"
    assert shown(line, tried.folder, columns=0).stdout == shown(line, tried.folder, columns=160).stdout


def test_help_is_folded_once(tmp_path):
    """A line ends where the next word does not fit, not where it ends in the source."""
    text = shown("privurn infer --help", tmp_path).stdout.partition("╭")[0]
    text += shown("privurn --help", tmp_path).stdout.rpartition("╯")[2]
    for one, after in pairwise(line.strip() for line in text.splitlines()):
        assert not one or not after or len(f"{one} {after.split()[0]}") > 78, one


# -- what is no release


NOTHING = {"empty": "certificate.json", "few.csv": "no release", "other.json": "no release", "nowhere": "there is no 'nowhere'"}


@pytest.mark.parametrize(("what", "words"), NOTHING.items())
def test_what_is_no_release_is_called_so(what, words, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "few.csv").write_text("few\n1\n")
    (tmp_path / "other.json").write_text(json.dumps({"name": "something"}))
    checked = shown(f"privurn verify {what}", tmp_path)
    assert checked.returncode == 1
    assert words in checked.stdout
    assert "Name the folder that privurn release" in checked.stdout
    for command in ("infer", "report", "profile", "account compose --delta 1e-6"):
        refused = shown(f"privurn {command} {what}", tmp_path)
        assert refused.returncode == 2, (command, refused.stderr)
        assert "release" in refused.stderr


def test_a_file_of_a_release_leads_to_its_folder(tried):
    checked = shown("privurn verify release/data.csv", tried.folder)
    assert checked.returncode == 1
    assert "not a file in it: 'release'" in checked.stdout


# -- quotes


def test_text_with_signs_is_quoted_and_everybody_is_told():
    [found] = parse_functionals(["P(income='>50K', town='Paris, Texas')"])
    assert [each.value for each in found.conditions] == [">50K", "Paris, Texas"]


@pytest.mark.parametrize("asked", ["P(income=>50K)", "P(income>50K)", "P(town=Paris, Texas)"])
def test_unquoted_text_is_refused_with_what_to_type(asked, tried):
    refused = shown(f"privurn infer release --ask {shlex.quote(asked)}", tried.folder)
    assert refused.returncode == 2
    assert """--ask "P(income='>50K')\"""" in refused.stderr


def test_help_of_infer_explains_quotes(tmp_path):
    text = " ".join(FRAMES.sub(" ", shown("privurn infer --help", tmp_path, columns=200).stdout).split())
    assert """--ask "P(income='>50K')\"""" in text
    assert "double quotes for the shell" in text
