"""MST or AIM of smartnoise-synth on coded columns, in an environment of its own: run by `benchmarks.tables`, not imported.

    PEER_PYTHON benchmarks/table_peers.py mst 1.0 1e-6 codes.npz out.npz SEED

Everything as the package has it by default; no budget for finding domains, because the columns are coded already.
"""

import json
import sys
import time
from importlib import import_module

import numpy as np

CLASSES = {"mst": ("snsynth.mst", "MSTSynthesizer"), "aim": ("snsynth.aim", "AIMSynthesizer")}


def main() -> None:
    name, epsilon, delta, source, target, seed = sys.argv[1:]
    np.random.seed(int(seed))  # noqa: NPY002  the peers use the global generator
    pandas = import_module("pandas")
    given = np.load(source)
    frame = pandas.DataFrame({str(column): given["codes"][i] for i, column in enumerate(given["names"])})
    module, kind = CLASSES[name]
    start, processor = time.perf_counter(), time.process_time()
    made = getattr(import_module(module), kind)(epsilon=float(epsilon), delta=float(delta))
    made.fit(frame, categorical_columns=list(frame.columns), preprocessor_eps=0.0)
    sampled = made.sample(len(frame))
    spent = {"wall": time.perf_counter() - start, "processor": time.process_time() - processor}
    np.savez(target, codes=sampled[list(frame.columns)].to_numpy().T.astype(np.uint16))
    print(json.dumps(spent))


if __name__ == "__main__":
    main()
