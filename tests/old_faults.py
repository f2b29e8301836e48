"""Kernels with an old fault put back, for tests that show that a check would have found it."""

import inspect
from types import ModuleType

FOLLOWING = (
    ("else int(math.exp(numbers[2]))", "else max(1, min(int(math.exp(numbers[2])), 1 + 2 * n // tuning.jumps))"),
    ("longer = n != before and block <= 1 + 2 * n // tuning.jumps", "longer = n != before"),
)
"""Of sums/chain.py: the largest jump was no larger than the n of the moment pays for."""


def with_fault(module, *changes, **others):
    """A kernel's module compiled again with something wrong in it, or with `others` in place of what it imports."""
    source = inspect.getsource(module)
    for old, new in changes:
        assert source.count(old) == 1
        source = source.replace(old, new)
    made = ModuleType(module.__name__)
    exec(compile(source, "<fault>", "exec"), vars(made))
    vars(made).update(others)
    return made
