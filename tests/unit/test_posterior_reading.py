"""Reading a release for inference: every mechanism's table comes back as it was drawn, and nothing false is believed."""

import json
import shutil
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import privurn
from privurn.domain import Bins, Categories, Grid, JointDomain
from privurn.errors import CertificateError, DomainError, FormatError, ModelError
from privurn.inference.counts.model import CountModel
from privurn.inference.counts.released import Observed, observe
from privurn.inference.infer import infer
from privurn.inference.run import Run
from privurn.mechanisms.dirichlet_multinomial import DirichletMultinomial
from privurn.privacy.certificate import Certificate
from privurn.privacy.entropy import SeededEntropy

pytestmark = pytest.mark.filterwarnings("ignore::privurn.inference.draws.NotMixed")
"""Chains are short: what they say is not judged here."""

RNG = np.random.default_rng(5)
ROWS = 3000
FRAME = pd.DataFrame(
    {
        "pay": np.where(RNG.random(ROWS) < 0.05, np.nan, RNG.gamma(4, 9000, ROWS)),
        "town": RNG.choice(["a, b", "c", "other town"], ROWS),
        "size": RNG.integers(1, 4, ROWS),
    }
)
PAIR = {"epsilon": 2, "delta": 1e-5}
QUICK = Run(draws=20, chains=2, warm_up=10, seed=1)


def same_table(release, folder):
    """The folder and the object say the same."""
    one, other = observe(release), observe(folder)
    assert np.array_equal(one.counts, other.counts)
    assert one.domain == other.domain
    assert one.mechanism == other.mechanism
    return one


KINDS = [
    {},
    {"mechanism": privurn.NoisyCounts()},
    {"mechanism": privurn.NoisyCounts(publish="counts", noise="laplace")},
    {"mechanism": privurn.Smoothed()},
    {"mechanism": privurn.PosteriorDraws(draws=2)},
    {"mechanism": privurn.OpenUrn(), "delta": 0.05},
]


@pytest.mark.parametrize("extra", KINDS, ids=lambda extra: " ".join(map(str, extra.values())) or "auto")
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_every_mechanism(extra, file_format, tmp_path):
    domain = {"pay": Grid(0, 80_000, 8_000, outside="other", nulls="cell"), "town": Categories(["a, b", "c"], outside="other")}
    made = privurn.release(FRAME, domain=domain, **{**PAIR, **extra}).save(tmp_path / "out", file_format=file_format)
    found = same_table(made, tmp_path / "out")
    data = made.data
    assert found.domain.size == 39
    if found.publishes_records:
        assert found.counts.sum() == len(data)
        mine = infer(made, ask=["P(town='a, b')", "P(pay=missing)", "P(pay=other)", "mean(pay)"], run=QUICK).face_value
        assert mine["P(town='a, b')"] == pytest.approx(np.mean(data.town == "a, b"))
        assert mine["P(pay=missing)"] + mine["P(pay=other)"] == pytest.approx(data.pay.isna().mean())  # NaN in pandas, both
        assert mine["mean(pay)"] == pytest.approx(data.pay.mean())
    else:
        name = "count" if isinstance(extra["mechanism"], privurn.NoisyCounts) else "probability"
        assert np.array_equal(found.counts.reshape(-1), data[name].to_numpy())


def test_bins_spread_out_and_numeric_categories(tmp_path):
    frame = FRAME.dropna()
    made = privurn.release(
        frame, privurn.Smoothed(), domain={"pay": Bins([0, 20_000, 50_000, 200_000], within="uniform")}, **PAIR
    ).save(tmp_path / "bins")
    found = same_table(made, tmp_path / "bins")
    assert np.array_equal(found.counts, np.histogram(made.data.pay, [0, 20_000, 50_000, 200_000])[0])
    made = privurn.release(FRAME, domain={"size": Categories([1.0, 2.0, 3.0], outside="other")}, **PAIR).save(
        tmp_path / "sizes"
    )
    found = same_table(made, tmp_path / "sizes")
    assert found.counts[:3].min() > 0


def test_open_labels(tmp_path):
    made = privurn.release(FRAME, domain={"town": privurn.OpenLabels()}, **PAIR).save(tmp_path / "found")
    found = same_table(made, tmp_path / "found")
    assert found.discovered
    assert found.domain.size == 4
    result = infer(made, run=QUICK)
    assert "P(town=c)" in result.names
    urn = privurn.release(FRAME, privurn.OpenUrn(), domain={"town": privurn.OpenLabels()}, epsilon=1, delta=0.05)
    seen = observe(urn)
    assert seen.domain is None
    result = infer(urn, run=QUICK)
    total = sum(each.mean for each in result.summary())
    assert result.names[-1] == "discovery"
    assert all(name.startswith("P(town=") for name in result.names[:-1])
    assert total == pytest.approx(1.0)
    assert not result.draws.markov
    for of in ("sample", "urn"):
        assert set(getattr(result, of).draws.variables) == set(result.names)
    assert sum(each.mean for each in result.naive().summary()) == pytest.approx(1.0)
    with pytest.raises(ModelError, match="no cells to put a prior on"):
        infer(urn, CountModel(prior=1), run=QUICK)
    with pytest.raises(DomainError, match="was not released"):
        infer(urn, ask="P(x=nowhere)", run=QUICK)
    with pytest.raises(FormatError, match="needs numbers"):
        infer(urn, ask="mean", run=QUICK)
    with pytest.raises(ModelError, match="one at a time"):
        infer([urn, urn], run=QUICK)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("release") / "out"
    privurn.release(FRAME.dropna(), privurn.Urn(), domain={"pay": Grid(0, 80_000, 8_000)}, **PAIR).save(path)
    return path


