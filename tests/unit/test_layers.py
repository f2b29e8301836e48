"""The architecture holds: imports go one way, files stay small, importing is fast."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from sources import FILES, SOURCE, nodes, place, tree

ORDER = [
    "lazy_names",
    "errors",
    "extras",
    "cores",
    "output_files",
    "exact_numbers",
    "domain",
    "counts",
    "cell_tree",
    "tables",
    "_kernels",
    "privacy",
    "mechanisms",
    "certificates",
    "drawing",
    "inference",
    "releases",
    "audits",
    "reports",
    "simulated",
    "cli",
]
BY_NAME = {
    "lazy_names.py": "public names, on first use",
    "mechanisms/registry.py": "mechanisms of its own folder, when asked for",
    "cli/audit.py": "a function of the user's own",
}
"""Files that may import a module by a name made at run time, and what it is for."""


def module_of(path: Path) -> str:
    parts = ["privurn", *path.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def run_ever(node: ast.AST) -> Iterator[ast.AST]:
    """What ever runs below a node: all but what only annotations need."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield child
            yield from run_ever(child)


@cache
def imports(path: Path, *, run: bool = False) -> set[str]:
    """Modules that a file imports, at the top, in functions and by lazy names; `from package import module` is the module."""
    found = set()
    for node in run_ever(tree(path)) if run else nodes(path):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            source = str(node.module)
            named = {f"{source}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else source for name in named}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOME" and not run:
            found |= {f"privurn.{home}" for home in ast.literal_eval(node.value).values()}
    return found


def layer(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "privurn" else None


def cycle(graph: dict[str, set[str]]) -> tuple[str, ...]:
    """What CPython's own sorter finds first, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return tuple(error.args[1])
    return ()


def test_imports_go_one_way():
    for path in FILES:
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if own in ("__init__", "__main__"):
            continue
        assert own in ORDER, f"{own} has no place in the architecture: add it to ORDER and docs/design.md"
        for module in imports(path):
            assert module != "privurn" or names_of(path, "privurn") == {"__version__"}, (
                f"{place(path)} must name the module it imports from"
            )
            other = layer(module)
            if other is not None:
                assert ORDER.index(other) <= ORDER.index(own), f"{place(path)} must not import {module}"


def names_of(path: Path, module: str) -> set[str]:
    """What a file imports from a module."""
    froms = [node for node in nodes(path) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in froms if node.module == module for alias in node.names} - set(ORDER)


def test_layers_have_no_cycle_wherever_an_import_stands():
    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        own = layer(module)
        if own not in (None, "__main__"):
            graph.setdefault(own, set()).update({layer(each) for each in imports(path)} - {own, None})
    assert set(graph) == set(ORDER)
    assert cycle(graph) == ()


def test_modules_have_no_cycle_wherever_an_import_stands():
    """But for annotations: a function may name the class whose method it is called by."""
    assert cycle({module: loaded(module, imports(path, run=True)) for module, path in MODULES.items()}) == ()


def loaded(module: str, imported: set[str]) -> set[str]:
    """Our modules that are run by imports: with each its packages, but those that the module itself is in."""
    parts = [each.split(".") for each in imported]
    found = {".".join(each[:k]) for each in parts for k in range(1, len(each) + 1)} & set(MODULES)
    return {each for each in found if not f"{module}.".startswith(f"{each}.")} | (imported & set(MODULES))


def test_packages_are_loaded_before_what_is_in_them():
    assert loaded("privurn.inference.posterior", {"privurn.inference.counts.unbiased", "numpy"}) == {
        "privurn.inference.counts",
        "privurn.inference.counts.unbiased",
    }


def test_cycles_would_be_noticed():
    assert set(cycle({"drawing": {"reports"}, "reports": {"cli"}, "cli": {"drawing"}})) == {"drawing", "reports", "cli"}


def test_no_module_is_imported_by_a_name_made_up():
    """The order of layers is read from the sources, so nothing may go round them."""
    ways = {"import_module", "__import__", "spec_from_file_location", "exec_module"}
    found = set()
    for path in FILES:
        used = {node.id for node in nodes(path) if isinstance(node, ast.Name)}
        used |= {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)}
        if used & ways:
            found.add(place(path))
    assert found == set(BY_NAME)


def test_files_say_one_thing():
    assert [place(path) for path in FILES if len(path.read_text().splitlines()) > 400] == []


def test_compiled_code_has_one_dispatch():
    """What a loop does for a type of record is said with `generic` and `implement`; numba's own way stands behind them."""
    found = set()
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("numba"):
                if {alias.name for alias in node.names} & {"overload", "generated_jit", "typeof_impl"}:
                    found.add(place(path))
    assert found == {"_kernels/dispatch.py"}


def test_only_tables_knows_the_data_frames():
    for path in FILES:
        known = {module.split(".")[0] for module in imports(path)} & {"pandas", "polars", "pyarrow", "duckdb"}
        assert not known or path.parent.name == "tables", f"{path.name} imports {known}"


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (
            "import privurn",
            "numpy numba scipy duckdb pyarrow pydantic opendp pandas polars matplotlib xarray arviz_base arviz_stats",
        ),
        ("import privurn.cli.main", "numpy numba scipy duckdb pyarrow opendp pandas polars matplotlib xarray"),
    ],
)
def test_importing_is_light(words, heavy):
    code = f"{words}; import sys; print([name for name in {heavy.split()!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_all_public_names_exist():
    import privurn

    for name in privurn.__all__:
        assert getattr(privurn, name) is not None
    with pytest.raises(AttributeError):
        _ = privurn.nonsense
