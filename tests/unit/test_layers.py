"""The architecture holds: imports go one way, files stay small, importing is fast."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "privurn"
ORDER = [
    "errors",
    "output_files",
    "exact_numbers",
    "domain",
    "counts",
    "cell_tree",
    "tables",
    "_kernels",
    "privacy",
    "draws",
    "models",
    "mechanisms",
    "channels",
    "samplers",
    "planning",
    "choosing",
    "specialised",
    "certifying",
    "storage",
    "releasing",
    "published",
    "verification",
    "privatising",
    "spending",
    "posteriors",
    "mixtures",
    "noisy_statistics",
    "inference",
    "utility",
    "plug_in_multinomial",
    "auditing",
    "figures",
    "reporting",
    "cli",
]
FILES = sorted(SOURCE.rglob("*.py"))


def layer(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "privurn" else None


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return
    assert own in ORDER, f"{own} has no place in the architecture: add it to ORDER and docs/design.md"
    for module in imports(path):
        other = layer(module)
        if other is not None and other != "__version__":
            assert ORDER.index(other) <= ORDER.index(own), f"{own} must not import {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_say_one_thing(path):
    assert len(path.read_text().splitlines()) <= 400


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
        )
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
