"""Every inference that a user can start, once: the tiny case that it is compared on, and the rank test of its posterior.

A row is a name of the registry (with what is published, or with which noise, where that matters), whether n is public or
secret, and a model. It names test functions themselves and the cases that they are run with; test_gate_rows.py looks both up,
so that a row cannot name what is not run. A `Mixture` is a `MixtureModel` whose kernel follows the bounds.
"""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import test_inference_gate as gate
import test_mixture_gate as mixtures
import test_open_label_gate as open_labels
import test_table_gate as tables
import test_tree_gate as trees

sys.path.append(str(Path(__file__).parents[1] / "statistical"))  # behind this folder: both have files of the same name

import test_mixture_ranks as mixture_ranks
import test_noisy_statistics_ranks as sum_ranks
import test_posterior_calibration as count_ranks
import test_table_coverage as coverage
import test_tree_ranks as tree_ranks


def beside(name):
    """A file of the other folder that has a namesake in this one."""
    path = Path(__file__).parents[1] / "statistical" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"statistical_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


open_ranks = beside("test_urn_measures")

PUBLIC, SECRET, EACH = "public", "secret", "of each record"
CHAIN, TREE, MIXTURE = "CountModel", "PolyaTree", "Mixture"


@dataclass(frozen=True)
class Case:
    """A test, and the value of each parameter that makes it this case: a value is found by equality in one of its lists."""

    test: Any
    values: tuple[Any, ...] = ()

    def missing(self):
        """Values that the test is not run with."""
        listed = [
            each.values if hasattr(each, "values") and hasattr(each, "marks") else each
            for mark in getattr(self.test, "pytestmark", ())
            if mark.name == "parametrize"
            for each in mark.args[1]
        ]
        return [value for value in self.values if not any(same(value, each) for each in listed)]


def same(value, each):
    """Models are the same object; all else is equal, alone or as the first of a case's values."""
    plain = isinstance(value, (str, tuple, bool, dict))
    alike = [each, *each[:1]] if isinstance(each, tuple) else [each]
    return any(value is one or (plain and type(value) is type(one) and value == one) for one in alike)


@dataclass(frozen=True)
class Row:
    """The tiny case, the rank test, and why there is another test in place of ranks, where there is."""

    tiny: Case
    ranks: Case
    instead: str = ""


MANY_RANKS = tree_ranks.test_ranks_of_truths_are_uniform_in_many_runs
NO_PRIOR = (
    "Figures and regressions solve an equation, with a normal law around the root: there is no prior that truths could be "
    "drawn from. Whether intervals hold fixed truths stands in the place of ranks."
)


def release(name, size, ranks):
    tiny = Case(gate.test_releases_under_the_default_prior, ((name, size),))
    return Row(tiny, Case(count_ranks.test_ranks_are_uniform_in_many_runs, (ranks,)))


def in_order(name, size, ranks):
    """Of more than 16 ordered cells the default; how a tree is drawn does not depend on their number."""
    tiny = Case(trees.test_cells_in_an_order, (name + (", secret n" if size == SECRET else ""),))
    if name == "perturbed-histogram records":
        tiny = Case(trees.test_records_of_noisy_counts_in_an_order)
    return Row(tiny, Case(MANY_RANKS, (ranks,)))


def noisy_tree(size, noise):
    ranks = f"noisy-tree {noise}" + (", secret n" if size == SECRET else "")
    return Row(Case(trees.test_noisy_trees, ((size, f"discrete-{noise}"),)), Case(MANY_RANKS, (ranks,)))


def behind(channel, ranks):
    tiny = Case(mixtures.test_a_mixture_at_its_defaults, (channel,))
    if channel == "randomised-response":
        tiny = Case(gate.test_a_mixture_of_categories_behind_randomised_response)
    return Row(tiny, Case(mixture_ranks.test_ranks_are_uniform_in_every_combination, (ranks,)))


def sums(model, size):
    tiny = Case(gate.test_statistics_against_weighted_draws_from_the_prior, ((model, size),))
    if model in ("bernoulli", "poisson"):
        tiny = Case(gate.test_sums_against_enumeration, (model, size))
    [drawn] = [each for each in sum_ranks.MODELS if each.name == model]
    return Row(tiny, Case(sum_ranks.test_ranks_of_every_model, (drawn, size == SECRET)))


