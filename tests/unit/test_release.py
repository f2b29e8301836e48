"""The main job: data in, records and a certificate out."""

import json
import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privurn
from privurn.errors import CalibrationError, DomainError, FormatError, ModelError
from privurn.mechanisms.label_discovery import calibrate_discovery
from privurn.mechanisms.registry import rebuild
from privurn.privacy.entropy import SeededEntropy

RNG = np.random.default_rng(3)
PAY = pd.DataFrame({"pay": RNG.gamma(4, 9000, 8000), "town": RNG.choice(["a", "b", "c"], 8000, p=[0.6, 0.3, 0.1])})
GRID = privurn.Grid(0, 80_000, 4_000)


def test_release_of_a_column(tmp_path):
    out = privurn.release(PAY, privurn.Urn(), domain={"pay": GRID}, epsilon=1, delta=1e-6)
    assert isinstance(out.data, pd.DataFrame)
    assert list(out.data.columns) == ["pay"]
    assert len(out.data) == 8000
    assert out.data.pay.between(0, 80_000).all()
    assert (out.data.pay % 4000 == 0).all()
    assert abs(out.data.pay.mean() - PAY.pay.mean()) < 3000
    saved = out.save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out") == privurn.Verification(True, ())
    assert saved.certificate["output"]["rows"] == 8000
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["certificate.json", "data.csv"]


@pytest.mark.parametrize(
    ("frame", "home"),
    [
        (pl.DataFrame({"x": [1, 2, 3, 4] * 50}), pl.DataFrame),
        (pa.table({"x": [1, 2, 3, 4] * 50}), pa.Table),
        (np.array([1, 2, 3, 4] * 50), np.ndarray),
    ],
)
def test_same_kind_of_frame_out_as_in(frame, home):
    out = privurn.release(frame, domain=privurn.Grid(1, 4, 1), epsilon=2, delta=1e-4)
    assert isinstance(out.data, home)


def test_joint_release(tmp_path):
    domain = {"pay": privurn.Bins([0, 20_000, 40_000, 200_000]), "town": privurn.Categories(["a", "b", "c"], outside="null")}
    out = privurn.release(PAY, domain=domain, epsilon=1, delta=1e-6)
    assert list(out.data.columns) == ["pay", "town"]
    assert out.certificate["mechanism"]["parameters"]["cells"] == 3 * 4
    out.save(tmp_path / "joint", file_format="parquet")
    assert privurn.verify(tmp_path / "joint").valid


def test_open_labels_name_common_labels_only():
    labels = ["common"] * 3000 + ["also"] * 1000 + [f"rare {i}" for i in range(50)] + [None] * 400
    # each of the 50 is named with a probability below delta: at 1e-12 the test fails once in 2e10 runs
    out = privurn.release(pl.DataFrame({"label": labels}), domain=privurn.OpenLabels(), epsilon=1, delta=1e-12)
    assert set(out.data["label"].unique().to_list()) <= {"common", "also", "other", None}
    assert out.certificate["mechanism"]["name"] == "label-discovery"
    assert out.certificate["achieved"]["delta"] <= 1e-12
    assert "rare" not in out.certificate.to_json()


def test_open_labels_whose_own_name_is_other():
    out = privurn.release(
        pl.DataFrame({"x": ["other"] * 2000 + ["a"] * 2000}), domain=privurn.OpenLabels(), epsilon=1, delta=1e-6
    )
    assert out.certificate["domain"]["other"] == "other_"


def test_open_domain_urns(tmp_path):
    town = PAY[["town"]]
    for asked in (
        privurn.OpenUrn(),
        privurn.PitmanYorUrn(discount=0.5),
        privurn.PitmanYorUrn(discount="0.25", strength="-0.1"),
    ):
        out = privurn.release(town, asked, domain=privurn.OpenLabels(), epsilon=1, delta=0.01)
        assert out.certificate["mechanism"]["name"] == asked.alias
        folder = tmp_path / repr(asked)
        out.save(folder)
        assert privurn.verify(folder).valid, privurn.verify(folder).reasons
    many = privurn.release(
        town, privurn.OpenUrn(strength=8000, records=2000), domain=privurn.OpenLabels(), epsilon=1, delta=0.99
    )
    fresh = {label for label in many.data.town if label.startswith("new_")}
    assert fresh == {f"new_{i + 1}" for i in range(len(fresh))}
    old = privurn.release(
        town,
        privurn.OpenUrn(strength=8000, records=2000, old_values_only=True),
        domain=privurn.OpenLabels(),
        epsilon=1,
        delta=0.99,
    )
    assert set(old.data.town) <= {"a", "b", "c"}
    assert 800 < len(old.data) < 1200


def test_base_measure_on_a_public_domain():
    out = privurn.release(
        PAY[["town"]],
        privurn.OpenUrn(strength=10**6, base_weights=[0, 0, 0, 1, 0], records=400),
        domain=privurn.Categories(["a", "b", "c", "d"], outside="null"),
        epsilon=1,
        delta=0.5,
    )
    assert (out.data.town == "d").mean() > 0.9


