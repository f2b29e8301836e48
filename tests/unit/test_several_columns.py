"""Privatising several columns of categories together: what comes out, what the certificate says, and what is refused."""

import json
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privurn
from privurn.certificates.verify import verify
from privurn.errors import DomainError, FormatError, ModelError, NotCertifiable
from privurn.inference.mixtures.kernels import CategoricalKernel
from privurn.inference.mixtures.posterior import fit_mixture
from privurn.inference.mixtures.reading import default_model, read_privatised
from privurn.inference.mixtures.results import population, predict
from privurn.mechanisms.local.randomised_response import RandomisedResponseChannel
from privurn.mechanisms.local.randomised_responses import RandomisedResponsesChannel
from privurn.mechanisms.registry import rebuild
from privurn.privacy.certificate import Certificate
from privurn.privacy.entropy import SeededEntropy
from privurn.privacy.ledger import Ledger
from privurn.releases.privatise import privatise

pytestmark = pytest.mark.filterwarnings("ignore::privurn.inference.draws.NotMixed")  # short chains on purpose

N = 400
GROUP = np.random.default_rng(0).integers(2, size=N)
TABLE = {"town": np.array(["u", "v"])[GROUP].tolist(), "age": (20 + 40 * GROUP).tolist(), "free": ["x"] * N}
LISTED = {"town": privurn.Categories(["u", "v", "w"], outside="other"), "age": privurn.Categories([20, 60], outside="other")}
RESPONSE = {"channel": privurn.RandomisedResponse(), "domain": LISTED}


@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, pl.DataFrame, pa.table, lambda table: duckdb.from_arrow(pa.table(table))],
    ids=["pandas", "polars", "arrow", "duckdb"],
)
def test_the_same_kind_of_frame_comes_out_with_its_rows_together(make):
    frame = make(TABLE)
    out = privatise(frame, **RESPONSE, epsilon=80, order="kept").data  # changed with probability below 1e-14
    assert type(out) is type(frame)
    as_arrow = out.to_arrow() if hasattr(out, "to_arrow") else out
    if hasattr(out, "fetchnumpy"):
        as_arrow = out.to_arrow_table()
    found = pd.DataFrame(as_arrow.to_pydict() if hasattr(as_arrow, "to_pydict") else as_arrow)
    assert list(found.columns) == ["town", "age"]
    assert found.town.tolist() == TABLE["town"]
    assert [int(each) for each in found.age] == TABLE["age"]
    shuffled = privatise(frame, **RESPONSE, epsilon=80)
    rows = read_privatised(shuffled).released
    assert (rows[:, 0] == rows[:, 1]).all()
    assert rows[:, 0].tolist() != GROUP.tolist()


def test_the_certificate_states_the_whole(tmp_path):
    made = privatise(pd.DataFrame(TABLE), **RESPONSE, epsilon=3, contributions=2).save(tmp_path / "out")
    verdict = verify(tmp_path / "out")
    assert verdict.valid, verdict.reasons
    certificate = Certificate.read(tmp_path / "out")
    assert certificate["mechanism"]["name"] == "local-randomised-responses"
    assert 3 * (1 - 1e-6) < certificate["achieved"]["epsilon"] <= 3
    assert certificate["columns"] == ["town", "age"]
    channel = rebuild(**certificate["mechanism"]).channel
    assert channel.sizes == (4, 3)
    assert made.remarks[0].startswith("epsilon is that of the whole record, 0.75 for each of 2 columns")
    assert certificate["rho"] == pytest.approx(2 * channel.rho)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["mechanism"]["parameters"]["channel"]["columns"].reverse(),  # as many cells, other columns
        lambda data: data["mechanism"]["parameters"]["channel"]["columns"].pop(),
        lambda data: data["mechanism"]["parameters"]["channel"]["columns"][0].update(odds="4"),
        lambda data: data["mechanism"].update(name="local-randomised-response"),
        lambda data: data.update(columns=["age", "town"]),
        lambda data: data["achieved"].update(epsilon=1.0),
        lambda data: data["domain"]["columns"].pop("age"),
    ],
)
def test_edits_are_found(tmp_path, change):
    privatise(pd.DataFrame(TABLE), **RESPONSE, epsilon=2).save(tmp_path / "out")
    data = json.loads((tmp_path / "out" / "certificate.json").read_text())
    change(data)
    (tmp_path / "out" / "certificate.json").write_text(Certificate.seal(data).to_json())
    assert not verify(tmp_path / "out").valid


def test_a_ledger_pays_for_the_whole_record(tmp_path):
    ledger = Ledger.create(tmp_path / "l", epsilon=3.0)
    privatise(pd.DataFrame(TABLE), **RESPONSE, epsilon=2, ledger=ledger)
    assert ledger.remaining()["epsilon"] == 1.0


