"""How many cores this process may use."""

import os


def usable_cores() -> int:
    """Those it is allowed to run on, where the system tells; at least one."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
