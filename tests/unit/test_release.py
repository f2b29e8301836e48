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
from privurn.privacy.entropy import SeededEntropy

RNG = np.random.default_rng(3)
PAY = pd.DataFrame({"pay": RNG.gamma(4, 9000, 8000), "town": RNG.choice(["a", "b", "c"], 8000, p=[0.6, 0.3, 0.1])})
GRID = privurn.Grid(0, 80_000, 4_000)


def test_release_of_a_column(tmp_path):
    out = privurn.release(PAY, domain=GRID, column="pay", epsilon=1, delta=1e-6)
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
    for name, extra in [
        ("dirichlet-process", {}),
        ("pitman-yor", {"discount": 0.5}),
        ("pitman-yor", {"discount": "0.25", "strength": "-0.1"}),
    ]:
        out = privurn.release(town, domain=privurn.OpenLabels(), epsilon=1, delta=0.01, mechanism=name, **extra)
        assert out.certificate["mechanism"]["name"] == name
        folder = tmp_path / f"{name}{extra}"
        out.save(folder)
        assert privurn.verify(folder).valid, privurn.verify(folder).reasons
    many = privurn.release(
        town, domain=privurn.OpenLabels(), epsilon=1, delta=0.99, mechanism="dirichlet-process", strength=8000, n_records=2000
    )
    fresh = {label for label in many.data.town if label.startswith("new_")}
    assert fresh == {f"new_{i + 1}" for i in range(len(fresh))}
    old = privurn.release(
        town,
        domain=privurn.OpenLabels(),
        epsilon=1,
        delta=0.99,
        mechanism="dirichlet-process",
        strength=8000,
        n_records=2000,
        old_values_only=True,
    )
    assert set(old.data.town) <= {"a", "b", "c"}
    assert 800 < len(old.data) < 1200


def test_base_measure_on_a_public_domain():
    out = privurn.release(
        PAY[["town"]],
        domain=privurn.Categories(["a", "b", "c", "d"], outside="null"),
        mechanism="dirichlet-process",
        strength=10**6,
        base_weights=[0, 0, 0, 1, 0],
        epsilon=1,
        delta=0.5,
        n_records=400,
    )
    assert (out.data.town == "d").mean() > 0.9


def test_prior_for_each_cell():
    out = privurn.release(
        PAY,
        domain=privurn.Categories(["a", "b", "c"], outside="null"),
        column="town",
        epsilon=1,
        delta=1e-4,
        alpha=[20, 30, "25.5", 40],
    )
    assert out.certificate["mechanism"]["parameters"]["alpha"] == ["20", "30", "51/2", "40"]


def test_the_default_number_of_records_makes_most_of_the_data():
    fine = privurn.release(PAY, domain=privurn.Grid(0, 80_000, 80), column="pay", epsilon=1, delta=1e-6)
    assert fine.certificate["records"] != 8000
    assert any("cells" in remark for remark in fine.remarks)
    from privurn.releases.plan import plan_urn

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
    one = privurn.release(PAY, domain=GRID, column="pay", epsilon=1, delta=1e-6)
    three = privurn.release(PAY, domain=GRID, column="pay", epsilon=1, delta=1e-6, contributions=3)
    assert three.certificate["privacy_unit"]["contributions"] == 3
    assert three.certificate["achieved"]["delta"] <= 1e-6
    alpha = [
        privurn.DirichletMultinomial.from_parameters(each.certificate["mechanism"]["parameters"]).alpha for each in (one, three)
    ]
    assert alpha[1] > 3 * alpha[0]


@pytest.mark.parametrize(
    ("arguments", "kind", "number"),
    [
        ({"alpha": 1}, CalibrationError, 3),
        ({"mechanism": "dirichlet-process", "n_records": 5000}, CalibrationError, 3),
        ({"mechanism": "dirichlet-process", "delta": 1e-9}, CalibrationError, 3),
        ({"mechanism": "pitman-yor", "discount": 0.5, "n_records": 500}, CalibrationError, 3),
    ],
)
def test_what_cannot_be_had_comes_with_what_can(arguments, kind, number):
    with pytest.raises(kind) as caught:
        privurn.release(PAY, domain=GRID, column="pay", **{"epsilon": 1, "delta": 1e-6, **arguments})
    assert len(caught.value.alternatives) == number


