"""Work in several processes, without a second run of the caller's script.

A worker is a fresh interpreter that gets the job through its standard input. Unlike multiprocessing it never imports the
caller's main module, so a script that also makes a release does not make it again; unlike a fork it copies no threads. What
goes wrong in a worker comes back without details, which could hold a confidential value.
"""

import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from privurn.cores import usable_cores
from privurn.errors import PrivurnError, SamplingError

ALONE = 2.0
"""Seconds of work after which, if much is left, the other cores are called in."""

START = f"import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); from {__name__} import serve; serve()"


class Job(Protocol):
    """Something that can be sent to another process and does tasks there."""

    def run(self, task: Any) -> Any:
        """Do one task."""


def run_tasks(
    job: Job,
    tasks: Sequence[Any],
    *,
    processes: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Any]:
    """Results in the order of the tasks, the same for any number of processes.

    With `processes` = None the work starts here, and the other cores are used when it turns out to be long.
    """
    results: list[Any] = [None] * len(tasks)
    wanted = usable_cores() if processes is None else processes
    done, start = 0, time.perf_counter()
    while done < len(tasks):
        spent = time.perf_counter() - start
        long = spent > ALONE and spent / max(done, 1) * (len(tasks) - done) > ALONE
        if wanted > 1 and (processes is not None or long):
            break
        results[done] = job.run(tasks[done])
        done += 1
        progress(done, len(tasks))
    if done < len(tasks):
        _in_workers(job, tasks, results, first=done, processes=min(wanted, len(tasks) - done), progress=progress)
    return results


def _in_workers(
    job: Job, tasks: Sequence[Any], results: list[Any], *, first: int, processes: int, progress: Callable[[int, int], None]
) -> None:
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for i in range(first, len(tasks)):
        waiting.put(i)
    finished: queue.SimpleQueue[tuple[int, bool, Any]] = queue.SimpleQueue()
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the parent, which ends its workers itself
        )
        for _ in range(processes)
    ]
    threads = [
        threading.Thread(target=_attend, args=(worker, job, tasks, waiting, finished), daemon=True) for worker in workers
    ]
    try:
        for thread in threads:
            thread.start()
        for done in range(first, len(tasks)):
            i, fine, result = finished.get()
            if not fine:
                raise result if isinstance(result, PrivurnError) else SamplingError(f"a simulation failed ({result}).")
            results[i] = result
            progress(done + 1, len(tasks))
    finally:
        for worker in workers:
            worker.kill()
        for worker, thread in zip(workers, threads, strict=True):
            if thread.ident is not None:
                thread.join()
            worker.wait()


def _attend(
    worker: "subprocess.Popen[bytes]",
    job: Job,
    tasks: Sequence[Any],
    waiting: "queue.SimpleQueue[int]",
    finished: "queue.SimpleQueue[tuple[int, bool, Any]]",
) -> None:
    """Hand one worker its tasks, one after the other."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    i = -1
    try:
        with worker.stdin as out, worker.stdout as back:
            pickle.dump(sys.path, out)
            pickle.dump(job, out)
            while True:
                i = waiting.get_nowait()
                pickle.dump(tasks[i], out)
                out.flush()
                finished.put((i, *pickle.load(back)))
    except queue.Empty:
        return
    except Exception as error:
        finished.put((i, False, type(error).__name__))


def serve() -> None:
    """What a worker does: read a job, then tasks until there are no more."""
    back, sys.stdout = sys.stdout.buffer, sys.stderr  # a stray print must not enter the stream
    job: Job = pickle.load(sys.stdin.buffer)
    while True:
        try:
            task = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = True, job.run(task)
        except PrivurnError as error:
            answer = False, error
        except Exception as error:
            answer = False, type(error).__name__
        pickle.dump(answer, back)
        back.flush()
