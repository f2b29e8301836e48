"""Shared by all tests."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # for the tests of every folder

from filthy_memory import filthy_empty

# `make test` tries the same examples every time, so that a failure is the change's; `make test-full` looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("exploring", deadline=None)
settings.load_profile("repeatable")


def pytest_configure(config):
    """Made-up tables are often mostly clamped or missing: what the custodian is told of that fails the tests of it alone."""
    config.addinivalue_line("filterwarnings", "ignore::privurn.errors.ConfidentialWarning")


@pytest.fixture
def privurn_command(monkeypatch, capsys):
    """Run the command line; returns what it printed and its exit code.

    Within this process, where starting Python anew would take longer than the work; with an environment of its own as a person
    would.
    """

    def run(*words, cwd=None, env=None, timeout=120):
        if env is not None:
            command = [sys.executable, "-m", "privurn", *map(str, words)]
            return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=timeout, check=False)
        from privurn.cli.main import run as main

        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["privurn", *map(str, words)])
            if cwd is not None:
                patch.chdir(cwd)
            with pytest.raises(SystemExit) as stopped:
                main()
        shown = capsys.readouterr()
        return SimpleNamespace(returncode=stopped.value.code or 0, stdout=shown.out, stderr=shown.err)

    return run


@pytest.fixture
def filthy_memory():
    """A context in which new arrays are full of numbers that show wherever interpreted code reads one before it is written."""

    @contextmanager
    def context():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(np, "empty", filthy_empty)
            yield

    return context
