"""Shared by the end-to-end tests."""

import pytest


@pytest.fixture
def command(privurn_command):
    """The command line within this process, in the present folder."""
    return privurn_command
