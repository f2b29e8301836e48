"""Two releases beside each other: differences and ratios of the same figures, and one release under several priors."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import ModelError
from privurn.inference.counts.model import CountModel
from privurn.inference.draws import Draws, Summary, check_level
from privurn.inference.infer import infer
from privurn.inference.mixtures.mixings import DirichletProcess
from privurn.inference.mixtures.reading import Mixture, Privatised
from privurn.inference.posterior import Posterior
from privurn.inference.published import Published, published
from privurn.inference.sums.fit import SumModel, records_model
from privurn.inference.sums.logistic_model import LogisticPrior
from privurn.inference.sums.regression_model import RegressionPrior
from privurn.inference.trees.model import PolyaTree

TIMES = 10.0
"""Factor by which priors of sums are made weaker and stronger."""


def contrast(first: Posterior, second: Posterior, *, level: float = 0.95) -> tuple[Summary, ...]:
    """First less second, and first over second, of all figures that both have: with intervals, and unbiased where both are.

    For releases of different records, such as two groups or two years, which are independent of each other: draws of one go
    with any of the other. A ratio is left out where the second may be 0 or of either sign.

    >>> import privurn
    >>> ages = np.random.default_rng(1).integers(18, 80, size=(2, 2000))
    >>> made = [privurn.release(each, domain=privurn.Grid(18, 80, 1), epsilon=1) for each in ages]
    >>> one, two = (infer(each, ask="mean", run=privurn.Run(draws=250, seed=i)) for i, each in enumerate(made))
    >>> [each.name for each in contrast(one, two)]
    ['mean, difference', 'mean, ratio']
    """
    check_level(level, of="an interval")
    numbers = [{name: values.ravel() for name, values in each.shown.numbers()} for each in (first, second)]
    shared = [name for name in numbers[0] if name in numbers[1]]
    if not shared:
        raise ModelError("the two have no figure in common.", hint="Ask both for the same, such as ask='mean'")
    found: list[Summary] = []
    for name in shared:
        one, two = _paired(numbers[0][name], numbers[1][name])
        drawn = {f"{name}, difference": one - two}
        if two.min() > 0.0 or two.max() < 0.0:
            drawn[f"{name}, ratio"] = one / two
        rows = Draws(variables={each: values[None] for each, values in drawn.items()}, markov=False).summary(level=level)
        estimates = [each.unbiased.get(name) for each in (first, second)]
        if estimates[0] is not None and estimates[1] is not None:
            error = float(np.hypot(estimates[0].standard_error, estimates[1].standard_error))
            rows = (replace(rows[0], unbiased=estimates[0].value - estimates[1].value, unbiased_error=error), *rows[1:])
        found += rows
    return tuple(found)


def _paired(one: NDArray[Any], two: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """As many draws of each, in no order that they share."""
    one, two = (each[np.isfinite(each)].astype(np.float64) for each in (one, two))
    size = max(len(one), len(two))
    rng = np.random.default_rng(0)
    return np.resize(one, size), rng.permutation(np.resize(two, size))


def sensitivity(
    release: Any, model: Any = None, *, ask: Any = None, of: Any = "population", run: Any = None, level: float = 0.95
) -> Mapping[str, Posterior]:
    """The posterior under the model that was given, and under a few others, by what each is: all else as in `infer`."""
    given = release if isinstance(release, Published) else published(release, mixture=isinstance(model, Mixture))
    how: dict[str, Any] = {"ask": ask, "of": of, "run": run, "level": level}
    return {words: infer(given, each, **how) for words, each in {"as asked": model, **other_priors(given, model)}.items()}


def other_priors(given: Published, model: Any) -> dict[str, Any]:
    """Other priors that an analyst might have had, in words."""
    numbers: Any = given.numbers
    if given.kind == "counts":
        own = model if isinstance(model, CountModel) else CountModel()
        if numbers.domain is None:
            raise ModelError("labels that nobody listed have no prior but the urn's own.", hint="Leave the sensitivity out")
        return {
            "flat": replace(own, prior="flat"),
            "half a record in each cell": replace(own, prior=0.5),
            "one record in each cell": replace(own, prior=1.0),
        }
    if given.kind == "tree":
        tree = model if isinstance(model, PolyaTree) else PolyaTree()
        falling = 1.0 / np.arange(1.0, numbers.measured.tree.cells + 1.0)
        bases = {"uniform": np.ones(len(falling)), "falling": falling, "rising": falling[::-1].copy()}
        return {f"base {words}": replace(tree, base=base) for words, base in bases.items()}
    if isinstance(numbers, Privatised):
        how = model if isinstance(model, Mixture) else Mixture()
        return {
            f"strength {each:g}": replace(how, mixing=DirichletProcess(strength=each)) for each in (1.0 / TIMES, 1.0, TIMES)
        }
    if given.kind == "tables":
        raise ModelError("figures of a whole table have no prior.", hint="Leave the sensitivity out")
    stated = model is None or isinstance(model, (SumModel, RegressionPrior, LogisticPrior, tuple))
    sums = model if isinstance(model, SumModel) else SumModel(prior=model if stated else None)
    prior: Any = sums.prior
    if prior is None:
        made = records_model(numbers) if stated else model
        prior = getattr(made, "prior", None) or _pair(made)
    return {
        "a weaker prior": replace(sums, prior=_scaled(prior, 1.0 / TIMES)),
        "a stronger prior": replace(sums, prior=_scaled(prior, TIMES)),
    }


def _pair(model: Any) -> tuple[float, ...]:
    if not hasattr(model, "prior_numbers"):
        raise ModelError("a model of one's own states its prior itself.", hint="Leave the sensitivity out")
    return tuple(float(getattr(model, name)) for name in model.prior_numbers.values())


def _scaled(prior: Any, times: float) -> Any:
    """The same prior, worth so many times as many records about what it is a prior of."""
    if isinstance(prior, tuple):
        return (prior[0] * times, prior[1] * times)
    if hasattr(prior, "coefficient_precision"):
        return replace(prior, coefficient_precision=np.asarray(prior.coefficient_precision) * times)
    return replace(prior, coefficient_variance=np.asarray(prior.coefficient_variance) / times)
