"""The package's own sources, for tests that read them: parsed once in each process."""

import ast
import gc
from functools import cache
from pathlib import Path

import privurn

SOURCE = Path(privurn.__file__).parent
FILES = tuple(sorted(SOURCE.rglob("*.py")))


def place(path: Path) -> str:
    """A file as messages name it."""
    return path.relative_to(SOURCE).as_posix()


@cache
def _parsed() -> dict[Path, tuple[ast.Module, tuple[ast.AST, ...]]]:
    """All files; the collector of garbage is told never to look through these million objects again."""
    gc.disable()
    trees = {path: ast.parse(path.read_text()) for path in FILES}
    found = {path: (tree, tuple(ast.walk(tree))) for path, tree in trees.items()}
    gc.freeze()
    gc.enable()
    return found


def tree(path: Path) -> ast.Module:
    return _parsed()[path][0]


def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All that stands in a file."""
    return _parsed()[path][1]
