"""What `privurn compare` says about whole tables. Confidential."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from privurn.cli.console import print_table, print_text

if TYPE_CHECKING:
    from privurn.domain import TableDomain
    from privurn.reports.comparison.table_comparison import TableComparison

RUNS = 5
"""Simulated releases where no number is typed: each is a fit, which may take seconds."""


def table_of(declared: Any, mechanisms: list[str] | None) -> "TableDomain | None":
    """The columns side by side, where they are too many to be taken jointly or a mechanism for whole tables is named."""
    from collections.abc import Mapping

    from privurn.domain import JointDomain, TableDomain, several_columns
    from privurn.mechanisms.registry import recipes

    domain = several_columns(declared) if isinstance(declared, Mapping) else declared
    if isinstance(domain, TableDomain):
        return domain
    known = recipes()
    named = bool(mechanisms) and all(name in known and known[name].whole_tables for name in mechanisms or ())
    return TableDomain(domain.columns) if named and isinstance(domain, JointDomain) else None


def compare_table(
    file: str,
    domain: "TableDomain",
    *,
    epsilon: float,
    delta: float,
    runs: int | None,
    seed: int,
    progress: Callable[[int, int], None],
) -> "TableComparison":
    """Simulated releases of a whole table beside two floors."""
    from privurn.privacy.profile import Guarantee
    from privurn.reports.comparison.table_comparison import compare_tables

    return compare_tables(
        file,
        domain=domain,
        guarantee=Guarantee(epsilon=epsilon, delta=delta),
        runs=RUNS if runs is None else runs,
        seed=seed,
        progress=progress,
    )


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
