"""Privatising a column: what comes out, what the certificate says and verifies, and what is refused."""

import importlib.util
import itertools
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import binomtest

import privurn
from privurn.certificates.verify import verify
from privurn.errors import BudgetExceeded, DomainError, FormatError, ModelError, NotCertifiable, PrivurnError
from privurn.inference.published import published
from privurn.mechanisms.local import (
    GaussianChannel,
    HaarWaveletChannel,
    LaplaceChannel,
    NoisyStatisticChannel,
    RandomisedResponseChannel,
    SmoothedHistogramChannel,
)
from privurn.mechanisms.local.local_release import LocalRelease
from privurn.mechanisms.registry import rebuild
from privurn.privacy.certificate import Certificate
from privurn.privacy.entropy import SeededEntropy
from privurn.privacy.ledger import Ledger
from privurn.releases.privatise import privatise

DATA = np.random.default_rng(0).normal(50, 15, 300)
SECRET = 86753.09
FALSE_ALARM = 1e-6
KINDS = [
    {"channel": privurn.Laplace(), "domain": privurn.Bounds(0, 100), "epsilon": 2},
    {"channel": privurn.Gaussian(), "domain": privurn.Bounds(0, 100), "epsilon": 2, "delta": 1e-6},
    {"channel": privurn.Gaussian(calibration="zcdp"), "domain": privurn.Bounds(0, 100), "epsilon": 2, "delta": 1e-6},
    {"channel": privurn.Gaussian(calibration="classical"), "domain": privurn.Bounds(0, 100), "epsilon": 0.9, "delta": 1e-6},
    {"channel": privurn.HaarWavelet(levels=2), "domain": privurn.Bounds(0, 100), "epsilon": 5},
    {"channel": privurn.HaarWavelet(levels=2, calibration="butucea2020"), "domain": privurn.Bounds(0, 100), "epsilon": 5},
    {"channel": privurn.DiscreteLaplace(), "domain": privurn.Bounds(0, 100), "epsilon": 2},
    {"channel": privurn.DiscreteGaussian(), "domain": privurn.Bounds(0, 100), "epsilon": 2, "delta": 1e-6},
    {"channel": privurn.Laplace(), "domain": privurn.Bounds(0, 100), "epsilon": 600},
    {"channel": privurn.Laplace(), "domain": privurn.Bounds(-1e6, 1e6), "epsilon": 1e-4},
    {"channel": privurn.Laplace(), "domain": privurn.Bounds(0, 100), "epsilon": 2, "contributions": 3},
    {"channel": privurn.Gaussian(), "domain": privurn.Bounds(0, 100), "epsilon": 2, "delta": 1e-6, "contributions": 3},
]


def words(extra):
    return " ".join(str(value) for value in extra.values())


def resealed(folder, change):
    """Edit a saved certificate and seal it again, as a careful liar would."""
    data = json.loads((folder / "certificate.json").read_text())
    change(data)
    (folder / "certificate.json").write_text(Certificate.seal(data).to_json())
    return verify(folder)


# ---- what comes out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", KINDS, ids=words)
def test_privatise_save_verify(extra, tmp_path):
    made = privatise(DATA, **extra).save(tmp_path / "out")
    verdict = verify(tmp_path / "out")
    assert verdict.valid, verdict.reasons
    certificate = made.certificate
    assert certificate["mechanism"]["name"] == f"local-{extra['channel'].alias}"
    assert certificate["neighbouring"] == "replace-one"
    assert certificate["achieved"]["epsilon"] <= extra["epsilon"]
    assert certificate["achieved"]["delta"] <= extra.get("delta", 0.0)
    assert certificate["assumptions"][0].startswith("Local model")
    assert len(made.data) == certificate["n"] == 300
    channel = rebuild(**Certificate.read(tmp_path / "out")["mechanism"]).channel
    stated = certificate["mechanism"]
    assert rebuild(stated["name"], stated["parameters"]) == LocalRelease(n=300, channel=channel)
    inside = np.clip(DATA, *channel.bounds)
    if not isinstance(extra["channel"], privurn.HaarWavelet):
        assert np.mean(made.data) == pytest.approx(np.mean(inside), abs=8 * 1.5 * channel.scale / math.sqrt(300))
    else:
        assert made.data.shape == (300, 7)
        assert certificate["columns"][:3] == ["value_0_0", "value_1_0", "value_1_1"]


