"""What `privurn infer` shows beside a posterior: another release (--against), other priors (--sensitivity), a --check of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from privurn.cli.console import print_table, print_words
from privurn.cli.infer_answers import MOST_ROWS, cells_of, interval, short, unbiased_of, warn_of
from privurn.errors import NotMixed

if TYPE_CHECKING:
    from privurn.errors import InferenceWarning
    from privurn.inference.draws import Summary
    from privurn.inference.posterior import Posterior
    from privurn.inference.predictive import PredictiveCheck
    from privurn.inference.published import Published

Infer = Callable[["Published", Any], "Posterior"]


@dataclass(frozen=True)
class Beside:
    """Rows of the contrast with another release, summaries by prior, and the predictive check."""

    against: "tuple[Summary, ...]" = ()
    priors: "Mapping[str, tuple[Summary, ...]]" = field(default_factory=dict)
    check: "PredictiveCheck | None" = None
    cautions: "Sequence[tuple[str, InferenceWarning]]" = ()

    def warn(self) -> None:
        """What must be known of the other release, and which of the other priors' chains have not mixed."""
        for where, each in self.cautions:
            warn_of(each, where=f"{where}: ")

    def to_json(self) -> dict[str, Any]:
        """What was asked for."""
        found: dict[str, Any] = {"against": [each.to_json() for each in self.against]} if self.against else {}
        told = {words: [each.to_json() for each in rows] for words, rows in self.priors.items()}
        checked = {} if self.check is None else {"check": self.check.to_json()}
        warned = {"warnings_beside": [f"{where}: {each}" for where, each in self.cautions]} if self.cautions else {}
        return found | ({"sensitivity": told} if told else {}) | checked | warned

    def print(self, *, level: float) -> None:
        """A table each."""
        if self.against:
            columns = ["", "mean", "sd", f"{level:.0%} interval", "unbiased (+- its error)"]
            rows = [[*cells_of(each), unbiased_of(each)] for each in self.against[:MOST_ROWS]]
            print_table("The first release against the other", columns, rows)
        if self.priors:
            columns = ["", *(f"{words}: mean, {level:.0%} interval" for words in self.priors)]
            listed = [{each.name: each for each in rows} for rows in self.priors.values()]
            names = list(listed[0])[:MOST_ROWS]
            shown = [[name, *(_short(each.get(name)) for each in listed)] for name in names]
            print_table("Under other priors", columns, shown)
        if self.check is not None:
            print_words(str(self.check))


def _short(each: "Summary | None") -> str:
    return "-" if each is None else f"{short(each.mean)}, {interval(each)}"


def beside(
    found: "Posterior",
    given: "Published",
    model: Any,
    *,
    other: "tuple[Published, Any] | None",
    priors: bool,
    check: bool,
    infer: Infer,
) -> Beside:
    """What was asked for beside a posterior; `other`: another release and its model."""
    from privurn.inference.contrast import contrast, other_priors

    second = None if other is None else infer(*other)
    rows = () if second is None else contrast(found, second, level=found.level)
    told = [] if second is None else [("the other release", each) for each in second.cautions()]
    checked = found.predictive_check() if check else None
    if not priors:
        return Beside(rows, check=checked, cautions=told)
    others = {words: infer(given, each) for words, each in other_priors(given, model).items()}
    for words, posterior in others.items():
        told += [(f"prior {words}", each) for each in posterior.cautions() if isinstance(each, NotMixed)]
    summaries = {words: each.summary() for words, each in others.items()}
    return Beside(rows, {"as asked": found.summary(), **summaries}, checked, told)
