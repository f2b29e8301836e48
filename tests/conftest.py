"""Shared by all tests."""

import subprocess
import sys

import pytest
from hypothesis import settings

# `make test` tries the same examples every time, so that a failure is the change's; `make test-full` looks for new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("exploring")
settings.load_profile("repeatable")


@pytest.fixture
def privurn_command():
    """Run the command line as a person would; returns the finished process."""

    def run(*words, cwd=None, env=None, timeout=120):
        command = [sys.executable, "-m", "privurn", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=timeout, check=False)

    return run