@pytest.mark.parametrize(
    "make",
    [
        lambda column: column,
        lambda column: pd.DataFrame({"value": column}),
        lambda column: pd.Series(column, name="value"),
        lambda column: pl.DataFrame({"value": column}),
        lambda column: pa.table({"value": column}),
        lambda column: duckdb.from_arrow(pa.table({"value": column})),
    ],
    ids=["numpy", "pandas", "pandas series", "polars", "arrow", "duckdb"],
)
def test_the_same_kind_of_frame_comes_out(make):
    frame = make(DATA)
    out = privatise(frame, domain=privurn.Bounds(0, 100), epsilon=600, order="kept").data
    assert type(out).__name__ == ("DataFrame" if "pandas" in type(frame).__module__ else type(frame).__name__)
    column = (
        out
        if isinstance(out, np.ndarray)
        else np.array(out["value"] if not hasattr(out, "fetchnumpy") else out.fetchnumpy()["value"])
    )
    np.testing.assert_allclose(column, np.clip(DATA, 0, 100), atol=5)  # 30 scales: 300 e^-30 = 3e-11
    assert np.corrcoef(column, DATA)[0, 1] > 0.99


def test_order_is_shuffled_unless_kept():
    kept = privatise(DATA, domain=privurn.Bounds(0, 100), epsilon=600, order="kept")
    shuffled = privatise(DATA, domain=privurn.Bounds(0, 100), epsilon=600)
    assert np.corrcoef(kept.data, DATA)[0, 1] > 0.99
    assert abs(np.corrcoef(shuffled.data, DATA)[0, 1]) < 0.5
    np.testing.assert_allclose(np.sort(shuffled.data), np.sort(np.clip(DATA, 0, 100)), atol=5)
    assert shuffled.certificate["mechanism"]["parameters"]["order"] == "shuffled"


def test_files_keep_their_order_too(tmp_path):
    values = np.arange(5000.0)
    (tmp_path / "long.csv").write_text("x,y\n" + "".join(f"{value},a\n" for value in values))
    out = privatise(tmp_path / "long.csv", domain={"x": privurn.Bounds(0, 5000)}, epsilon=600, order="kept")
    np.testing.assert_allclose(out.data["x"].to_numpy(), values, atol=40 * 5000 / 600)
    assert np.corrcoef(out.data["x"].to_numpy(), values)[0, 1] > 0.999
    labels = np.array(list("abcd"))[np.random.default_rng(1).integers(0, 4, 3000)]
    (tmp_path / "labels.csv").write_text("t\n" + "\n".join(labels) + "\n")
    again = privatise(
        tmp_path / "labels.csv",
        privurn.RandomisedResponse(),
        domain={"t": privurn.Categories(list("abcd"), outside="other")},
        epsilon=40,
        order="kept",
    )
    assert again.data["t"].to_pylist() == labels.tolist()  # kept with probability 1 - 2e-17


def test_records_outside_the_bounds_are_clamped_and_nothing_raises():
    strange, bounds = np.array([-math.inf, math.inf, math.nan, -5.0, SECRET]), privurn.Bounds(0, 10, nulls="lower")
    out = privatise(strange, domain=bounds, epsilon=600, order="kept")
    np.testing.assert_allclose(out.data, [0, 10, 0, 0, 10], atol=1)
    wave = privatise(strange, privurn.HaarWavelet(levels=1), domain=bounds, epsilon=600, order="kept")
    assert (np.sign(wave.data[:, 0]) == [1, -1, 1, 1, -1]).all()


@pytest.mark.parametrize("n", [1, 2])
def test_few_records_and_equal_records(n):
    out = privatise(np.full(n, 3.0), domain=privurn.Bounds(0, 10), epsilon=1)
    assert out.data.shape == (n,)


def test_randomised_response_with_other_and_missing_values(tmp_path):
    frame = pd.DataFrame({"town": ["a", "b", None, "zebra"] * 50})
    made = privatise(
        frame,
        privurn.RandomisedResponse(),
        domain=privurn.Categories(["a", "b"], nulls="cell", outside="other"),
        epsilon=40,
        order="kept",
    )
    assert made.data.town[:2].tolist() == ["a", "b"]
    assert made.data.town[3] == "other"
    assert pd.isna(made.data.town[2])
    made.save(tmp_path / "out")
    assert verify(tmp_path / "out").valid
    assert rebuild(**made.certificate["mechanism"]).channel.categories == 4
    numbers = privatise(
        np.array([1, 2, 3] * 9), privurn.RandomisedResponse(), domain=privurn.Categories([1, 2, 3], outside="other"), epsilon=1
    )
    assert numbers.certificate["mechanism"]["parameters"]["channel"]["categories"] == 4
    assert len(numbers.data) == 27


