"""An experiment of many runs that can be stopped and gone on with: each run is a line of a file as soon as it is done."""

import json
import time
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def resumed(
    run: Callable[[str, int], Row], settings: Iterable[str], *, runs: int, number: str, file: Path, minutes: float
) -> list[Row]:
    """Rows of the file and of runs that were missing, every setting in turn, until the time is over; `number` names runs."""
    wanted, stop = list(settings), time.monotonic() + 60.0 * minutes
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    known = {(row["setting"], row[number]) for row in rows}
    for each, setting in product(range(runs), wanted):
        if time.monotonic() > stop:
            break
        if (setting, each) not in known:
            rows.append(run(setting, each))
            with file.open("a") as out:
                out.write(json.dumps(rows[-1]) + "\n")
    return [row for row in rows if row["setting"] in wanted]
