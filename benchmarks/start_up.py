"""How long until something happens? Targets: `import privurn` under 0.5 s, `privurn --help` under 1 s.

python -m benchmarks.start_up
"""

import subprocess
import sys
import time


def seconds(*words: str) -> float:
    times = []
    for _ in range(4):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def main() -> None:
    bare = seconds("-c", "pass")
    print(f"python alone        {bare:.2f} s")
    print(f"import privurn      {seconds('-c', 'import privurn') - bare:.2f} s more, limit 0.5 s")
    print(f"privurn --help      {seconds('-m', 'privurn', '--help'):.2f} s, limit 1 s")


if __name__ == "__main__":
    main()
