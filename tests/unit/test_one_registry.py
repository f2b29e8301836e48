"""A mechanism is known by name in few places: its own file, the registry, the public namespace."""

import ast
import re
from pathlib import Path

import pytest

from privurn.mechanisms.local.channel import Channel
from privurn.mechanisms.local.local_release import LocalRelease
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.registry import REGISTRY, channels, registered

SOURCE = Path(__file__).parents[2] / "src" / "privurn"
TREES = {str(path.relative_to(SOURCE)): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
MOST_FILES = 4

NAMED: dict[str, int] = {
    "DirichletMultinomial": 7,
    "DirichletStatistic": 5,
    "DiscoveredUrn": 5,
    "DiscreteGaussianChannel": 6,
    "DiscreteLaplaceChannel": 6,
    "GaussianChannel": 9,
    "HaarWaveletChannel": 5,
    "LaplaceChannel": 8,
    "LogisticStatistic": 6,
    "PerturbedHistogram": 5,
    "PitmanYor": 11,
    "PoissonStatistic": 5,
    "PosteriorSample": 5,
    "RandomisedResponseChannel": 6,
    "RandomisedResponsesChannel": 5,
    "RegressionStatistic": 7,
    "SmoothedHistogram": 5,
    "TableStatistic": 6,
    "dirichlet-multinomial": 6,
    "dirichlet-process": 8,
    "label-discovery": 5,
    "pitman-yor": 9,
}
"""What still stands in more files, and in how many at most. It can only shrink: take out what no longer does."""

ASKED: dict[str, int] = {
    "cli/infer_mixtures.py": 3,
    "cli/statistics.py": 1,
    "inference/counts/composition.py": 4,
    "inference/counts/count_terms.py": 7,
    "inference/counts/open_labels.py": 1,
    "inference/counts/released.py": 8,
    "inference/counts/urn_measures.py": 2,
    "inference/mixtures/deconvolution.py": 3,
    "inference/mixtures/global_samplers.py": 5,
    "inference/mixtures/model.py": 8,
    "inference/mixtures/posterior.py": 1,
    "inference/mixtures/reading.py": 12,
    "inference/mixtures/results.py": 2,
    "inference/sums/comparators.py": 1,
    "inference/sums/dirichlet_model.py": 1,
    "inference/sums/logistic_model.py": 1,
    "inference/sums/logistic_plug_in.py": 1,
    "inference/sums/regression_model.py": 1,
    "inference/sums/report.py": 1,
    "mechanisms/local/from_certificate.py": 3,
    "releases/privatise.py": 9,
}
"""Files that still ask `isinstance` of mechanisms, and how often at most. It can only shrink: take out what no longer does."""


def docstrings(tree: ast.Module) -> set[int]:
    """Nodes of the texts that stand alone: docstrings, and what is said under a constant."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}


def words_of(tree: ast.Module) -> tuple[set[str], list[str]]:
    """Names, and texts outside docstrings."""
    skipped, names, texts = docstrings(tree), set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names |= {node.name, node.asname or node.name}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            texts.append(node.value)
    return names, texts


WORDS = {file: words_of(tree) for file, tree in TREES.items()}


def files_with(word: str) -> list[str]:
    """Where a class or an alias stands; an alias that is a plain English word only where it is the whole text or an option."""
    pattern = rf"(?<![\w-]){re.escape(word)}(?![\w-])"
    if "-" not in word:
        pattern = rf"\A{re.escape(word)}\Z|--mechanism {pattern}|:{re.escape(word)}\Z"
    return [file for file, (names, texts) in WORDS.items() if word in names or any(re.search(pattern, text) for text in texts)]


def test_a_word_is_found_where_it_stands():
    assert {"mechanisms/registry.py", "mechanisms/pitman_yor.py", "__init__.py"} <= set(files_with("PitmanYor"))
    assert "mechanisms/registry.py" in files_with("perturbed-histogram")
    assert "mechanisms/mechanism.py" not in files_with("LocalRelease")  # named in a docstring alone


def test_aliases_and_classes_stand_in_few_files():
    words = {word for name in REGISTRY for word in (name, registered(name).__name__)}
    found = {word: len(files_with(word)) for word in words}
    offenders = {word: number for word, number in found.items() if number > MOST_FILES}
    assert offenders.keys() == NAMED.keys()
    assert all(number <= NAMED[word] for word, number in offenders.items())


assert issubclass(LocalRelease, Mechanism)  # imported, so that it is found


def below(kind: type) -> set[str]:
    return {kind.__name__} | {name for each in kind.__subclasses__() for name in below(each)}


def test_nobody_asks_what_a_mechanism_is():
    _ = channels(), [registered(name) for name in REGISTRY]
    mentioned = set().union(*(names for names, _ in WORDS.values()))
    kinds = ((below(Mechanism) | below(Channel)) & mentioned) | {"RESPONSES"}
    found: dict[str, int] = {}
    for file, tree in TREES.items():
        own = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asked = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
                if asked & (kinds - own):
                    found[file] = found.get(file, 0) + 1
    assert found.keys() == ASKED.keys()
    assert all(number <= ASKED[file] for file, number in found.items())


@pytest.mark.parametrize("folder", ["certificates", "audits", "reports"])
def test_who_certifies_audits_and_reports_knows_no_registered_name(folder):
    words = {word for name in REGISTRY for word in (name, registered(name).__name__)}
    named = {word: [file for file in files_with(word) if file.startswith(f"{folder}/")] for word in words}
    assert {word: files for word, files in named.items() if files} == {}
