"""What `privurn compare` says about whole tables. Confidential."""

from typing import TYPE_CHECKING

from privurn.cli.console import print_table, print_text

if TYPE_CHECKING:
    from privurn.reports.comparison.table_comparison import TableComparison


def report(found: "TableComparison") -> None:
    """A row for each figure, a column for each table."""
    from privurn.reports.comparison.table_comparison import FIGURES

    names = list(found.medians)
    title = (
        f"CONFIDENTIAL: {found.n:,} records, epsilon = {found.guarantee.epsilon:g}, delta = {found.guarantee.delta:g}; "
        f"medians of {found.runs} runs"
    )
    shown = [key for key in FIGURES if key in found.medians[names[0]]]
    rows = [[FIGURES[key], *(f"{found.medians[name][key]:.4g}" for name in names)] for key in shown]
    print_table(title, ["", *names], rows)
    print_text(
        "Total variation of all marginals of so many columns; a logistic regression that guesses which table a record is from; "
        f"one that learns the most frequent value of {found.response!r} from each table, tested on a fifth of the records."
    )