def test_missing_numbers_are_declared():
    frame = pl.DataFrame({"x": [1.0, None, 3.0]})
    with pytest.raises(DomainError, match="missing values in 'x'"):
        privatise(frame, domain=privurn.Bounds(0, 10), epsilon=1)
    out = privatise(frame, domain=privurn.Bounds(0, 10, nulls="lower"), epsilon=600, order="kept")
    assert out.data["x"].to_list() == pytest.approx([1, 0, 3], abs=1)
    assert out.certificate["domain"]["nulls"] == "lower"


def test_a_channel_object_brings_its_own_guarantee(tmp_path):
    channel = GaussianChannel.from_rho(bounds=(0, 100), rho=0.5)
    made = privatise(DATA, channel=channel, delta=1e-6).save(tmp_path / "out")
    assert verify(tmp_path / "out").valid
    assert made.certificate["target"]["epsilon"] == channel.profile.epsilon(1e-6)
    assert made.certificate["rho"] == pytest.approx(0.5, rel=1e-9)
    assert rebuild(**made.certificate["mechanism"]).channel == channel
    pure = privatise(DATA, channel=LaplaceChannel(bounds=(0, 100), scale=50.0))
    assert pure.certificate["target"] == {"epsilon": 2.0, "delta": 0.0}
    with pytest.raises(NotCertifiable, match="no finite epsilon"):
        privatise(DATA, channel=channel)
    with pytest.raises(NotCertifiable, match="does not meet"):
        privatise(DATA, channel=channel, epsilon=0.1, delta=1e-6)
    odds = RandomisedResponseChannel(categories=3, odds=Fraction(3))
    answers = privatise(np.array(["a", "b"] * 5), odds, domain=privurn.Categories(["a", "b"], outside="other"))
    assert answers.certificate["achieved"]["epsilon"] == pytest.approx(math.log(3))
    with pytest.raises(ModelError, match="another number of categories"):
        privatise(np.array(["a", "b"] * 5), odds, domain=privurn.Categories(["a", "b", "c"], outside="other"))


# ---- ledger ----------------------------------------------------------------------------------------------------------


def test_the_ledger_pays_first(tmp_path):
    Ledger.create(tmp_path / "l", epsilon=3.0, delta=0.0)
    privatise(DATA, domain=privurn.Bounds(0, 100), epsilon=2, ledger=tmp_path / "l").save(tmp_path / "out")
    ledger = Ledger(tmp_path / "l")
    assert ledger.remaining() == {"epsilon": 1.0, "delta": 0.0}
    assert ledger.entries()[0].status == "released"
    with pytest.raises(BudgetExceeded):
        privatise(DATA, domain=privurn.Bounds(0, 100), epsilon=2, ledger=ledger)
    assert verify(tmp_path / "out").valid


def test_rho_budgets_are_for_gaussian_noise_too(tmp_path):
    ledger = Ledger.create(tmp_path / "l", rho=1.0, contributions=2)
    channel = GaussianChannel.from_rho(bounds=(0, 100), rho=0.25)
    privatise(DATA, channel=channel, delta=1e-6, contributions=2, ledger=ledger)
    assert ledger.remaining()["rho"] == pytest.approx(0.5, rel=1e-9)  # two records: twice the rho, for independent noise


def test_nothing_is_paid_for_what_is_refused(tmp_path):
    ledger = Ledger.create(tmp_path / "l", epsilon=3.0)
    for bad in (
        {},
        {"domain": privurn.Categories(["a"], outside="other"), "channel": privurn.Laplace()},
        {"domain": {"absent": privurn.Bounds(0, 1)}},
    ):
        with pytest.raises(PrivurnError):
            privatise(DATA, epsilon=1, ledger=ledger, **bad)
    assert ledger.remaining()["epsilon"] == 3.0


# ---- verification ----------------------------------------------------------------------------------------------------