def edited(folder, tmp_path, change, *, seal=True):
    """A copy of the release with another certificate."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    data = json.loads((copy / "certificate.json").read_text())
    change(data)
    text = Certificate.seal(data).to_json() if seal else json.dumps(data)
    (copy / "certificate.json").write_text(text)
    return copy


def test_an_edited_file(folder, tmp_path):
    copy = edited(folder, tmp_path, lambda data: None)
    with (copy / "data.csv").open("a") as handle:
        handle.write("8000\n")
    with pytest.raises(CertificateError, match=r"does not verify.*was changed"):
        infer(copy, run=QUICK)


def test_a_certificate_of_another_release(folder, tmp_path):
    def other_prior(data):
        data["mechanism"]["parameters"]["alpha"] = "1000"

    with pytest.raises(CertificateError, match="does not verify"):
        infer(edited(folder, tmp_path, other_prior), run=QUICK)


def test_an_edited_certificate(folder, tmp_path):
    copy = edited(folder, tmp_path, lambda data: data.update(created="2020-01-01T00:00:00+00:00"), seal=False)
    with pytest.raises(CertificateError, match="it was edited"):
        infer(copy, run=QUICK)


def test_values_outside_the_domain(folder, tmp_path):
    """A file and a hash that fit each other, but not the domain."""
    from privurn.privacy.certificate import file_hash

    for i, wrong in enumerate(("8001", "-8000", "many", '""')):
        place = tmp_path / str(i)
        place.mkdir()
        copy = edited(folder, place, lambda data: None)
        lines = (copy / "data.csv").read_text().splitlines()
        (copy / "data.csv").write_text("\n".join([*lines[:-1], wrong]) + "\n")
        data = json.loads((copy / "certificate.json").read_text())
        data["output"]["sha256"] = file_hash(copy / "data.csv")
        (copy / "certificate.json").write_text(Certificate.seal(data).to_json())
        with pytest.raises(CertificateError, match="outside the domain"):
            infer(copy, run=QUICK)


def test_unknown_mechanism_and_newer_schema(folder, tmp_path):
    unknown = edited(folder, tmp_path, lambda data: data["mechanism"].update(name="quantum-urn"))
    with pytest.raises(CertificateError, match="'quantum-urn' is not known"):
        infer(unknown, run=QUICK)
    shutil.rmtree(unknown)
    newer = edited(folder, tmp_path, lambda data: data.update(schema="privurn-certificate/9"))
    with pytest.raises(CertificateError, match=r"certificate/9.*this one reads"):
        infer(newer, run=QUICK)


def test_what_is_no_release(tmp_path):
    with pytest.raises(FormatError, match="there is no"):
        infer(tmp_path / "nowhere")
    with pytest.raises(FormatError, match="no release was given"):
        infer([])
    with pytest.raises(FormatError, match="is no release"):
        infer(3)


def test_one_record():
    one = DirichletMultinomial(n=10, cells=3, alpha=Fraction(5), records=1)
    with pytest.raises(ModelError, match="one released record"):
        Observed(mechanism=one, domain=JointDomain({"x": Grid(0, 2, 1)}), counts=np.array([0, 1, 0]))
    made = privurn.release(FRAME, privurn.Urn(records=1), domain={"size": Categories([1, 2, 3], outside="other")}, **PAIR)
    with pytest.raises(ModelError, match="one released record"):
        infer(made)


def test_a_seeded_release_can_be_analysed():
    made = privurn.release(FRAME, domain={"size": Categories([1, 2, 3], outside="other")}, entropy=SeededEntropy(1), **PAIR)
    assert infer(made, run=QUICK).names == ("P(size=1)", "P(size=2)", "P(size=3)")


def test_several_releases_must_fit(folder):
    coarse = privurn.release(FRAME.dropna(), privurn.Urn(), domain={"pay": Grid(0, 80_000, 16_000)}, **PAIR)
    with pytest.raises(ModelError, match="different domains"):
        infer([folder, coarse], run=QUICK)
    fewer = privurn.release(FRAME.dropna()[:2000], privurn.Urn(), domain={"pay": Grid(0, 80_000, 8_000)}, **PAIR)
    with pytest.raises(ModelError, match="different numbers of records"):
        infer([folder, fewer], run=QUICK)


def test_mechanisms_without_a_likelihood():
    made = privurn.release(
        FRAME, privurn.Exponential(records=50), domain={"size": Categories([1, 2, 3], outside="other")}, epsilon=2
    )
    with pytest.raises(ModelError, match="exponential"):
        infer(made, run=QUICK)
