"""Shared by the end-to-end tests."""

import sys
from types import SimpleNamespace

import pytest


@pytest.fixture
def command(monkeypatch, capsys):
    """The command line within this process: starting Python anew takes longer than the work."""
    from privurn.cli.main import run

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["privurn", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            run()
        shown = capsys.readouterr()
        return SimpleNamespace(returncode=stopped.value.code, stdout=shown.out, stderr=shown.err)

    return call
