"""One self-contained HTML page about a saved release: public, or with the confidential data beside it and marked so.

The page loads nothing and runs nothing: its style and pictures are inside it, and a content policy forbids the rest.
"""

from privurn.reports.html.page import report

__all__ = ["report"]
