"""Names of columns: theirs are looked up outside SQL, and inside it every column goes by a place of our own.

SQL takes `x` and `X` for one name, and an alias for a column of the same name. A table's own names therefore never stand in a
query: its first column is c0, its second c1, whatever they are called.
"""

from collections import Counter
from collections.abc import Container, Sequence

from privurn.errors import FormatError


def places(names: Sequence[str]) -> list[str]:
    """What columns are called in SQL."""
    return [f"c{i}" for i in range(len(names))]


def check_names(names: Sequence[str]) -> None:
    """Every column has a name that is no other's."""
    if not names:
        raise FormatError("the table has no columns.")
    if len(set(names)) != len(names):
        raise FormatError("two columns have the same name.", hint="Rename one of them first")


def unused(name: str, taken: Container[str | None]) -> str:
    """The name, with as many underscores as it takes to be no other's."""
    while name in taken:
        name += "_"
    return name


def parquet_names(files: Sequence[str]) -> list[str]:
    """Columns of Parquet files in the order that they are read in: those of the first file, then what others add.

    The reader takes names for the same that differ in capitals only. Within one layout it still tells the columns apart by
    their places; across several layouts it cannot, and such files are refused.
    """
    import pyarrow.parquet

    layouts = [list(pyarrow.parquet.read_schema(file).names) for file in files]
    names = list(dict.fromkeys(name for layout in layouts for name in layout))
    for layout in layouts:
        check_names(layout)
    alike = Counter(name.lower() for name in names)
    if any(layout != names for layout in layouts) and max(alike.values()) > 1:
        raise FormatError("the files have columns whose names differ in capitals only.", hint="Rename them first")
    return names


def old_instants(files: Sequence[str]) -> set[str]:
    """Columns of Parquet files that hold the old timestamps of 96 bits: instants, as Spark, which writes them, reads them."""
    import pyarrow.parquet

    schemas = [pyarrow.parquet.ParquetFile(file).schema for file in files]
    columns = [schema.column(i) for schema in schemas for i in range(len(schema))]
    return {each.path for each in columns if each.physical_type == "INT96"}
