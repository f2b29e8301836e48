"""Shared by all tests."""

import subprocess
import sys

import pytest


@pytest.fixture
def privurn_command():
    """Run the command line as a person would; returns the finished process."""

    def run(*words, cwd=None, env=None, timeout=120):
        command = [sys.executable, "-m", "privurn", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=timeout, check=False)

    return run