def open_urn(name, setting):
    tiny = Case(open_labels.test_shares_of_open_labels_and_of_what_was_not_released, (name,))
    return Row(tiny, Case(open_ranks.test_open_releases_are_calibrated, (open_ranks.SETTINGS[setting],)))


def whole_table(model, size):
    tiny = Case(tables.test_figures, (("two", size),))
    if model != "TableModel":
        tiny = Case(tables.test_regressions, (("two", size), model.removesuffix("Regression").lower()))
    return Row(tiny, Case(coverage.test_intervals_hold_in_many_tables, ((model, size),)), instead=NO_PRIOR)


CHAIN_RANKS = {
    ("dirichlet-multinomial", PUBLIC): "urn, default prior",
    ("dirichlet-multinomial", SECRET): "urn, secret n",
    ("dirichlet-process", PUBLIC): "Dirichlet process, default prior",
    ("perturbed-histogram", PUBLIC): "noisy counts, default prior",
    ("perturbed-histogram", SECRET): "noisy counts, secret n",
    ("perturbed-histogram gaussian", PUBLIC): "Gaussian counts, default prior",
    ("perturbed-histogram gaussian", SECRET): "Gaussian counts, secret n",
    ("perturbed-histogram records", PUBLIC): "noisy records, default prior",
    ("perturbed-histogram records", SECRET): "noisy records, secret n",
    ("smoothed-histogram", PUBLIC): "smoothed, default prior",
    ("posterior-sample", PUBLIC): "posterior sample, default prior",
    ("posterior-sample", SECRET): "posterior sample, secret n",
    ("label-discovery", PUBLIC): "urn of labels that were named, default prior",
}
TREE_RANKS = {
    ("dirichlet-multinomial", PUBLIC): "urn",
    ("dirichlet-process", PUBLIC): "Dirichlet process",
    ("perturbed-histogram", PUBLIC): "noisy counts",
    ("perturbed-histogram", SECRET): "noisy counts, secret n",
    ("perturbed-histogram gaussian", PUBLIC): "Gaussian counts",
    ("perturbed-histogram records", PUBLIC): "noisy records",
    ("smoothed-histogram", PUBLIC): "smoothed",
    ("posterior-sample", PUBLIC): "posterior sample",
    ("label-discovery", PUBLIC): "urn of labels that were named",
}
BEHIND = {
    ("perturbed-histogram", PUBLIC): ("noisy-statistic", "laplace counts x gaussian"),
    ("smoothed-histogram", PUBLIC): ("smoothed-histogram", "smoothed histogram x gaussian"),
    ("local-laplace", EACH): ("laplace", "laplace x gaussian"),
    ("local-gaussian", EACH): ("gaussian", "gaussian x gaussian"),
    ("local-haar-wavelet", EACH): ("haar-wavelet", "wavelet x gaussian"),
    ("local-randomised-response", EACH): ("randomised-response", "response x components"),
    ("local-randomised-responses", EACH): ("randomised-responses", "response x categorical"),
    ("local-discrete-laplace", EACH): ("discrete-laplace", "discrete laplace x gaussian"),
    ("local-discrete-gaussian", EACH): ("discrete-gaussian", "discrete gaussian x gaussian"),
}
REGRESSIONS = ("LinearRegression", "LogisticRegression", "PoissonRegression")
ANY = (PUBLIC, SECRET)

ROWS = {(name, size, CHAIN): release(name, size, ranks) for (name, size), ranks in CHAIN_RANKS.items()}
ROWS |= {(name, size, TREE): in_order(name, size, ranks) for (name, size), ranks in TREE_RANKS.items()}
ROWS |= {(f"noisy-tree {noise}", size, TREE): noisy_tree(size, noise) for noise in ("laplace", "gaussian") for size in ANY}
ROWS |= {("noisy-marginals", size, model): whole_table(model, size) for model in ("TableModel", *REGRESSIONS) for size in ANY}
ROWS |= {(f"noisy-{model}-statistics", size, "SumModel"): sums(model, size) for model in gate.MAKERS for size in ANY}
ROWS |= {(*row, model): behind(*cases) for row, cases in BEHIND.items() for model in (MIXTURE, "MixtureModel")}
ROWS |= {
    ("dirichlet-process open labels", PUBLIC, CHAIN): open_urn("dirichlet-process", 0),
    ("pitman-yor open labels", PUBLIC, CHAIN): open_urn("pitman-yor", 2),
}
"""The registered name comes first; what stands behind it is what was published, or which noise."""
