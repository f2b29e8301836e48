"""What `privurn infer` says about whole tables: figures and regressions from noisy marginals."""

from functools import partial
from typing import TYPE_CHECKING, Any

from privurn.cli.console import note, print_json, print_table
from privurn.cli.infer_answers import (
    MOST_ROWS,
    Asked,
    cells_of,
    common_json,
    ends,
    print_files,
    print_left_out,
    unbiased_of,
    warn,
    write_files,
    write_folder,
)
from privurn.errors import FormatError

if TYPE_CHECKING:
    from privurn.inference.tables.posterior import TablePosterior

WHAT = "whole tables"
OPTIONS = ("sample", "within")
PICTURES = ("intervals",)


def model_of(given: Any, asked: Asked) -> Any:
    """The regression, if one was typed; else where in their bins records lie."""
    from privurn.inference.counts.places import ASSUMED
    from privurn.inference.tables.formula import regression_from_text
    from privurn.inference.tables.model import TableModel

    asked.pictures(PICTURES)
    asked.synthetic()
    text, within = asked.typed["model"], asked.typed["within"]
    if within not in ASSUMED:
        raise FormatError("where in its bin a record lies is not known.", hint="--within uniform, whole or midpoint")
    if text is None:
        return TableModel(within=within)
    if within != "uniform":
        raise FormatError("a regression is about the middles of bins.", hint="Leave --within out")
    return regression_from_text(text)


def finish(given: Any, found: "TablePosterior", asked: Asked) -> None:
    """Warn, write, show."""
    warn(found)
    said = {str(each) for each in found.cautions()}
    for problem in found.problems():
        if problem not in said:
            note(f"note: {problem}")
    figures = [(found.plot(kind=kind), target) for kind, target in asked.pictures(PICTURES).items()]
    records = partial(found.synthetic, records=asked.records, seed=asked.seed)
    written = write_files(found, asked, figures=figures, synthetic=records)
    written |= write_folder(found, asked, made_from=found.table.mechanism.name)
    summaries = found.summary()
    if asked.json:
        rows = [{**one.to_json(), "unexplained": each.unexplained} for one, each in zip(summaries, found.figures, strict=True)]
        print_json({"model": "tables", **common_json(found, rows), "how": found.attributes, "files": written, **asked.extra})
        return
    title = f"Of the {found.of}: model-assisted estimates (n0 = {found.size:,.0f}, misfit {found.fit.misfit:.3f})"
    placed = any(each.lowest is not None for each in summaries)
    columns = ["", "estimate", "sd", f"{asked.level:.0%} interval", "unbiased (+- its error)", "unexplained"]
    columns += [f"{asked.level:.0%} wherever in their bins"] if placed else []
    rows_shown = [
        [
            *cells_of(one),
            unbiased_of(one),
            f"{each.unexplained:.1%}",
            *([ends(one)] if placed else []),
        ]
        for one, each in zip(summaries[:MOST_ROWS], found.figures, strict=False)
    ]
    print_table(title, columns, rows_shown)
    print_left_out(summaries)
    print_files(written)