def test_missing_and_unlisted_values_have_their_cells():
    frame = pl.DataFrame({"town": ["u", None, "zebra", "v"], "age": [20, 60, None, 7]})
    with pytest.raises(DomainError, match="missing values in"):
        privatise(frame, **RESPONSE, epsilon=80)
    cells = {name: replace(each, nulls="cell") for name, each in LISTED.items()}
    out = privatise(frame, domain=cells, epsilon=80, order="kept").data
    assert out["town"].to_list() == ["u", None, "other", "v"]
    assert out["age"].to_list() == ["20", "60", None, "other"]


def test_columns_may_have_any_names(tmp_path):
    names = ["place", "cell_0", "place_", "t", 'quo"te', "a=b"]
    frame = pd.DataFrame({name: ["x", "y"] * 20 for name in names})
    made = privatise(
        frame,
        privurn.RandomisedResponse(),
        domain={name: privurn.Categories(["x", "y"], outside="other") for name in names},
        epsilon=240,
        order="kept",
    ).save(tmp_path / "out")
    assert made.data.to_dict() == frame.to_dict()
    assert verify(tmp_path / "out").valid
    assert read_privatised(tmp_path / "out").released.tolist() == [[0] * 6, [1] * 6] * 20


def test_a_channel_object_brings_its_own_split():
    parts = [RandomisedResponseChannel.calibrate(categories=k, epsilon=e) for k, e in ((4, 2.0), (3, 0.5))]
    channel = RandomisedResponsesChannel(responses=tuple(parts))
    made = privatise(pd.DataFrame(TABLE), channel, domain=LISTED)
    assert made.certificate["target"]["epsilon"] == pytest.approx(2.5)
    assert rebuild(**made.certificate["mechanism"]).channel == channel
    assert made.remarks[0].startswith("epsilon is that of the whole record; columns keep")
    with pytest.raises(NotCertifiable):
        privatise(pd.DataFrame(TABLE), channel, domain=LISTED, epsilon=2.0)
    with pytest.raises(ModelError, match="another number of categories"):
        privatise(pd.DataFrame(TABLE), channel, domain={name: LISTED[name] for name in ("age", "town")})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"domain": privurn.Categories(["u"], outside="other"), "epsilon": 1}, DomainError, "several columns"),
        ({"domain": {"town": ["u"], "age": [20]}, "epsilon": 1}, DomainError, "domain of a column is missing"),
        ({"domain": {}, "epsilon": 1}, DomainError, "domain of a column is missing"),
        ({"domain": {**LISTED, "absent": LISTED["town"]}, "epsilon": 1}, DomainError, "no column 'absent'"),
        ({"epsilon": 1}, DomainError, "domain of a column is missing"),
        ({"domain": LISTED, "epsilon": 1, "delta": 1e-6}, ModelError, "needs no delta"),
        ({"domain": LISTED, "epsilon": 1, "channel": "randomised-response"}, FormatError, "not one that can be asked for"),
        ({"domain": LISTED, "epsilon": 1, "channel": privurn.Laplace()}, DomainError, "is for numbers within bounds"),
        (
            {"channel": privurn.Laplace(), "domain": {"age": privurn.Bounds(0, 1), "town": LISTED["town"]}, "epsilon": 1},
            ModelError,
            "only randomised response takes several",
        ),
    ],
    ids=lambda value: "" if isinstance(value, dict) else getattr(value, "__name__", value),
)
def test_refusals(arguments, error, message):
    with pytest.raises(error, match=message):
        privatise(pd.DataFrame(TABLE), **{"channel": privurn.RandomisedResponse(), **arguments})


def answered(folder):
    """Rows whose columns were answered at random by themselves, as they are read back, and their usual model."""
    privatise(pd.DataFrame(TABLE), **RESPONSE, epsilon=6, entropy=SeededEntropy(7)).save(folder / "out")
    given = read_privatised(folder / "out")
    return given, default_model(given.channel)


def test_several_columns_have_a_kernel_of_several_columns(tmp_path):
    given, model = answered(tmp_path)
    assert given.labels == ("town=u", "town=v", "town=w", "town=other", "age=20", "age=60", "age=other")
    assert model.kernel == CategoricalKernel(categories=(4, 3))


@pytest.mark.long
def test_the_mixture_behind_several_columns_is_found(tmp_path):
    """Shares of each column and their dependence."""
    given, model = answered(tmp_path)
    found = fit_mixture(given.released, model=model, run=privurn.Run(draws=300, warm_up=300, chains=2, seed=1, thin=1))
    shares = dict(zip(given.labels, population(found, labels=given.labels).flat("share").mean(axis=0), strict=True))
    for name, truth in (("town=v", GROUP.mean()), ("age=60", GROUP.mean()), ("town=w", 0.0), ("age=other", 0.0)):
        assert shares[name] == pytest.approx(truth, abs=0.12)
    rows = predict(found, 2000, seed=1)
    assert np.mean((rows[:, 0] == 1) == (rows[:, 1] == 1)) > 0.8  # the released columns agree far less often
    assert np.mean((given.released[:, 0] == 1) == (given.released[:, 1] == 1)) < 0.95
