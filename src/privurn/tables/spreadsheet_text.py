"""Text that a spreadsheet would run as a formula, marked in CSV files so that it is shown instead.

A cell that begins with = + - @ (also in their wide forms, and after blanks) or with a tab or a line break is written behind one
apostrophe. Numbers such as -5 run nothing and are left alone. The mark can be taken off again: text that already begins with
apostrophes before such a cell gets one more, so no two texts are written alike.
"""

import re

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


def unmarked_sql(value: str) -> str:
    """`unmarked` for a column of text in SQL."""
    bare = f"ltrim({value}, '''')"
    runs = f"regexp_matches({bare}, '^({WOULD_RUN})') AND NOT regexp_full_match({bare}, '{NUMBER}')"
    return f"CASE WHEN starts_with({value}, '''') AND {runs} THEN substr({value}, 2) ELSE {value} END"
