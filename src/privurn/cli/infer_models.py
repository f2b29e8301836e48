"""What was typed about a model, as the objects that `infer` takes."""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from privurn.cli.parsing import whole_number
from privurn.errors import FormatError, ModelError

if TYPE_CHECKING:
    from privurn.inference.counts.model import CountModel
    from privurn.inference.mixtures.mixings import Mixing
    from privurn.inference.published import Published
    from privurn.inference.size import SizePrior
    from privurn.inference.sums.fit import SumModel
    from privurn.inference.sums.logistic_model import LogisticPrior
    from privurn.inference.sums.regression_model import RegressionPrior
    from privurn.mechanisms.sums.statistic import NoisyStatistics

    P = TypeVar("P", RegressionPrior, LogisticPrior)

MIXINGS = ("dirichlet-process", "pitman-yor", "finite")
COMPONENTS, DISCOUNT = 10, 0.25


REGRESSIONS = ("linear", "logistic", "poisson")


def check_model(name: str, given: "Published") -> None:
    """A model that is for what was published; which there are is told where it is not."""
    known = _models(given)
    if name in known or (given.kind == "counts" and name == "table"):
        return
    if given.kind == "tables" and (set(name) & set(":~") or name in REGRESSIONS):
        return  # what is wrong with a formula is told where it is read
    raise FormatError(
        f"the model {name!r} is not for {given.words}, which were published.",
        hint=f"--model {' or '.join(map(_quoted, known))}; or leave it out",
    )


def _models(given: "Published") -> list[str]:
    """How the models are called that can be behind published numbers; where none can, the mechanism says why not."""
    from privurn.inference.counts.released import Observed
    from privurn.inference.mixtures.reading import one_output
    from privurn.inference.trees.cells import cells_as_tree
    from privurn.mechanisms.sums.statistic import NoisyStatistics

    numbers = given.numbers
    if given.kind == "tables":
        return [f"{family}: FORMULA" for family in REGRESSIONS]
    if isinstance(numbers, NoisyStatistics):
        return [numbers.model]
    if not isinstance(numbers, Observed) or given.kind != "counts":
        return [given.kind]
    term, domain = numbers.term, numbers.domain
    found = ["counts"]
    if domain is not None and cells_as_tree(term, domain, n=numbers.n) is not None:
        found.append("tree")
    try:
        one_output(numbers)
    except ModelError:
        return found
    return [*found, "mixture"]


def _quoted(name: str) -> str:
    return f"'{name}'" if " " in name else name


def count_model(prior: list[str] | None, prior_n: str | None, within: Any) -> "CountModel":
    """flat, mechanism, or a number for each cell."""
    from privurn.inference.counts.model import CountModel

    if not prior:
        return CountModel(size=prior_of_size(prior_n), within=within)
    words = prior
    value: Any = words[0] if words[0] in ("flat", "mechanism") else _finite(words[0])
    if len(words) > 1 or (isinstance(value, float) and not value > 0.0):
        raise FormatError(
            f"the prior {' '.join(words)!r} is not understood.", hint="--prior flat, --prior mechanism, or --prior 0.5"
        )
    return CountModel(prior=value, size=prior_of_size(prior_n), within=within)


def sum_model(statistics: "NoisyStatistics", prior: list[str] | None, prior_n: str | None, moves: Any) -> "SumModel":
    """Numbers of the prior by name; `unit` for 1 everywhere where it would follow the bounds."""
    from privurn.inference.sums.fit import SumModel, records_model

    if moves not in ("auto", "interwoven", "centred", "limit"):
        raise FormatError(f"the moves {moves!r} are not known.", hint="--moves auto, interwoven, centred or limit")
    made = records_model(statistics)
    found: Any = None
    if hasattr(made, "prior_numbers"):
        usual = {name: float(getattr(made, field)) for name, field in made.prior_numbers.items()}
        found = tuple(_pair(prior, statistics.model, usual).values())
    elif hasattr(made, "prior"):
        found = _changed(made.prior, prior)
    elif prior:
        raise FormatError(f"the model {statistics.model} states its own prior.", hint="Leave --prior out")
    size = prior_of_size(prior_n)
    if size is not None and statistics.n is not None:
        raise FormatError("the number of records is public: it has no prior.", hint="Leave --prior-n out")
    return SumModel(prior=found, size=size, moves=moves)