def test_edits_are_found(tmp_path):
    def edited(change, extra=KINDS[0]):
        folder = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        privatise(DATA, **extra).save(folder)
        assert verify(folder).valid
        return resealed(folder, change)

    def channel(data):
        return data["mechanism"]["parameters"]["channel"]

    for change in (
        lambda data: channel(data).update(scale=25.0),  # half the noise
        lambda data: channel(data).update(upper=50.0),
        lambda data: channel(data).update(steps=2**19),
        lambda data: data["domain"].update(upper=50.0),
        lambda data: data["domain"].update(nulls="dropped"),
        lambda data: data["domain"].update(kind="grid"),
        lambda data: data["domain"].update(column="other"),
        lambda data: data["mechanism"].update(name="local-gaussian"),
        lambda data: data["mechanism"].update(name="local-unheard"),
        lambda data: data["mechanism"]["parameters"].update(n=301),
        lambda data: data["mechanism"]["parameters"].update(order="sorted"),
        lambda data: data.update(assumptions=data["assumptions"][1:]),
        lambda data: data.update(columns=["value", "more"]),
        lambda data: data["target"].update(epsilon=1.0),
        lambda data: data["achieved"].update(epsilon=1.0),
        lambda data: data.update(rho=1.0),
        lambda data: data.pop("rho"),
        lambda data: data["profile"][0].update(delta=0.0),
    ):
        assert not edited(change).valid
    answers = {"channel": privurn.RandomisedResponse(), "domain": privurn.Categories(["a"], outside="other"), "epsilon": 1}
    assert not edited(lambda data: channel(data).update(categories=3), answers).valid
    assert not edited(
        lambda data: data.update(domain={"kind": "bounds", "column": "value", "lower": 0.0, "upper": 1.0}), answers
    ).valid
    whole = {"mechanism": privurn.Urn(), "domain": privurn.Grid(0, 100, 10), "epsilon": 1, "delta": 1e-6}
    privurn.release(DATA, **whole).save(tmp_path / "urn")
    bounds = {"kind": "bounds", "column": "value", "lower": 0.0, "upper": 100.0, "nulls": "error"}
    assert not resealed(tmp_path / "urn", lambda data: data.update(domain=bounds)).valid


def test_a_seeded_release_says_so(tmp_path):
    made = privatise(DATA, domain=privurn.Bounds(0, 100), epsilon=1, entropy=SeededEntropy(1)).save(tmp_path / "out")
    assert made.certificate["private"] is False
    assert not verify(tmp_path / "out").valid


def test_channels_of_other_releases(tmp_path):
    bins = privurn.Bins([0, 25, 50, 75, 100])
    smooth = privurn.release(DATA, privurn.Smoothed(records=20), domain=bins, epsilon=3)
    channel = published(smooth, mixture=True).numbers.channel
    assert isinstance(channel, SmoothedHistogramChannel)
    assert channel.profile == rebuild("smoothed-histogram", smooth.certificate["mechanism"]["parameters"]).profile
    assert math.isfinite(channel.log_density(channel.bin_of(smooth.data), DATA))
    counts = privurn.release(DATA, privurn.NoisyCounts(publish="counts"), domain=bins, epsilon=3)
    noisy = published(counts, mixture=True).numbers.channel
    assert isinstance(noisy, NoisyStatisticChannel)
    assert noisy.profile == rebuild("perturbed-histogram", counts.certificate["mechanism"]["parameters"]).profile
    assert math.isfinite(noisy.log_density(counts.data[:, 1], DATA))
    for domain, extra in (
        (privurn.Bins([0, 25, 100]), {"mechanism": privurn.Smoothed()}),
        (privurn.Grid(0, 100, 25), {"mechanism": privurn.Smoothed()}),
        (bins, {"mechanism": privurn.NoisyCounts()}),
        (bins, {"mechanism": privurn.Urn()}),
    ):
        with pytest.raises(ModelError, match="a mixture is no model of counts of"):
            published(privurn.release(DATA, domain=domain, epsilon=3, **extra), mixture=True)


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": 1}, DomainError, "domain of a column is missing"),
        ({"domain": privurn.Bounds(0, 1)}, ModelError, "epsilon is missing"),
        ({"domain": privurn.Bounds(0, 1), "epsilon": 0}, ModelError, "epsilon must be positive"),
        ({"domain": privurn.Bounds(0, 1), "epsilon": -2}, ModelError, "epsilon must be positive"),
        ({"domain": privurn.Bounds(0, 1), "epsilon": 1e4}, ModelError, "at most 600"),
        ({"domain": privurn.Bounds(0, 1), "epsilon": 1, "channel": "laplace"}, FormatError, "not one that can be asked for"),
        (
            {"domain": privurn.Bounds(0, 1), "epsilon": 1, "channel": privurn.HaarWavelet(levels=-1)},
            ModelError,
            "levels must be",
        ),
        ({"channel": privurn.Gaussian(), "domain": privurn.Bounds(0, 1), "epsilon": 1}, ModelError, "never pure"),
        (
            {"channel": privurn.RandomisedResponse(), "domain": privurn.Bounds(0, 1), "epsilon": 1},
            DomainError,
            "for categories",
        ),
        ({"domain": privurn.Bounds(0, 1), "epsilon": 1, "order": "sorted"}, ModelError, "order 'sorted'"),
        ({"domain": privurn.Bounds(0, 1), "epsilon": 1, "contributions": 0}, ModelError, "contributions"),
        (
            {"channel": privurn.Gaussian(calibration="classical"), "domain": privurn.Bounds(0, 1), "epsilon": 2, "delta": 0.01},
            NotCertifiable,
            "up to 1 only",
        ),
        (
            {"channel": LaplaceChannel(bounds=(0, 1), scale=1), "domain": privurn.Bounds(0, 2), "epsilon": 1},
            ModelError,
            "other bounds",
        ),
    ],
)
def test_refusals_say_what_is_missing(arguments, error, message):
    with pytest.raises(error, match=message):
        privatise(DATA, **arguments)


