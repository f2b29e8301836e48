"""The documentation is true: its links lead somewhere, its Python runs, its commands work."""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spark_session

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{name(page)} links to {target}"


SLOW = {
    f"docs/how-to/{page}.md"
    for page in (
        "accounting",
        "audit",
        "compare",
        "infer",
        "infer-mixture",
        "infer-statistics",
        "privatise",
        "release",
        "report",
        "spark",
        "statistics",
        "tables",
    )
} | {"docs/what-the-papers-guarantee.md"}
"""Pages whose examples take a quarter of a minute or more."""
WITH_EXAMPLES = [
    pytest.param(page, marks=[pytest.mark.long] if name(page) in SLOW else [], id=name(page))
    for page in PAGES
    if BLOCK.search(page.read_text())
]


PLAIN = re.compile(r"privurn [^|&;<>*`$\\\n]*")
"""A command that needs no shell, so no process of its own either; on slow pages that would gain little."""


@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_examples_run(page, tmp_path, privurn_command):
    """Commands and code of a page, in order, in an empty folder; the Python blocks share their names.

    Only a page that names a file of the repository's, or its folder of the papers' statements, finds that there.
    """
    if name(page) == "docs/how-to/spark.md" and (reason := spark_session.why_not()):
        pytest.skip(reason)
    here = tmp_path / "here"
    here.mkdir()
    for file in set(re.findall(r"python (examples/\w+\.py)", page.read_text())):
        (here / file).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / file, here / file)
    if "from papers." in page.read_text():
        shutil.copytree(ROOT / "papers", here / "papers")
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool, words in {"python": "", "privurn": "-m privurn"}.items():
        (tools / tool).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (tools / tool).chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "MPLBACKEND": "Agg"}
    python = ""
    for language, text in BLOCK.findall(page.read_text()):
        if language == "python":
            python += text
            continue
        for line in text.splitlines():
            if line.startswith("$ "):
                if PLAIN.fullmatch(line[2:]) and name(page) not in SLOW:
                    done = privurn_command(*shlex.split(line[2:], comments=True)[1:], cwd=here)
                else:
                    done = subprocess.run(line[2:], shell=True, cwd=here, env=env, capture_output=True, text=True, check=False)
                announced = re.search(r"# exits with (\d+)", line)
                expected = int(announced[1]) if announced else 0
                assert done.returncode == expected, f"{line}\n{done.stdout}\n{done.stderr}"
    if python:
        done = subprocess.run([sys.executable, "-c", python], cwd=here, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_readme_needs_nothing_but_an_installation():
    """All of its blocks are run by the test above, in an empty folder, but for the line that installs."""
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert {language for language, _ in blocks} == {"sh", "console", "python"}
    assert all(line.startswith("pip install ") for language, block in blocks if language == "sh" for line in block.splitlines())
    assert "examples/" not in text


@pytest.mark.long
def test_the_demo_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "CONFIDENTIAL" in done.stdout
    assert "valid" in done.stdout


def test_the_commands_of_the_demo_work_one_after_the_other(tmp_path, monkeypatch, privurn_command, capsys):
    """Without a process for each."""
    demo, said = runpy.run_path(str(ROOT / "examples" / "demo.py")), []

    def privurn(words):
        done = privurn_command(*shlex.split(words), cwd=demo["FOLDER"])
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)

    monkeypatch.chdir(tmp_path)
    demo["main"].__globals__["privurn"] = privurn
    demo["main"]()
    assert "by an urn" in "".join(said) + capsys.readouterr().out
    assert any("valid" in each for each in said)


def rows_of(page: Path, heading: str) -> set[str]:
    """The first cells of the table that begins with a heading."""
    table = re.search(rf"^\| {heading} \|.*\n((?:\|.*\n)+)", page.read_text(), re.MULTILINE)
    return {line.split("|")[1].strip() for line in table[1].splitlines()[1:]}


def test_the_page_on_comparing_has_every_way_that_is_compared():
    """In the list of all ways, and the example's among the figures: what can release it at its guarantee."""
    from privurn.mechanisms.registry import mechanisms
    from privurn.privacy.profile import Guarantee
    from privurn.reports.comparison.candidates import candidates, ways

    page = ROOT / "docs" / "how-to" / "compare.md"
    listed = rows_of(page, "way \\| as a release")
    assert set(ways()) <= listed
    assert "..., 41 cells" in listed
    shown = {row.removesuffix(", the default") for row in rows_of(page, "way \\| releases")}
    able, refused = candidates(n=50_000, cells=201, guarantee=Guarantee(epsilon=1.0, delta=1e-6), coarser=(5, 41))
    assert {each.name for each in able} == shown - {"plain sample, not private"}
    assert {each.name for each in refused} == {"dirichlet-process", "pitman-yor"}
    assert all(kind.coarser for name, kind in mechanisms().items() if f"{name}, 41 cells" in shown)


def test_design_names_every_module():
    source = ROOT / "src" / "privurn"
    text = (ROOT / "docs" / "design.md").read_text()
    for path in source.iterdir():
        module = path.name.removesuffix(".py")
        if not module.startswith("__") and path.suffix in ("", ".py") and module != "py.typed":
            assert f"`{module}" in text, f"docs/design.md does not mention {module}"


def test_nothing_names_a_registry_or_a_machine():
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    for file in files:
        path = ROOT / file
        if path.suffix in (".md", ".py", ".toml", ".txt", ".yaml", "") and path.is_file():
            words = path.read_text(errors="ignore")
            assert not re.search(r"https?://[^ )\"']*(py" + r"pi|python" + r"hosted|npm" + r"js)", words), file
