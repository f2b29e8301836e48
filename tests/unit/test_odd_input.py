"""Unusual but legitimate input to privatising, statistics and inference: nothing leaks, nothing is counted twice."""

from fractions import Fraction

import numpy as np
import pytest

import privurn
from privurn.errors import CertificateError, DomainError, FormatError, ModelError
from privurn.mechanisms.local import LaplaceChannel, RandomisedResponseChannel
from privurn.privacy.entropy import SeededEntropy, SystemEntropy
from privurn.privacy.laws.noise import ratio_up

pytestmark = pytest.mark.filterwarnings("ignore::privurn.inference.draws.NotMixed")
"""Chains are short: what they say is not judged here."""


@pytest.mark.parametrize(
    "job",
    [
        lambda path: privurn.privatise(path, domain=privurn.Bounds(0, 100), epsilon=1),
        lambda path: privurn.release(path, domain=privurn.Grid(0, 100, 1), epsilon=1),
        lambda path: privurn.compare(path, domain=privurn.Grid(0, 100, 10), epsilon=1, runs=privurn.Runs(1)),
    ],
    ids=["privatise", "release", "compare"],
)
def test_a_file_without_a_header_does_not_publish_its_first_record(job, tmp_path):
    file = tmp_path / "noheader.csv"
    file.write_text("42.125\n17.5\n3\n99\n")
    with pytest.raises(DomainError, match="must be named") as caught:
        job(file)
    assert "42.125" not in str(caught.value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 2.5])
@pytest.mark.parametrize("name", ["records", "guess", "copies"])
def test_numbers_that_are_no_whole_ones_are_refused_in_words(name, number):
    with pytest.raises(ModelError, match="whole number"):
        privurn.release(
            np.arange(50.0), privurn.NoisyTree(**{name: number}), domain=privurn.Grid(0, 49, 1), epsilon=1, ledger=False
        )


@pytest.mark.parametrize(
    "channel", [LaplaceChannel.calibrate(bounds=(0, 1), epsilon=1), RandomisedResponseChannel(categories=3, odds=Fraction(2))]
)
def test_channels_do_not_raise_on_content(channel):
    for record in ("SECRET", 10**400, -(10**400), None, float("nan")):
        released = channel.privatise(np.array([record, 0.5], dtype=object), entropy=SystemEntropy())
        assert len(released) == 2
        assert np.isfinite(released).all()


def test_records_do_not_spill_beside_the_callers_work(tmp_path):
    from privurn.tables import open_table

    with open_table(np.arange(3.0)) as source:
        assert source.connection.sql("SELECT current_setting('temp_directory')").fetchall() == [("",)]


def test_a_file_of_statistics_of_an_earlier_version_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "stats.json").write_text('{"schema": "privurn-statistics/2", "statistics": {}, "certificate": {}}')
    with pytest.raises(CertificateError, match="noisy statistics are a folder now"):
        privurn.infer(tmp_path / "stats.json")
    assert not privurn.verify(tmp_path / "stats.json").valid


def _frame():
    import pandas as pd

    return pd.DataFrame({"visits": np.arange(9)})


def test_quotients_of_large_whole_numbers_are_rounded_up():
    rng = np.random.default_rng(1)
    for numerator in rng.integers(2**53, 2**62, 2000).tolist():
        denominator = float(rng.uniform(0.5, 9))
        assert Fraction(ratio_up(numerator | 1, denominator)) * Fraction(denominator) >= numerator | 1


def test_a_pure_channel_takes_no_delta():
    with pytest.raises(ModelError, match="no delta"):
        privurn.privatise(np.arange(5.0), domain=privurn.Bounds(0, 5), epsilon=1, delta=1e-6)


def counted(folder, **how):
    data = np.random.default_rng(1).beta(2, 5, 400)
    made = privurn.release(data, domain=privurn.Grid(0, 1, "0.1"), epsilon=2, delta=1e-5, **{"mechanism": privurn.Urn(), **how})
    return made.save(folder)


def test_the_same_release_twice_tells_no_more(tmp_path):
    made = counted(tmp_path / "out")
    for both in ([made, made], [tmp_path / "out", str(tmp_path / "out")], [made, tmp_path / "out"]):
        with pytest.raises(FormatError, match="named twice"):
            privurn.infer(both)


def test_labels_with_and_in_them_and_booleans():
    labels = np.array(["salt-and-pepper", "none"])[np.random.default_rng(2).integers(0, 2, 300)]
    listed = privurn.Categories(["salt-and-pepper", "none"], outside="other")
    made = privurn.release(labels, privurn.Urn(), domain=listed, epsilon=2, delta=1e-5)
    assert privurn.infer(made, run=privurn.Run(draws=20, chains=1, warm_up=5)).names == (
        "P(value=salt-and-pepper)",
        "P(value=none)",
    )
    import pandas as pd

    frame = pd.DataFrame({"smokes": np.random.default_rng(3).random(300) < 0.3})
    seeded = {"epsilon": 2, "delta": 1e-5, "entropy": SeededEntropy(1)}  # the posterior's place depends on the release
    made = privurn.release(frame, privurn.Urn(), domain=privurn.Categories([True, False], outside="other"), **seeded)
    found = privurn.infer(made, run=privurn.Run(draws=200, chains=1, warm_up=20, seed=1))
    assert 0.15 < found.summary()[0].mean < 0.45


@pytest.mark.parametrize("mechanism", [privurn.OpenUrn(strength=50), privurn.PitmanYorUrn(strength=50, discount="0.25")])
def test_a_label_that_looks_fresh_is_told_apart(mechanism):
    labels = np.array(["new_1", "b"])[np.random.default_rng(4).integers(0, 2, 3000)]
    made = privurn.release(
        labels,
        domain=privurn.OpenLabels(),
        mechanism=mechanism,
        epsilon=4,
        delta=0.02,
        entropy=SeededEntropy(1),
    )
    published = set(made.data.tolist())
    assert "new__1" in published
    found = privurn.infer(made, ask=["P(x=new__1)"], run=privurn.Run(draws=200, chains=1, seed=1))
    assert found.summary()[0].mean > 0.2
