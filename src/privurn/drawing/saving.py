"""The file that a picture goes to."""

from pathlib import Path
from typing import TYPE_CHECKING

from privurn.errors import FormatError
from privurn.extras import need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")


def save(figure: "Figure", path: str | Path) -> Path:
    """Write a figure as PNG, SVG or PDF, by the ending of the name; the same figure gives the same bytes."""
    from io import BytesIO

    from matplotlib import rc_context

    target = Path(path)
    suffix = check_suffix(target)
    undated = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    buffer = BytesIO()  # drawn in full before the file is touched
    with rc_context({"svg.hashsalt": "privurn"}):
        figure.savefig(buffer, format=suffix, dpi=150, metadata=undated[suffix])
    try:
        target.write_bytes(buffer.getvalue())
    except OSError:
        raise FormatError(f"the picture {str(target)!r} cannot be written.", hint="Does its folder exist?") from None
    return target


def check_suffix(path: str | Path) -> str:
    """The format that a picture's name asks for; checked, like what it takes to draw one, before any work is done."""
    need("plots", what="pictures")
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise FormatError(f"the kind of picture {str(path)!r} is not known.", hint="Names must end in .png, .svg or .pdf")
    return suffix
