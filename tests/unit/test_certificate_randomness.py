"""What certificates say of the source of their randomness, and that nothing else verifies."""

import numpy as np
import pandas as pd
import pytest

import privurn
from privurn.certificates.verify import verify
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic
from privurn.privacy.certificate import Certificate
from privurn.privacy.entropy import SeededEntropy, SystemEntropy
from privurn.releases.privatise import privatise
from privurn.releases.statistics import release_statistics

DATA = np.arange(60.0) % 3
GRID = privurn.Grid(0, 2, 1)
LABELS = pd.DataFrame({"kind": ["a"] * 500 + ["b"] * 400})


def released(entropy=None, **extra):
    return privurn.release(
        DATA, **{"mechanism": privurn.Urn(), "domain": GRID, "epsilon": 1, "delta": 1e-6, "entropy": entropy, **extra}
    )


WITH_NOISE = {
    "perturbed histogram": lambda entropy=None: released(entropy, mechanism=privurn.NoisyCounts()),
    "noisy counts": lambda entropy=None: released(entropy, mechanism=privurn.NoisyCounts(publish="counts")),
    "laplace": lambda entropy=None: privatise(DATA, domain=privurn.Bounds(0, 2), epsilon=1, entropy=entropy),
    "wavelet": lambda entropy=None: privatise(
        DATA, privurn.HaarWavelet(levels=1), domain=privurn.Bounds(0, 2), epsilon=1, entropy=entropy
    ),
    "discovered labels": lambda entropy=None: privurn.release(
        LABELS, domain={"kind": privurn.OpenLabels()}, epsilon=4, delta=1e-3, entropy=entropy
    ),
}
WITHOUT = {
    "urn": released,
    "smoothed histogram": lambda entropy=None: released(entropy, mechanism=privurn.Smoothed()),
    "randomised response": lambda entropy=None: privatise(
        DATA, privurn.RandomisedResponse(), domain=privurn.Categories([0, 1, 2], outside="other"), epsilon=1, entropy=entropy
    ),
}


@pytest.mark.parametrize("what", [*WITH_NOISE, *WITHOUT])
def test_the_source_is_named(what, tmp_path):
    make = {**WITH_NOISE, **WITHOUT}[what]
    said = make().save(tmp_path / "made").certificate["randomness"]
    assert ("OpenDP" in said) == (what in WITH_NOISE)
    assert "os.urandom" in said
    assert privurn.verify(tmp_path / "made").reasons == ()
    assert make(SeededEntropy(3)).certificate["randomness"] == "seeded: not private"


REFUSED = "the source of randomness is not the private one"


def reasons(what, said, folder):
    """Why a release whose certificate is sealed again with another source of randomness does not verify."""
    {**WITH_NOISE, **WITHOUT}[what]().save(folder / "made")
    path = folder / "made" / "certificate.json"
    fields = {**Certificate.read(path).data, "randomness": said}
    path.write_text(Certificate.seal(fields).to_json())
    return privurn.verify(folder / "made").reasons


@pytest.mark.parametrize(("what", "said"), [
    *((what, SystemEntropy.description) for what in WITH_NOISE),
    ("laplace", "a coin"),
    ("urn", "OpenDP"),
])  # fmt: skip
def test_another_source_is_refused(what, said, tmp_path):
    assert reasons(what, said, tmp_path) == (REFUSED,)


def test_an_urn_does_not_claim_opendps_noise(tmp_path):
    said = WITH_NOISE["laplace"]().certificate["randomness"]
    assert reasons("urn", said, tmp_path) == (REFUSED,)


def test_statistics_name_it_too(tmp_path):
    budget = Budget(epsilon=1, neighbouring="add-remove")
    made = BernoulliStatistic.calibrated(column="column_0", budget=budget)
    path = tmp_path / "statistics"
    out = release_statistics(np.ones((5, 1)), mechanism=made, budget=budget).save(path)
    assert "OpenDP" in out.certificate["randomness"]
    assert verify(path).reasons == ()
    for said in (SystemEntropy.description, "a coin"):
        (path / "certificate.json").write_text(out.certificate.with_fields(randomness=said).to_json())
        assert verify(path).reasons == (REFUSED,)
    seeded = release_statistics(np.ones((5, 1)), mechanism=made, budget=budget, entropy=SeededEntropy(1))
    assert seeded.certificate["randomness"] == "seeded: not private"
