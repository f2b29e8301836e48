"""Where no mechanism is named: is the noisy tree the least of the plan, and by how much, from few records to many?

For every setting the expected W1 of the tree, as `privurn plan` shows it, over that of the best of the rest that a release
could make in its place: ordered cells (one column, two columns, one with special cells), both relations, three deltas. Printed
are the largest ratio for each n epsilon, and the settings where the tree is not the least. About ten minutes of one core.

    python -m benchmarks.least_error
    python -m benchmarks.least_error --cells 8 --products 1 5
"""

import argparse
from collections.abc import Iterator
from itertools import product

from privurn.domain import Grid, JointDomain
from privurn.errors import PrivurnError
from privurn.mechanisms.forecast import Expected
from privurn.mechanisms.recipe import Public
from privurn.privacy.profile import Guarantee, Neighbouring
from privurn.releases.forecast import Forecasts
from privurn.releases.usual import LeastError, planned

PRODUCTS, EPSILONS, CELLS = (1.0, 5.0, 20.0, 100.0, 250.0, 1_000.0, 10_000.0), (0.01, 1.0, 4.0), (2, 8, 32, 256, 1024)
DELTAS: tuple[float, ...] = (0.0, 1e-6, 1e-3)
RELATIONS: tuple[Neighbouring, ...] = ("replace-one", "add-remove")


def domains(cells: tuple[int, ...]) -> Iterator[tuple[str, JointDomain]]:
    """By what they are called: one column, and then what has two or special cells."""
    for each in cells:
        yield f"{each} cells", JointDomain({"x": Grid(0, each - 1, 1)})
    for sides in ((3, 3), (16, 16)):
        axes = {name: Grid(0, side - 1, 1) for name, side in zip("xy", sides, strict=True)}
        yield f"two columns, {sides[0]} x {sides[1]}", JointDomain(axes)
    for each in (3, 32):
        yield f"{each} cells and two special ones", JointDomain({"x": Grid(0, each - 1, 1, nulls="cell", outside="other")})


def ratio(size: int, guarantee: Guarantee, domain: JointDomain) -> tuple[float, str] | None:
    """W1 of the tree over that of the best of the rest, and what that is; None where the rest cannot be had."""
    secret = guarantee.neighbouring == "add-remove"
    public = Public(
        n=None if secret else size, guess=size if secret else None, cells=domain.size, guarantee=guarantee, domain=domain
    )
    forecasts = Forecasts(public)
    found: dict[str, Expected] = {}
    for kind in LeastError.candidates(domain):
        for row in planned(kind(records=size if secret else None), public):
            expected = forecasts.told(row).expected if row.asked is not None else None
            if expected is not None and expected.distance <= found.get(row.mechanism, expected).distance:
                found[row.mechanism] = expected
    tree = found.pop("noisy-tree", None)
    if tree is None or not found:
        return None
    name = min(found, key=lambda each: found[each].distance)
    return tree.distance / found[name].distance, name


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cells", type=int, nargs="+", default=CELLS)
    parser.add_argument("--products", type=float, nargs="+", default=PRODUCTS, help="n times epsilon")
    asked = parser.parse_args() if __name__ == "__main__" else parser.parse_args([])
    print(f"{'n epsilon':>10}  {'one column':>10}  {'two columns, or special cells':>30}", flush=True)
    lost: list[str] = []
    for times in asked.products:
        worst = {True: 0.0, False: 0.0}
        for (name, domain), epsilon, delta, relation in product(list(domains(asked.cells)), EPSILONS, DELTAS, RELATIONS):
            size = round(times / epsilon)
            if not 2 <= size <= 1_000_000:
                continue
            try:
                found = ratio(size, Guarantee(epsilon=epsilon, delta=delta, neighbouring=relation), domain)
            except PrivurnError:
                continue
            if found is None:
                continue
            single = name.endswith(" cells")
            worst[single] = max(worst[single], found[0])
            if found[0] > 1.0:
                lost.append(f"{found[0]:.3f}  {name}, n {size:,}, epsilon {epsilon:g}, delta {delta:g}, {relation}: {found[1]}")
        print(f"{times:10,g}  {worst[True]:10.2f}  {worst[False]:30.2f}", flush=True)
    print("\nwhere the tree is not the least:")
    print("\n".join(sorted(lost, reverse=True)) or "nowhere")


if __name__ == "__main__":
    main()
