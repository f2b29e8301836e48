"""Text that a spreadsheet would run as a formula, marked in CSV files so that it is shown instead.

A cell that begins with = + - @ (also in their wide forms, and after blanks) or with a tab or a line break is written behind one
apostrophe. Numbers such as -5 run nothing and are left alone. The mark can be taken off again: text that already begins with
apostrophes before such a cell gets one more, so no two texts are written alike.
"""

import re
from typing import Any

WIDE_FORMS = "\uff1d\uff0b\uff0d\uff20"
WOULD_RUN = rf"[ \t\r\n\v\f]*[=+\-@{WIDE_FORMS}]|[\t\r\n]"
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


def would_run(text: str) -> bool:
    """Whether a spreadsheet may run this, apostrophes before it aside."""
    bare = text.lstrip("'")
    return re.match(WOULD_RUN, bare) is not None and re.fullmatch(NUMBER, bare) is None


def marked(text: str) -> str:
    """Text as it is written.

    >>> marked("=1+1"), marked("-5"), marked("'=1"), marked("north")
    ("'=1+1", '-5', "''=1", 'north')
    """
    return f"'{text}" if would_run(text) else text


def unmarked(text: str) -> str:
    """Text as it was: the inverse of `marked`."""
    return text[1:] if text.startswith("'") and would_run(text) else text


def unmarked_text(column: Any) -> Any:
    """`unmarked` for an Arrow array of text."""
    import pyarrow.compute as pc

    bare = pc.utf8_ltrim(column, characters="'")
    runs = pc.match_substring_regex(bare, pattern=rf"\A(?:{WOULD_RUN})")
    number = pc.match_substring_regex(bare, pattern=rf"\A(?:{NUMBER})\z")
    mark = pc.and_(pc.starts_with(column, pattern="'"), pc.and_not(runs, number))
    return pc.if_else(mark, pc.utf8_slice_codeunits(column, start=1), column)
