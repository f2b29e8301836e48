"""The documentation is true: its links lead somewhere, its Python runs, its commands work."""

import os
import re
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
        "tables",
    )
}
"""Pages whose examples take a quarter of a minute or more."""
WITH_EXAMPLES = [
    pytest.param(page, marks=[pytest.mark.long] if name(page) in SLOW else [], id=name(page))
    for page in PAGES
    if BLOCK.search(page.read_text())
]


@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_examples_run(page, tmp_path):
    """Commands and code of a page, in order, in an empty folder; the Python blocks share their names."""
    if name(page) == "docs/how-to/spark.md" and (reason := spark_session.why_not()):
        pytest.skip(reason)
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
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
                done = subprocess.run(line[2:], shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
                announced = re.search(r"# exits with (\d+)", line)
                expected = int(announced[1]) if announced else 0
                assert done.returncode == expected, f"{line}\n{done.stdout}\n{done.stderr}"
    if python:
        done = subprocess.run(
            [sys.executable, "-c", python], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_the_demo_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "CONFIDENTIAL" in done.stdout
    assert "valid" in done.stdout


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
