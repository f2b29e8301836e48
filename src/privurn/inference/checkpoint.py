"""Checkpoints: a run as one file, written beside and renamed, and taken up again bit by bit."""

import json
import os
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from privurn.errors import FormatError
from privurn.inference.sampler import Arrays, Chain, Sampler, Schedule, Underway, joined_pieces
from privurn.output_files import PARTIAL


def checkpoint_file(given: str | Path) -> Path:
    """The file of a checkpoint, checked before any work is done."""
    if not isinstance(given, (str, os.PathLike)):
        raise FormatError("a checkpoint is the name of a file.", hint='For example checkpoint="run.ckpt"')
    file = Path(given)
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise FormatError(f"no checkpoint can be written to {str(file)!r}.", hint="Name a file in a folder that exists")
    return file


def save_run(file: Path, sampler: Sampler, schedule: Schedule, run: Underway) -> None:
    """One file, written beside and then renamed: a kill in the middle leaves the one before."""
    arrays: Arrays = {}
    for i, chain in enumerate(run.chains):
        arrays |= {f"{i}/state/{name}": values for name, values in chain.state.items()}
        for kind, pieces in (("kept", chain.kept), ("diagnostics", chain.diagnostics)):
            arrays |= {f"{i}/{kind}/{name}": values for name, values in joined_pieces(pieces).items()}
    header = {
        "fingerprint": sampler.fingerprint(),
        "schedule": asdict(schedule) | {"seed": run.seed},
        "done": run.done,
        "forgotten": run.forgotten,
        "generators": [each.rng.bit_generator.state for each in run.chains],
    }
    handle, partial = tempfile.mkstemp(prefix=PARTIAL, suffix=".npz", dir=file.absolute().parent)
    try:
        with os.fdopen(handle, "wb") as out:
            np.savez(out, header=np.array(json.dumps(header)), **arrays)  # type: ignore[arg-type]
            out.flush()
            os.fsync(out.fileno())
        Path(partial).replace(file)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def restored_run(file: Path, sampler: Sampler, stages: tuple[Schedule, ...]) -> Underway:
    """The run of a file, if one of these schedules, each of which carries on the one before, could have written it."""
    try:
        with np.load(file, allow_pickle=False) as stored:
            header = json.loads(str(stored["header"]))
            arrays = {name: stored[name] for name in stored.files if name != "header"}
        generators, done, forgotten = header["generators"], int(header["done"]), int(header["forgotten"])
        before, fingerprint = dict(header["schedule"]), header["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        raise FormatError(f"the checkpoint {str(file)!r} cannot be read.", hint="Remove it to start anew") from None
    first, asked = stages[0], asdict(stages[0])
    fixed = ("chains", "warm_up", "thin") + (() if first.seed is None else ("seed",))
    if (
        fingerprint != sampler.fingerprint()
        or any(before.get(key) != asked[key] for key in fixed)
        or not any(each.carries_on(done, forgotten) for each in stages)
    ):
        raise FormatError(
            f"the checkpoint {str(file)!r} belongs to another run.",
            hint="Same data, model, chains, warm-up, thinning and seed, and no fewer draws; or remove it to start anew",
        )
    chains = []
    for i, generator in enumerate(generators):
        rng = np.random.Generator(np.random.PCG64())
        rng.bit_generator.state = generator
        parts: dict[str, Arrays] = {"state": {}, "kept": {}, "diagnostics": {}}
        for name, values in arrays.items():
            chain, kind, key = name.split("/", 2)
            if int(chain) == i:
                parts[kind][key] = values
        kept = (parts["kept"],) if parts["kept"] else ()
        chains.append(Chain(rng, parts["state"], kept, (parts["diagnostics"],) if kept else ()))
    return Underway(int(before["seed"]), tuple(chains), done, forgotten)
