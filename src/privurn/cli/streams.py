"""Standard output and error that cannot spoil a command: what it has done by then is done, and may have been paid for."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

from privurn.errors import FormatError


class Stream:
    """A stream that drops what nobody reads any more (`| head`): the command ends with its own exit code all the same.

    Characters that it cannot encode are written as escapes. Where there is no room for what is `needed`, that is said.
    """

    def __init__(self, stream: TextIO, *, needed: bool = True) -> None:
        self._stream, self._needed = stream, needed
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """As a text stream does."""
        self._tried(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """As a text stream does."""
        self._tried(self._stream.flush)

    def _tried(self, act: Callable[[], Any]) -> None:
        try:
            act()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())  # what waits in the buffer goes there, too
            if self._needed and not isinstance(error, BrokenPipeError):
                raise FormatError(
                    f"the output cannot be written ({error.strerror}).",
                    hint="Files that were named with -o are complete; send the output elsewhere",
                ) from None


@contextmanager
def kept_streams() -> Iterator[None]:
    """Standard output and error as such streams; a closed one is nobody's."""
    import sys

    open_ones = [stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr)]  # noqa: SIM115
    out, notes = Stream(open_ones[0]), Stream(open_ones[1], needed=False)
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, notes)):
        yield
