"""Figures of Beta mixtures whose densities have no bound at 0 or 1, against the beta law itself."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from privurn.inference.draws import Draws
from privurn.inference.mixtures import cell_masses
from privurn.inference.mixtures.kernels import BetaKernel
from privurn.inference.mixtures.prior import measure_densities

ATOMS = np.array([[0.3, 0.2], [2.0, 0.1], [5.0, 9.0], [np.nan, np.nan]])
WEIGHTS = np.array([[0.5, 0.3, 0.2, 0.0], [0.0, 0.1, 0.9, 0.0], [1.0, 0.0, 0.0, 0.0]])


def drawn(cells, *, bounds=(0.0, 1.0)):
    """Masses of equal cells, and their edges."""
    edges = np.linspace(*bounds, cells + 1)
    atoms = np.broadcast_to(ATOMS, (len(WEIGHTS), *ATOMS.shape))
    posterior = SimpleNamespace(
        draws=Draws(variables={"weights": WEIGHTS[None], "atoms": atoms[None]}, markov=False),
        model=SimpleNamespace(kernel=BetaKernel()),
        densities=lambda grid: measure_densities(BetaKernel(), WEIGHTS[:, :3], atoms[:, :3], grid),
    )
    return cell_masses.masses_within_bounds(posterior, 0.5 * (edges[1:] + edges[:-1])), edges


def law(edges):
    below = np.stack([stats.beta.cdf(edges, a, b) for a, b in ATOMS[:3]])
    return np.diff(WEIGHTS[:, :3] @ below, axis=1)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-0.5, 2.0)])
def test_cells_hold_what_the_law_gives_them(bounds):
    masses, edges = drawn(256, bounds=bounds)
    np.testing.assert_allclose(masses, law(edges), atol=2e-4)


def test_middles_alone_would_lose_the_ends(monkeypatch):
    monkeypatch.setattr(cell_masses, "NEAR", 0.0)
    masses, edges = drawn(256)
    assert np.abs(masses - law(edges)).max() > 0.1