def test_prior_for_each_cell():
    out = privurn.release(
        PAY,
        privurn.Urn(alpha=[20, 30, "25.5", 40]),
        domain={"town": privurn.Categories(["a", "b", "c"], outside="null")},
        epsilon=1,
        delta=1e-4,
    )
    assert out.certificate["mechanism"]["parameters"]["alpha"] == ["20", "30", "51/2", "40"]


def test_the_default_number_of_records_makes_most_of_the_data():
    fine = privurn.release(PAY, privurn.Urn(), domain={"pay": privurn.Grid(0, 80_000, 80)}, epsilon=1, delta=1e-6)
    assert fine.certificate["records"] != 8000
    assert any("cells" in remark for remark in fine.remarks)
    from privurn.mechanisms.urn_plan import plan_urn

    guarantee = privurn.Guarantee(epsilon=1, delta=1e-6)
    cells = fine.certificate["mechanism"]["parameters"]["cells"]
    limit = plan_urn(n=8000, cells=cells, guarantee=guarantee, records="unlimited").effective_sample_size
    got = plan_urn(n=8000, cells=cells, guarantee=guarantee, records=fine.certificate["records"]).effective_sample_size
    less = plan_urn(
        n=8000, cells=cells, guarantee=guarantee, records=int(fine.certificate["records"] * 0.99)
    ).effective_sample_size
    assert less < 0.9 * limit <= got
    assert fine.certificate["records"] <= 80_000


def test_a_person_with_several_records():
    one = privurn.release(PAY, privurn.Urn(), domain={"pay": GRID}, epsilon=1, delta=1e-6)
    three = privurn.release(PAY, privurn.Urn(), domain={"pay": GRID}, epsilon=1, delta=1e-6, contributions=3)
    assert three.certificate["privacy_unit"]["contributions"] == 3
    assert three.certificate["achieved"]["delta"] <= 1e-6
    alpha = [rebuild(**each.certificate["mechanism"]).alpha for each in (one, three)]
    assert alpha[1] > 3 * alpha[0]


@pytest.mark.parametrize(
    ("arguments", "kind", "number"),
    [
        ({"mechanism": privurn.Urn(alpha=1)}, CalibrationError, 3),
        ({"mechanism": privurn.OpenUrn(records=5000)}, CalibrationError, 3),
        ({"mechanism": privurn.OpenUrn(), "delta": 1e-9}, CalibrationError, 3),
        ({"mechanism": privurn.PitmanYorUrn(discount=0.5, records=500)}, CalibrationError, 3),
    ],
)
def test_what_cannot_be_had_comes_with_what_can(arguments, kind, number):
    with pytest.raises(kind) as caught:
        privurn.release(PAY, domain={"pay": GRID}, **{"epsilon": 1, "delta": 1e-6, **arguments})
    assert len(caught.value.alternatives) == number


def test_the_alternatives_are_true():
    refused = {"mechanism": privurn.Urn(alpha=2)}
    with pytest.raises(CalibrationError) as caught:
        privurn.release(PAY, domain={"pay": GRID}, epsilon=1, delta=1e-6, **refused)
    for each in caught.value.alternatives:
        assert privurn.release(PAY, **{"domain": {"pay": GRID}, "epsilon": 1, "delta": 1e-6, **refused, **each.changes})
    fewer, more_alpha, larger_epsilon = caught.value.alternatives
    assert fewer.changes["mechanism"] == privurn.Urn(alpha=2, records=fewer.changes["mechanism"].records)
    assert more_alpha.changes["mechanism"] == privurn.Urn(alpha=more_alpha.changes["mechanism"].alpha)
    assert str(fewer).endswith(f"with this alpha: mechanism={fewer.changes['mechanism']!r}")
    assert larger_epsilon.changes.keys() == {"epsilon"}


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"mechanism": privurn.Urn(records=0)}, ModelError),
        ({"mechanism": "magic"}, FormatError),
        ({"mechanism": "auto"}, FormatError),
        ({"mechanism": privurn.PitmanYorUrn(discount=0)}, ModelError),
        ({"mechanism": privurn.PitmanYorUrn(discount=1)}, ModelError),
        ({"epsilon": 0}, ModelError),
        ({"delta": 1}, ModelError),
        ({"domain": GRID}, DomainError),
        ({"domain": {"nonsense": GRID}}, DomainError),
        ({"domain": {"town": privurn.OpenLabels()}, "mechanism": privurn.Urn()}, ModelError),
        ({"domain": {"town": privurn.OpenLabels()}, "delta": 0}, CalibrationError),
        ({"domain": {"town": privurn.OpenLabels()}, "mechanism": privurn.Discover(share=1.0)}, ModelError),
        ({"domain": "grid"}, DomainError),
        ({"mechanism": privurn.Urn(alpha=[1, 2])}, ModelError),
    ],
)
def test_impossible_requests(arguments, kind):
    with pytest.raises(kind):
        privurn.release(PAY, **{"domain": {"pay": GRID}, "epsilon": 1, "delta": 1e-6, **arguments})


