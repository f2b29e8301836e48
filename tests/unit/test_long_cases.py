"""The list of cases that are left to `make test-full` names tests that there are."""

from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_long_case_is_a_case_of_a_test():
    for line in (TESTS / "long_cases.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            file, _, case = line.partition("::")
            assert f"def {case.partition('[')[0]}(" in (TESTS / file).read_text(), line
