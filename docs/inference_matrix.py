"""What can be inferred from what: every name of the registry beside every model, as docs/reference/inference.md has it.

python -m docs.inference_matrix > docs/reference/inference.md
"""

from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

from privurn.inference.mixtures.reading import ONE_OUTPUT
from privurn.mechanisms.likelihood import Kind, WithoutEstimate
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.registry import CHANNELS, MECHANISMS, STATISTICS, released_by

MODELS: dict[str, Kind] = {
    "CountModel": "counts",
    "PolyaTree": "tree",
    "TableModel": "table",
    "LinearRegression": "table",
    "LogisticRegression": "table",
    "PoissonRegression": "table",
    "Mixture": "records",
    "MixtureModel": "records",
    "SumModel": "sums",
}
"""Models, and the kind of likelihood that each is for."""

GROUPS = {"Mechanisms on counts": MECHANISMS, "Channels on every record": CHANNELS, "Noisy sums": STATISTICS}
YES, IN_BINS, OF_CELLS, NO = "yes", "in equal bins", "of cells", "no"

INTRODUCTION = """# What can be inferred from what

`privurn.infer` asks a mechanism for one thing: how likely what it published is given the confidential data. A model is for one
kind of likelihood: `CountModel` for counts of cells, `PolyaTree` for noisy trees over them, `TableModel` and regressions for
noisy marginals of a whole table, `Mixture` for one output of each record, `SumModel` for noisy sums. Left out, the model is the
one that fits. A `MixtureModel` states the channel itself, and a model of one's own ([how](../how-to/add-a-model.md)) is for
noisy sums. Where a table says no, `infer` says in one sentence why not.

In equal bins: counts of one column in bins of equal width, n public, are one output of all records, which a `Mixture` can be
behind as well; noisy counts if they are published themselves, with noise on whole numbers.

Of cells: one release of noisy counts, or of records where n is public, is a tree of which only the cells were measured. It is
the default of more than 32 cells, or of more than 16 in an order.

This page is made from the registry by `python -m docs.inference_matrix`.
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What each model makes of the releases of one name, and what is known of their likelihood."""

    name: str
    answers: dict[str, str]
    known: str


def matrix() -> list[Row]:
    """A row for each name of the registry."""
    return [_row(name) for entries in GROUPS.values() for name in entries]


def _row(name: str) -> Row:
    kind = released_by(name)
    if kind.likelihood is Mechanism.likelihood:
        return Row(name=name, answers=dict.fromkeys(MODELS, NO), known=f"None: {kind.why_not}.")
    answers = {model: YES if wanted == kind.inferred_from else NO for model, wanted in MODELS.items()}
    terms: Any = get_type_hints(kind.likelihood)["return"]
    listed = get_args(terms) or [terms]
    if kind.inferred_from == "counts" and set(listed) & set(ONE_OUTPUT):
        answers["Mixture"] = IN_BINS
    if kind.inferred_from == "counts" and any(each.as_leaves is not WithoutEstimate.as_leaves for each in listed):
        answers["PolyaTree"] = OF_CELLS
    return Row(name=name, answers=answers, known=str(kind.likelihood.__doc__).splitlines()[0])


def page() -> str:
    """The page, in Markdown."""
    rows, lines = {row.name: row for row in matrix()}, [INTRODUCTION]
    for group, entries in GROUPS.items():
        named = "".join(f" `{model}` |" for model in MODELS)
        lines.append(f"## {group}\n\n| released by |{named} likelihood |\n|---|{'---|' * (len(MODELS) + 1)}")
        for name in entries:
            row = rows[name]
            lines.append(f"| `{name}` | {' | '.join(row.answers.values())} | {row.known} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
