"""MST or AIM of smartnoise-synth on coded columns, in an environment of its own: run by `benchmarks.tables`, not imported.

    PEER_PYTHON benchmarks/table_peers.py mst 1.0 1e-6 codes.npz out.npz SEED

Everything as the package has it by default; no budget for finding domains, because the columns are coded already. But records
are drawn independently (method "sample" of mbi): the usual rounding of mbi 1.1, which it needs, gives all columns that
hang on one column their values in the same order, and so makes pairs worse than independent ones; mbi 2.0 has mended it.
"""

import inspect
import json
import sys
import time
from functools import partialmethod
from importlib import import_module, metadata

import numpy as np

CLASSES = {"mst": ("snsynth.mst", "MSTSynthesizer"), "aim": ("snsynth.aim", "AIMSynthesizer")}


def main() -> None:
    name, epsilon, delta, source, target, seed = sys.argv[1:]
    np.random.seed(int(seed))  # noqa: NPY002  the peers use the global generator
    pandas = import_module("pandas")
    given = np.load(source)
    frame = pandas.DataFrame({str(column): given["codes"][i] for i, column in enumerate(given["names"])})
    module, kind = CLASSES[name]
    synthesizer = getattr(import_module(module), kind)
    fields = import_module("mbi").MarkovRandomField
    fields.synthetic_data = partialmethod(fields.synthetic_data, method="sample")
    start, processor = time.perf_counter(), time.process_time()
    made = synthesizer(epsilon=float(epsilon), delta=float(delta))
    made.fit(frame, categorical_columns=list(frame.columns), preprocessor_eps=0.0)
    sampled = made.sample(len(frame))
    spent: dict[str, object] = {"wall": time.perf_counter() - start, "processor": time.process_time() - processor}
    parameters = inspect.signature(synthesizer).parameters
    usual = {key: each.default for key, each in parameters.items() if each.default is not each.empty}
    settings = usual | {"epsilon": float(epsilon), "delta": float(delta), "preprocessor_eps": 0.0, "method": "sample"}
    versions = ", ".join(f"{each} {metadata.version(each)}" for each in ("smartnoise-synth", "mbi"))
    spent["settings"] = f"{kind} ({versions}) with {settings}"
    np.savez(target, codes=sampled[list(frame.columns)].to_numpy().T.astype(np.uint16))
    print(json.dumps(spent))


if __name__ == "__main__":
    main()
