"""DuckDB as it reads tables here: nothing is fetched, nothing spills to a disk, no type is guessed from records."""

import os
from functools import cache
from typing import Any

SETTINGS: dict[str, Any] = {
    "allow_community_extensions": False,
    "autoinstall_known_extensions": False,  # nothing is fetched from anywhere
    "autoload_known_extensions": False,
}
OF_A_CONNECTION = (
    "SET pandas_analyze_sample = 0",  # never guess a column's type from its records
    "SET enable_progress_bar = false",
    "SET TimeZone = 'UTC'",  # never this computer's
    "SET temp_directory = ''",  # records never spill to a file beside the caller's work
    # Parquet's statistics leave NaN out: with them isnan would be false, and where one record counts would rest on the others.
    "SET disabled_optimizers = 'statistics_propagation'",
)


@cache
def _database(process: int) -> Any:
    """One empty database for a process (its threads do not follow into a fork): to make one takes ten times a tiny query."""
    import duckdb

    return duckdb.connect(":memory:", config=SETTINGS)


def connect() -> Any:
    """A connection of its own: what is registered or made temporary in it, nobody else sees, and it goes when it is closed."""
    import duckdb

    try:
        return _connected()
    except duckdb.FatalException:  # DuckDB has given up on the database: whoever saw that first may not have said so
        forget()
        return _connected()


def _connected() -> Any:
    connection = _database(os.getpid()).cursor()
    for setting in OF_A_CONNECTION:
        connection.execute(setting)
    return connection


def forget() -> None:
    """After DuckDB gave up on a database: the next connection is to a new one."""
    _database.cache_clear()
