"""Shared by all tests."""

import gc
import pkgutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # for the tests of every folder

from filthy_memory import filthy_empty
from repeatable_randomness import pytest_runtest_setup, repeatable_randomness  # noqa: F401  pytest finds them here

# A shell's jobs in the background ignore Ctrl-C, and hand that on to every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# `make test` tries the same examples every time, so that a failure is the change's; `make test-full` looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("exploring", deadline=None)
settings.load_profile("repeatable")


FOLDER = Path(__file__).parent
LONG_CASES = {line for line in (FOLDER / "long_cases.txt").read_text().splitlines() if line and not line.startswith("#")}
KERNELS = {
    "sums": {
        "test_balance",
        "test_balanced_steps",
        "test_faults_put_back",
        "test_gate_faults",
        "test_infer_logistic_command",
        "test_limit_chain",
        "test_logistic_moves",
        "test_infer_statistics_command",
        "test_inference_gate",
        "test_mcem",
        "test_mixed_or_marked",
        "test_noisy_models",
        "test_regression_comparators",
        "test_reversible_jump",
        "test_odd_input",
        "test_run_chains",
    },
    "mixtures": {
        "test_clusterings",
        "test_global_samplers",
        "test_infer_mixture_command",
        "test_kept_measures",
        "test_marginal_agreement",
        "test_marginal_samplers",
        "test_mixture_gate",
        "test_mixture_laws",
        "test_mixture_results",
        "test_mixture_samplers",
        "test_mixtures",
        "test_regrouping",
        "test_reversed_sweeps",
        "test_several_columns",
    },
    "trees": {
        "test_cautions",
        "test_cells_as_trees",
        "test_contrast",
        "test_docs",
        "test_independent_tree_draws",
        "test_places_within_bins",
        "test_polya_tree",
        "test_predictive_check",
        "test_split_laws",
        "test_tree_gate",
        "test_tree_posterior",
        "test_tree_ranks",
        "test_tree_release",
        "test_tree_synthetic",
        "test_unbiased_beside",
    },
    "spark": {
        "test_engine_files",
        "test_engine_types",
        "test_engines",
        "test_spark_output",
    },
    "sources": {
        "test_additive_noise",
        "test_dependency_figures",
        "test_layers",
        "test_messages",
        "test_one_registry",
        "test_words_of_errors",
    },
}
"""Files that need the same compiled code, one Spark session or all sources parsed: one worker runs them all."""

CHAINS = tuple(f"privurn._kernels.{family}" for family in ("counts", "mixtures", "sums", "whole_numbers"))
FAMILY = {name: family for family, names in KERNELS.items() for name in names}


NOT_FOUND: set[str] = set()
"""Long cases that none of the tests of their file is: written wrongly, or called otherwise since."""


def pytest_collection_modifyitems(items):
    """Mark the long cases; tests that need the same kernels come together, then files with long ones."""
    found = {item.nodeid.removeprefix("tests/") for item in items}
    files = {each.split("::")[0] for each in found}
    NOT_FOUND.update(each for each in LONG_CASES - found if each.split("::")[0] in files)
    order = {family: at for at, family in enumerate(KERNELS)}
    for item in items:
        if item.nodeid.removeprefix("tests/") in LONG_CASES:
            item.add_marker(pytest.mark.long)
    slow = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: (order.get(FAMILY.get(item.path.stem), len(order)), item.path not in slow))


def pytest_collection_finish():
    """What was collected stays to the end: whoever looks for garbage need not look through it."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    gc.unfreeze()  # nanobind calls what is left at the end a leak


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One worker for each file; without the long tests, when compiling takes the time, one for a family of files."""
    from xdist.scheduler import LoadFileScheduling

    quick = "not long" in config.getvalue("markexpr")

    class FamiliesTogether(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return FAMILY.get(Path(file).stem, file) if quick else file

    return FamiliesTogether(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_configure(config):
    """Made-up tables are often tiny, mostly clamped or missing: what is said of that fails the tests of it alone."""
    for kind in ("ConfidentialWarning", "TellsLittle", "PriorDecides", "MuchClamped"):
        config.addinivalue_line("filterwarnings", f"ignore::privurn.errors.{kind}")


@pytest.fixture(scope="session", autouse=True)
def built_once():
    """Typer's runner builds the whole command line for every call: once is enough, as for users."""
    import typer.testing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.testing._get_command))
        yield


@pytest.fixture
def privurn_command(monkeypatch, capsys):
    """Run the command line; returns what it printed and its exit code.

    Within this process, where starting Python anew would take longer than the work; with an environment of its own as a person
    would.
    """

    def run(*words, cwd=None, env=None, timeout=120):
        if env is not None:
            command = [sys.executable, "-m", "privurn", *map(str, words)]
            return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=timeout, check=False)
        from privurn.cli.main import run as main

        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["privurn", *map(str, words)])
            if cwd is not None:
                patch.chdir(cwd)
            with pytest.raises(SystemExit) as stopped:
                main()
        shown = capsys.readouterr()
        return SimpleNamespace(returncode=stopped.value.code or 0, stdout=shown.out, stderr=shown.err)

    return run


@pytest.fixture
def filthy_memory():
    """A context in which new arrays are full of numbers that show wherever interpreted code reads one before it is written."""

    @contextmanager
    def context():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(np, "empty", filthy_empty)
            yield

    return context


@pytest.fixture
def few_simulated_tables(monkeypatch):
    """Plans take their expected errors from a fifth of the tables: for tests that are not about the figures."""
    monkeypatch.setattr("privurn.releases.forecast.RUNS", 12)


@pytest.fixture(scope="session")
def plain_kernels():
    """Where each kernel of a chain stands, and its plain Python."""
    import numba

    import privurn

    for each in pkgutil.walk_packages(privurn.__path__, "privurn."):  # what were imported later would keep what it finds then
        if not each.name.endswith("__main__"):
            import_module(each.name)
    return [
        (module, name, value.py_func)
        for path, module in list(sys.modules.items())
        if path.split(".")[0] == "privurn"
        for name, value in list(vars(module).items())
        if isinstance(value, numba.core.dispatcher.Dispatcher) and value.py_func.__module__.startswith(CHAINS)
    ]


@pytest.fixture
def interpreted(plain_kernels):
    """Kernels of chains run as plain Python while the test lasts: no time to compile them, where the work is tiny."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, function in plain_kernels:
            patch.setattr(module, name, function)
        yield


@pytest.fixture
def long_cases_not_found(request):
    """Asked for by a test; nothing where no more than some tests of a file were collected."""
    config = request.config
    part = any("::" in each for each in config.args) or config.getoption("lf", False)
    return set() if part else NOT_FOUND