@pytest.mark.parametrize(
    ("recipe", "field"),
    [(privurn.NoisyCounts, "draws"), (privurn.Smoothed, "noise"), (privurn.Urn, "loss"), (privurn.OpenUrn, "discount")],
)
def test_a_mechanism_knows_its_own_fields_only(recipe, field):
    with pytest.raises(TypeError, match=field):
        recipe(**{field: 1})


def test_seeded_releases_are_marked_and_repeatable(tmp_path):
    def make():
        return privurn.release(PAY, privurn.Urn(), domain={"pay": GRID}, epsilon=1, delta=1e-6, entropy=SeededEntropy(7))

    first, second = make(), make()
    assert first.data.equals(second.data)
    assert first.certificate["randomness"] == "seeded: not private"
    first.save(tmp_path / "seeded")
    verdict = privurn.verify(tmp_path / "seeded")
    assert not verdict.valid
    assert "not private" in verdict.reasons[0]


def test_a_release_keeps_no_confidential_data():
    out = privurn.release(PAY, privurn.Urn(), domain={"pay": GRID}, epsilon=1, delta=1e-6)
    seen = repr(out.__dict__) + json.dumps(dict(out.certificate.data))
    assert not any(repr(float(value)) in seen for value in PAY.pay[:200])


def test_saving_never_overwrites(tmp_path):
    out = privurn.release(PAY, privurn.Urn(), domain={"pay": GRID}, epsilon=1, delta=1e-6)
    (tmp_path / "taken").mkdir()
    with pytest.raises(FormatError, match="exists"):
        out.save(tmp_path / "taken")
    with pytest.raises(FormatError, match="no folder"):
        out.save(tmp_path / "no" / "where")
    assert list((tmp_path / "taken").iterdir()) == []


def test_an_interrupted_save_leaves_nothing(tmp_path, monkeypatch):
    out = privurn.release(PAY, privurn.Urn(), domain={"pay": GRID}, epsilon=1, delta=1e-6)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("privurn.certificates.folder.file_hash", interrupted)
    with pytest.raises(KeyboardInterrupt):
        out.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_label_discovery_meets_its_share():
    for epsilon, delta in [(0.1, 1e-9), (1.0, 1e-6), (5.0, 1e-3)]:
        step = calibrate_discovery(epsilon=epsilon, delta=delta)
        got = step.guarantee()
        assert got.epsilon <= epsilon
        assert got.delta <= delta
        # the continuous rule of thumb: 1 + (2/eps) ln(1/(2 delta)), within rounding and the discrete law
        assert step.threshold == pytest.approx(1 + 2 / epsilon * math.log(1 / (2 * delta)), rel=0.2, abs=3)


def test_a_secret_number_of_records(tmp_path):
    from privurn.privacy.ledger import Ledger

    ledger = Ledger.create(tmp_path / "ledger", epsilon=2.0, delta=1e-5, neighbouring="add-remove")
    arguments = {"domain": {"pay": GRID}, "epsilon": 1, "delta": 1e-6, "neighbouring": "add-remove"}
    out = privurn.release(PAY, privurn.Urn(records=2000), ledger=ledger, **arguments).save(tmp_path / "out")
    assert len(out.data) == 2000
    assert out.certificate["n"] is None
    assert out.certificate["neighbouring"] == "add-remove"
    assert not re.search(r"\b8000\b", out.certificate.to_json())
    assert privurn.verify(tmp_path / "out").valid, privurn.verify(tmp_path / "out").reasons
    with pytest.raises(ModelError, match="secret"):
        privurn.release(PAY, **arguments)
    with pytest.raises(CalibrationError) as caught:
        privurn.release(PAY, privurn.Urn(records=2000, alpha=2), **arguments)
    assert len(caught.value.alternatives) == 3
    with pytest.raises(DomainError, match="open labels"):
        privurn.release(PAY, privurn.Urn(records=10), **{**arguments, "domain": {"town": privurn.OpenLabels()}})
    with pytest.raises(ModelError, match="secret"):
        privurn.release(PAY, privurn.OpenUrn(records=10), **arguments)
    with pytest.raises(privurn.errors.LedgerError, match="add-remove neighbours"):
        privurn.release(PAY, domain={"pay": GRID}, epsilon=0.1, delta=1e-6, ledger=ledger)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_secret_number_of_records_is_not_complained_about(n):
    frame = pl.DataFrame({"x": [1] * n}, schema={"x": pl.Int64})
    out = privurn.release(
        frame, privurn.Urn(records=50), domain=privurn.Grid(0, 3, 1), epsilon=1, delta=1e-6, neighbouring="add-remove"
    )
    assert len(out.data) == 50
