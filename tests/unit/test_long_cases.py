"""The list of cases that are left to `make test-full` names tests that there are."""

from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_long_case_is_a_case_of_a_test():
    for line in (TESTS / "long_cases.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            file, _, case = line.partition("::")
            assert f"def {case.partition('[')[0]}(" in (TESTS / file).read_text(), line


def test_every_long_case_is_one_of_those_that_were_collected(long_cases_not_found):
    """A case that is called otherwise since would be run by `make test` again, and nobody would know why it takes longer."""
    assert not long_cases_not_found
