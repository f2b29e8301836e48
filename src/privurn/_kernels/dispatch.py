"""Functions that behave as the types of their first arguments say, in compiled code and in plain Python alike.

A channel, a kernel, a mixing, a model of latent records and its noise are records: NamedTuples of numbers and arrays.
`generic` declares what a loop may ask of a record; `implement` says how one type of record answers. numba sees an `overload`,
so the loop is compiled once for each combination of records and costs nothing at run time; with numba switched off the same
table is looked up in Python.

Only entry points (`_compile.compiled`) are cached on disk, and only for records of this package: numba's cache notices no
change in a user's file. Everything below an entry point is `inner` and is compiled into it.
"""

from functools import cache, wraps

import numba
from numba.extending import overload, register_jitable

from privurn._kernels._compile import OPTIONS


def inner(function, **options):
    """A part of a kernel: compiled into those that call it, and plain Python where Python calls it.

    numba.njit would compile a way in from Python as well, which takes about as long as the part itself.
    """
    register_jitable(**OPTIONS, **options)(function)
    function.py_func = function  # as entry points have it
    return function


def inlined(function):
    """The same for what is called for every record."""
    return inner(function, forceinline=True)


def generic(*, on, default=False, often=False):
    """Declare a function that is chosen by the types of its first `on` arguments.

    With `default` the body is what it does for all other types; without it, other types are an error, and the declaration is a
    signature with its docstring. `often` says that it is called for every record: it is inlined then, which makes loops faster
    and compiling slower.
    """

    def declare(body):
        table = {}

        def found(classes):
            chosen = table.get(classes, body if default else None)
            if chosen is None:
                named = ", ".join(each.__name__ for each in classes)
                raise TypeError(
                    f"{body.__name__} has no implementation for {named}. A record of one's own registers one with "
                    f"@implement({body.__name__}, {named}): docs/design-mixtures.md and docs/design-noisy-statistics.md."
                )
            return chosen

        @wraps(body)
        def call(*arguments):
            return found(tuple(type(each) for each in arguments[:on]))(*arguments)

        @overload(call, strict=False, jit_options={"error_model": "numpy", "forceinline": often})
        def choose(*arguments):  # what is no record has only its type in compiled code
            return found(tuple(getattr(each, "instance_class", type(each)) for each in arguments[:on]))

        call.table = table
        return call

    return declare


def implement(function, *records):
    """Say what `function` does for records of these types: a decorator."""

    def register(body):
        function.table[records] = body
        return body

    return register


def entry(function, *records):
    """The compiled entry point for these records; compiled afresh in this process where one of them is a user's own."""
    if all(type(each).__module__.startswith("privurn.") for each in records) or not hasattr(function, "py_func"):
        return function
    return _uncached(function)


@cache
def _uncached(function):
    return numba.njit(**OPTIONS)(function.py_func)