def _pair(given: list[str] | None, model: str, usual: Mapping[str, float]) -> dict[str, float]:
    """Positive numbers by name."""
    found = dict(usual)
    for each in given or []:
        name, _, text = each.partition("=")
        name = name.replace("-", "_")
        if name not in found:
            raise FormatError(
                f"the prior of the model {model} has no number {name!r}.",
                hint=" ".join(f"--prior {key}={value:g}" for key, value in usual.items()),
            )
        found[name] = _number(each, text)
        if found[name] <= 0.0:
            raise FormatError(f"the prior {each!r} must be positive.", hint=f"For example --prior {name}=1")
    return found


def _changed(prior: "P", given: list[str] | None) -> "P":
    """The prior, or that of its kind with ones everywhere, with single numbers changed by name."""
    words = list(given or [])
    if "unit" in words:
        words.remove("unit")
        prior = type(prior)()
    known = [each.name for each in fields(prior)]
    for each in words:
        name, _, text = each.partition("=")
        name = name.replace("-", "_")
        if name not in known:
            raise FormatError(f"the prior has no number {name!r}.", hint=f"unit, or one of: {', '.join(known)}")
        prior = replace(prior, **{name: _number(each, text)})
    return prior


def prior_of_size(text: str | None) -> "SizePrior | None":
    """A prior of n, where one was typed."""
    from privurn.inference.size import SizePrior

    if text is None:
        return None
    first, colon, second = text.partition(":")
    if first == "poisson" and colon:
        return SizePrior(kind="poisson", mean=_number(text, second))
    if not colon:
        raise FormatError(f"the prior {text!r} of n is not understood.", hint="--prior-n 500:2000 or --prior-n poisson:1000")
    return SizePrior(lower=whole_number(first), upper=whole_number(second))


def mixing_law(name: str, strength: str, discount: float | None, components: int | None) -> "Mixing":
    """The law of the mixing measure."""
    from privurn.inference.mixtures.mixings import DirichletProcess, FiniteDirichlet, GammaPrior, PitmanYorProcess

    if name not in MIXINGS:
        raise FormatError(f"the mixing {name!r} is not known.", hint=", ".join(MIXINGS))
    if discount is not None and name != "pitman-yor":
        raise FormatError("only the Pitman-Yor process has a discount.", hint="--mixing pitman-yor --discount 0.25")
    if components is not None and name != "finite":
        raise FormatError("only the finite mixture has a number of components.", hint="--mixing finite --components 10")
    kind, *numbers = strength.split(":")
    values = [_finite(each) for each in (numbers if kind == "gamma" else [strength])]
    if len(values) != (2 if kind == "gamma" else 1) or any(math.isnan(each) for each in values):
        raise FormatError(f"the strength {strength!r} is not understood.", hint="--strength 1 or --strength gamma:2:2")
    if kind == "gamma":
        if name != "dirichlet-process":
            raise FormatError("only the Dirichlet process takes a prior on its strength.", hint="--strength 1")
        return DirichletProcess(strength=GammaPrior(shape=values[0], rate=values[1]))
    if name == "pitman-yor":
        return PitmanYorProcess(discount=DISCOUNT if discount is None else discount, strength=values[0])
    if name == "finite":
        return FiniteDirichlet(components=COMPONENTS if components is None else components, strength=values[0])
    return DirichletProcess(strength=values[0])


def _number(each: str, text: str) -> float:
    value = _finite(text)
    if math.isnan(value):
        raise FormatError(f"the prior {each!r} is not understood.", hint="--prior NAME=NUMBER")
    return value


def _finite(text: str) -> float:
    """A finite number, or NaN."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