def test_the_alternatives_are_true():
    with pytest.raises(CalibrationError) as caught:
        privurn.release(PAY, domain=GRID, column="pay", epsilon=1, delta=1e-6, alpha=2)
    fewer, more_alpha, _ = caught.value.alternatives
    records = int(fewer.partition("--records ")[2])
    assert privurn.release(PAY, domain=GRID, column="pay", epsilon=1, delta=1e-6, alpha=2, n_records=records)
    alpha = more_alpha.partition("--alpha ")[2]
    assert privurn.release(PAY, domain=GRID, column="pay", epsilon=1, delta=1e-6, alpha=alpha)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"n_records": 0}, ModelError),
        ({"mechanism": "magic"}, FormatError),
        ({"mechanism": "pitman-yor"}, ModelError),
        ({"mechanism": "dirichlet-process", "discount": 0.2}, ModelError),
        ({"epsilon": 0}, ModelError),
        ({"delta": 1}, ModelError),
        ({"column": None}, DomainError),
        ({"column": "nonsense"}, DomainError),
        ({"domain": privurn.OpenLabels(), "column": "town", "mechanism": "dirichlet-multinomial"}, ModelError),
        ({"domain": privurn.OpenLabels(), "column": "town", "delta": 0}, CalibrationError),
        ({"domain": privurn.OpenLabels(), "column": "town", "discovery_share": 1.0}, ModelError),
        ({"domain": "grid"}, DomainError),
        ({"alpha": [1, 2]}, ModelError),
    ],
)
def test_impossible_requests(arguments, kind):
    with pytest.raises(kind):
        privurn.release(PAY, **{"domain": GRID, "column": "pay", "epsilon": 1, "delta": 1e-6, **arguments})


def test_seeded_releases_are_marked_and_repeatable(tmp_path):
    def make():
        return privurn.release(PAY, domain=GRID, column="pay", epsilon=1, delta=1e-6, entropy=SeededEntropy(7))

    first, second = make(), make()
    assert first.data.equals(second.data)
    assert first.certificate["randomness"] == "seeded: not private"
    first.save(tmp_path / "seeded")
    verdict = privurn.verify(tmp_path / "seeded")
    assert not verdict.valid
    assert "not private" in verdict.reasons[0]


def test_a_release_keeps_no_confidential_data():
    out = privurn.release(PAY, domain=GRID, column="pay", epsilon=1, delta=1e-6)
    seen = repr(out.__dict__) + json.dumps(dict(out.certificate.data))
    assert not any(repr(float(value)) in seen for value in PAY.pay[:200])


def test_saving_never_overwrites(tmp_path):
    out = privurn.release(PAY, domain=GRID, column="pay", epsilon=1, delta=1e-6)
    (tmp_path / "taken").mkdir()
    with pytest.raises(FormatError, match="exists"):
        out.save(tmp_path / "taken")
    with pytest.raises(FormatError, match="no folder"):
        out.save(tmp_path / "no" / "where")
    assert list((tmp_path / "taken").iterdir()) == []


def test_an_interrupted_save_leaves_nothing(tmp_path, monkeypatch):
    out = privurn.release(PAY, domain=GRID, column="pay", epsilon=1, delta=1e-6)

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
    arguments = {"domain": GRID, "column": "pay", "epsilon": 1, "delta": 1e-6, "neighbouring": "add-remove"}
    out = privurn.release(PAY, n_records=2000, ledger=ledger, **arguments).save(tmp_path / "out")
    assert len(out.data) == 2000
    assert out.certificate["n"] is None
    assert out.certificate["neighbouring"] == "add-remove"
    assert not re.search(r"\b8000\b", out.certificate.to_json())
    assert privurn.verify(tmp_path / "out").valid, privurn.verify(tmp_path / "out").reasons
    with pytest.raises(ModelError, match="secret"):
        privurn.release(PAY, **arguments)
    with pytest.raises(CalibrationError) as caught:
        privurn.release(PAY, n_records=2000, alpha=2, **arguments)
    assert len(caught.value.alternatives) == 3
    with pytest.raises(DomainError, match="open labels"):
        privurn.release(PAY, n_records=10, **{**arguments, "domain": privurn.OpenLabels(), "column": "town"})
    with pytest.raises(ModelError, match="secret"):
        privurn.release(PAY, n_records=10, mechanism="dirichlet-process", **arguments)
    with pytest.raises(privurn.errors.LedgerError, match="add-remove neighbours"):
        privurn.release(PAY, domain=GRID, column="pay", epsilon=0.1, delta=1e-6, ledger=ledger)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_secret_number_of_records_is_not_complained_about(n):
    frame = pl.DataFrame({"x": [1] * n}, schema={"x": pl.Int64})
    out = privurn.release(frame, domain=privurn.Grid(0, 3, 1), epsilon=1, delta=1e-6, neighbouring="add-remove", n_records=50)
    assert len(out.data) == 50
