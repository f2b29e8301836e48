"""Which tables may be the noisy counts of a tree: numbers that sum up as they are said to, exactly and however large."""

import numpy as np
import pyarrow as pa
import pytest

import privurn
from privurn.counts import CountTable
from privurn.domain import JointDomain
from privurn.mechanisms.noisy_tree import DrawnTree, PerturbedTree, TreeCounts
from privurn.mechanisms.registry import rebuild
from privurn.mechanisms.tree_content import BY_CHANCE, equal_sums, largest_probability
from privurn.privacy.additive_noise import simulated_noise
from privurn.privacy.certificate import Certificate, achieved, profile_points
from privurn.privacy.profile import Guarantee

DOMAIN = JointDomain({"x": privurn.Grid(0, 255, 1)})
TREE = PerturbedTree(n=900, shape=(256,), depths=(4, 8), scales=(3.0, 4.0), noise="discrete-laplace", tied=(8,))


def table(levels, counts_as="int64"):
    drawn = DrawnTree(TREE, TreeCounts(tuple(levels), np.empty(0, np.int64)))
    columns = {"x": pa.array(drawn.cells.astype(np.float64)), "depth": drawn.depth, "node": drawn.node}
    return pa.table(columns | {"count": pa.array([int(each) for each in drawn.weights]).cast(counts_as)})


def holds(levels, tree=TREE, counts_as="int64"):
    content = tree.content(DOMAIN.to_json())
    return all(content.holds(batch) for batch in table(levels, counts_as).to_batches(max_chunksize=100))


@pytest.fixture(scope="module")
def honest():
    cells = np.random.default_rng(1).multinomial(900, np.full(256, 1 / 256))
    return TREE.simulate(CountTable.from_cells(np.arange(256), cells), rng=np.random.default_rng(2)).levels


def test_what_sums_up_holds_and_what_does_not_is_refused(honest):
    top, leaves = honest
    assert holds(honest)
    assert holds(honest, counts_as="string")
    assert not holds((top, leaves + np.eye(1, 256, 7, dtype=np.int64)[0]))
    assert not holds(honest, counts_as="float64")


@pytest.mark.parametrize("size", [10**12, 10**17, 2**61])
def test_large_numbers_are_added_up_exactly(honest, size):
    top, leaves = (each.copy() for each in honest)
    top[0] += size
    leaves[3] += size
    assert holds((top, leaves))
    leaves[3] += 1
    assert not holds((top, leaves))


def test_sums_that_outgrow_64_bits_do_not_come_round_again(honest):
    top, leaves = (each.copy() for each in honest)
    leaves[:4] += 2**62
    assert np.array_equal(np.add.reduceat(leaves, np.arange(0, 256, 16)), top)
    assert not holds((top, leaves))
    assert equal_sums(np.array([1, 2, 3]), np.array([2, 1]), np.array([3, 3]))


def test_independent_noise_that_sums_up_everywhere_is_not_believed(honest):
    """Sixteen sums of numbers with noise of scale 4: by chance with probability 1e-14."""
    independent = PerturbedTree(n=900, shape=(256,), depths=(4, 8), scales=(3.0, 4.0), noise="discrete-laplace")
    assert largest_probability("laplace", 4.0) ** 16 < BY_CHANCE
    assert not holds(honest, independent)
    top, leaves = (each.copy() for each in honest)
    top[0] += 1
    assert holds((top, leaves), independent)
    quiet = PerturbedTree(n=900, shape=(256,), depths=(4, 8), scales=(0.05, 0.05), noise="discrete-laplace")
    assert holds(honest, quiet)  # so little noise is none nearly always


def test_the_bound_of_what_noise_may_be_is_one():
    for kind, scale in (("laplace", 0.3), ("laplace", 5.0), ("gaussian", 0.3), ("gaussian", 5.0)):
        drawn = simulated_noise((20_000,), noise=kind, scale=scale, rng=np.random.default_rng(3))
        assert np.mean(drawn == 0) <= largest_probability(kind, scale) + 0.02


def test_verify_convicts_a_claim_that_the_noise_was_independent(tmp_path):
    """Every stated figure is restated, so that only the numbers themselves tell."""
    values = np.random.default_rng(1).integers(0, 1000, 20_000)
    privurn.release(values, domain=privurn.Grid(0, 999, 1), epsilon=1, ledger=False).save(tmp_path / "out")
    path = tmp_path / "out" / "certificate.json"
    certificate = Certificate.read(tmp_path / "out")
    parameters = certificate["mechanism"]["parameters"]
    assert parameters["tied"]
    claimed = rebuild("noisy-tree", parameters | {"tied": []})
    guarantee = Guarantee(epsilon=1.0, delta=0.0)
    profile = claimed.unit_profile(guarantee)
    path.write_text(
        certificate.with_fields(
            mechanism=certificate["mechanism"] | {"parameters": parameters | {"tied": []}},
            rho=claimed.zcdp(guarantee),
            profile=profile_points(profile, also=1.0),
            achieved=achieved(profile, target={"epsilon": 1.0, "delta": 0.0}),
        ).to_json()
    )
    assert [each for each in privurn.verify(tmp_path / "out").reasons if "nodes and their numbers" in each]