@pytest.mark.parametrize(
    ("ends", "message"),
    [((1, 0), "the lower one first"), ((0, math.inf), "finite"), ((0, "x"), "two numbers"), ((0, 1, "cell"), "nulls='cell'")],
)
def test_bounds_that_are_none_are_refused_when_declared(ends, message):
    with pytest.raises(DomainError, match=message):
        privurn.Bounds(*ends)


@pytest.mark.parametrize(("channel", "field"), [(privurn.Laplace, "levels"), (privurn.RandomisedResponse, "calibration")])
def test_a_channel_knows_its_own_fields_only(channel, field):
    with pytest.raises(TypeError, match=field):
        channel(**{field: 1})


def test_tables_that_cannot_be_used():
    with pytest.raises(DomainError, match="empty"):
        privatise(np.array([]), domain=privurn.Bounds(0, 1), epsilon=1)
    with pytest.raises(DomainError, match="several columns"):
        privatise(pd.DataFrame({"a": [1.0], "b": [2.0]}), domain=privurn.Bounds(0, 1), epsilon=1)
    with pytest.raises(DomainError, match="no column 'c'"):
        privatise(pd.DataFrame({"a": [1.0]}), domain={"c": privurn.Bounds(0, 1)}, epsilon=1)
    with pytest.raises(DomainError, match="holds text") as caught:
        privatise(pd.DataFrame({"a": [f"secret {SECRET}"] * 3}), domain=privurn.Bounds(0, 1), epsilon=1)
    assert str(SECRET) not in str(caught.value)
    with pytest.raises(DomainError, match="holds text"):
        privatise(pl.DataFrame({"a": ["x", "y"]}), domain=privurn.Bounds(0, 1), epsilon=1)


# ---- a channel of one's own ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_bit():
    path = Path(__file__).parents[2] / "examples" / "one_bit_channel.py"
    spec = importlib.util.spec_from_file_location("one_bit_channel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_the_example_channel_keeps_its_promise(one_bit, epsilon):
    """Law of both bits for many records: exact probabilities, ratios at most e^epsilon and nearly that at the bounds."""
    channel = one_bit.OneBitChannel.calibrate(bounds=(0, 10), epsilon=epsilon)
    records = [-5, 0, 0.1, 5, 9.9, 10, math.nan, math.inf]
    ones = [Fraction(int(value), 2 * one_bit.HALF) for value in channel.ones(records)]
    np.testing.assert_allclose(np.exp(channel.log_density(1, records)), [float(p) for p in ones], rtol=1e-12)
    np.testing.assert_allclose(np.exp(channel.log_density(0, records)), [float(1 - p) for p in ones], rtol=1e-9)
    ratios = [max(p / q, (1 - p) / (1 - q)) for p, q in itertools.product(ones, repeat=2)]
    assert 0.999 * epsilon < math.log(max(ratios)) <= channel.profile.pure_epsilon <= epsilon * (1 + 1e-12)
    assert type(channel).from_parameters(channel.parameters()) == channel
    drawn = channel.privatise(np.full(4000, 10.0), entropy=SeededEntropy(1))
    assert binomtest(int(drawn.sum()), 4000, float(ones[5])).pvalue > FALSE_ALARM
    assert set(channel.simulate(np.array([0.0, 10.0] * 50), rng=np.random.default_rng(0)).tolist()) <= {0, 1}


def test_own_channels_are_used_but_not_certified(one_bit):
    channel = one_bit.OneBitChannel.calibrate(bounds=(0, 10), epsilon=1)
    assert channel.rho == pytest.approx(0.5, rel=1e-6)
    with pytest.raises(NotCertifiable, match="privurn can verify"):
        privatise(DATA, channel=channel)

    @dataclass(frozen=True, kw_only=True)
    class Pretender(HaarWaveletChannel):
        """Has a known name and another law."""

    with pytest.raises(NotCertifiable, match="privurn can verify"):
        privatise(DATA, channel=Pretender(bounds=(0, 1), levels=1, scale=1.0))
