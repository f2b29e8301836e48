"""Histogram releases end to end: planned, paid, drawn, saved, verified, and what is refused."""

import json
import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privurn
from privurn.certificates.spending import spending
from privurn.errors import BudgetExceeded, CalibrationError, DomainError, FormatError, ModelError
from privurn.mechanisms.choice import choose
from privurn.mechanisms.mechanism import Drawn
from privurn.mechanisms.recipe import Public
from privurn.privacy.certificate import Certificate
from privurn.privacy.entropy import SeededEntropy
from privurn.privacy.ledger import Ledger
from privurn.privacy.profile import Guarantee
from privurn.releases.plan import options
from privurn.tables import decode

RNG = np.random.default_rng(8)
PAY = pd.DataFrame({"pay": RNG.gamma(4, 9000, 4000), "town": RNG.choice(["a", "b", "c"], 4000, p=[0.6, 0.3, 0.1])})
GRID = privurn.Grid(0, 80_000, 4_000)
SPREAD = privurn.Bins([0, 10, 20], within="uniform")
TOWN = privurn.Categories(["a", "b", "c"], outside="null")
PAIR = {"epsilon": 1, "delta": 1e-6}

KINDS = [
    privurn.NoisyCounts(),
    privurn.NoisyCounts(noise="laplace"),
    privurn.NoisyCounts(noise="discrete-gaussian", smoothing="0.05"),
    privurn.NoisyCounts(publish="counts"),
    privurn.NoisyCounts(publish="counts", noise="laplace"),
    privurn.Smoothed(),
    privurn.Smoothed(records=500),
    privurn.PosteriorDraws(),
    privurn.PosteriorDraws(draws=2),
]


@pytest.mark.parametrize("asked", KINDS, ids=repr)
def test_release_save_verify(asked, tmp_path):
    made = privurn.release(PAY, asked, domain={"pay": GRID}, **PAIR).save(tmp_path / "out")
    verdict = privurn.verify(tmp_path / "out")
    assert verdict.valid, verdict.reasons
    certificate = made.certificate
    assert certificate["mechanism"]["name"] == asked.alias
    assert certificate["achieved"]["delta"] <= 1e-6
    assert certificate["achieved"]["epsilon"] <= 1.0
    if not asked.publishes_records:
        name, draws = "count" if isinstance(asked, privurn.NoisyCounts) else "probability", getattr(asked, "draws", 1)
        assert list(made.data.columns) == (["pay", "draw", name] if draws > 1 else ["pay", name])
        assert len(made.data) == 21 * draws
        total = made.data[name].sum()
        assert abs(total - 4000) < 300 if name == "count" else total == pytest.approx(draws)
        estimate = (made.data.pay * made.data[name]).sum() / total
    else:
        assert list(made.data.columns) == ["pay"]
        assert len(made.data) == (asked.records or 4000)
        estimate = made.data.pay.mean()
    assert (made.data.pay % 4000 == 0).all()
    weight = Fraction(certificate["mechanism"]["parameters"].get("weight", "0"))
    assert abs(estimate - PAY.pay.mean()) < 6000 + 20_000 * float(weight)


def test_default_numbers_of_records():
    made = privurn.release(PAY, privurn.NoisyCounts(), domain={"town": TOWN}, epsilon=1)
    assert made.certificate["records"] == 4000
    assert made.certificate["mechanism"]["parameters"] == {
        "n": 4000,
        "cells": 4,
        "records": 4000,
        "noise": "discrete-laplace",
        "scale": 2.0,
        "steps": 1,
        "publish": "records",
        "smoothing": "0",
    }
    sample = privurn.release(PAY, privurn.PosteriorDraws(), domain={"town": TOWN}, **PAIR)
    assert sample.certificate["records"] == 10**6
    assert len(sample.data) == 4


def test_noisy_counts_are_near_the_counts_and_whole():
    made = privurn.release(PAY, privurn.NoisyCounts(publish="counts"), domain={"town": TOWN}, epsilon=1)
    assert made.data["count"].dtype == np.int64
    truth = PAY.town.value_counts()
    for town, count in zip(made.data.town[:3], made.data["count"][:3], strict=True):
        assert abs(count - truth[town]) < 80  # forty times the noise's scale


def test_tables_of_several_columns_and_taken_names(tmp_path):
    frame = pl.DataFrame({"count": [1, 2, 3, 1] * 100, "draw": ["x", "y"] * 200})
    domain = {"count": privurn.Grid(1, 3, 1), "draw": privurn.Categories(["x", "y"], outside="null")}
    made = privurn.release(frame, privurn.NoisyCounts(publish="counts"), domain=domain, epsilon=2)
    assert made.data.columns == ["count", "draw", "count_"]
    assert made.data.height == 9
    drawn = privurn.release(frame, privurn.PosteriorDraws(draws=2), domain=domain, epsilon=2, delta=1e-3)
    assert drawn.data.columns == ["count", "draw", "draw_", "probability"]
    drawn.save(tmp_path / "out", file_format="parquet")
    assert privurn.verify(tmp_path / "out").valid


def test_records_beside_weights():
    assert Drawn(np.array([1, 2])).columns() == {}
    two = Drawn(np.array([0, 1, 0, 1]), weights=np.array([0.5, 0.5, 0.25, 0.75]), weight_name="probability", draws=2)
    assert {name: column.tolist() for name, column in two.columns().items()} == {
        "draw": [1, 1, 2, 2],
        "probability": [0.5, 0.5, 0.25, 0.75],
    }


# ---- verification ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", KINDS, ids=repr)
def test_edited_certificates_are_seen(asked, tmp_path):
    privurn.release(PAY, asked, domain={"town": TOWN}, **PAIR).save(tmp_path / "out")
    path = tmp_path / "out" / "certificate.json"
    honest = Certificate.read(path)
    stated = honest["mechanism"]
    edits = {
        "perturbed-histogram": {"scale": stated["parameters"].get("scale", 1.0) / 2, "cells": 5, "noise": "cauchy", "steps": 3},
        "smoothed-histogram": {"weight": "1/1000", "cells": 5, "n": 400},
        "posterior-sample": {"alpha": "1/2", "cells": 5, "draws": 3},
    }[asked.alias]
    for key, value in edits.items():
        forged = honest.with_fields(mechanism={**stated, "parameters": {**stated["parameters"], key: value}})
        path.write_text(forged.to_json())
        assert not privurn.verify(tmp_path / "out").valid, key
    path.write_text(honest.with_fields(output={**honest["output"], "rows": 3}).to_json())
    assert "rows" in " ".join(privurn.verify(tmp_path / "out").reasons)
    path.write_text(honest.to_json())
    assert privurn.verify(tmp_path / "out").valid


def test_the_domain_must_fit(tmp_path):
    made = privurn.release(PAY, privurn.Smoothed(), domain={"town": TOWN}, **PAIR).save(tmp_path / "out")
    domain = privurn.JointDomain({"town": privurn.Categories(["a", "b"], outside="null")}).to_json()
    (tmp_path / "out" / "certificate.json").write_text(made.certificate.with_fields(domain=domain).to_json())
    assert "the domain does not fit" in " ".join(privurn.verify(tmp_path / "out").reasons)


# ---- the ledger ------------------------------------------------------------------------------------------------------


def test_a_rho_ledger_pays_for_noise(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", rho=0.5)
    arguments = {"domain": {"town": TOWN}, "ledger": ledger}
    made = privurn.release(PAY, privurn.NoisyCounts(noise="discrete-gaussian"), **PAIR, **arguments)
    scale = made.certificate["mechanism"]["parameters"]["scale"]
    assert ledger.remaining()["rho"] == pytest.approx(0.5 - 1 / scale**2)
    privurn.release(PAY, privurn.NoisyCounts(), epsilon=0.1, **arguments)
    assert ledger.remaining()["rho"] == pytest.approx(0.5 - 1 / scale**2 - 0.1**2 / 4)
    with pytest.raises(BudgetExceeded):
        privurn.release(PAY, privurn.NoisyCounts(), epsilon=3, **arguments)
    with pytest.raises(BudgetExceeded, match="no zCDP bound"):
        privurn.release(PAY, privurn.Smoothed(), **PAIR, **arguments)


def test_spending_is_recomputed_from_the_parameters(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=5, delta=1e-5)
    for asked in (privurn.NoisyCounts(), privurn.Smoothed()):
        privurn.release(PAY, asked, domain={"town": TOWN}, ledger=ledger, **PAIR)
    found = spending(ledger)
    assert found.epsilon == 2.0
    assert 0.0 < found.tight_epsilon < 2.0


def test_a_person_with_several_records():
    made = privurn.release(PAY, privurn.NoisyCounts(publish="counts"), domain={"town": TOWN}, epsilon=1, contributions=3)
    assert made.certificate["mechanism"]["parameters"]["scale"] == pytest.approx(6.0, rel=1e-6)
    assert made.certificate["achieved"] == {"epsilon": pytest.approx(1.0, rel=1e-6), "delta": 0.0}


# ---- a secret number of records --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 7919])
@pytest.mark.parametrize(
    "asked",
    [
        privurn.NoisyCounts(publish="counts"),
        privurn.NoisyCounts(records=30, noise="discrete-gaussian"),
        privurn.PosteriorDraws(),
    ],
)
def test_secret_number_of_records(n, asked, tmp_path):
    frame = pl.DataFrame({"x": [1] * n}, schema={"x": pl.Int64})
    made = privurn.release(frame, asked, domain=privurn.Grid(0, 3, 1), neighbouring="add-remove", **PAIR)
    made.save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").valid, privurn.verify(tmp_path / "out").reasons
    assert made.certificate["n"] is None
    assert made.remarks == ()
    assert not re.search(r"\b7919\b", made.certificate.to_json())
    if asked == privurn.NoisyCounts(publish="counts"):
        assert made.certificate["mechanism"]["parameters"]["scale"] < 1.0  # half of what replace-one needs


def test_a_secret_number_of_records_needs_a_public_size():
    for asked in (None, privurn.NoisyCounts(), privurn.Smoothed(), privurn.Smoothed(records=10), privurn.OpenUrn(records=3)):
        with pytest.raises(ModelError, match="secret"):
            privurn.release(PAY, asked, domain={"town": TOWN}, neighbouring="add-remove", **PAIR)


# ---- remarks and bad input -------------------------------------------------------------------------------------------


def test_more_bins_than_rows_is_allowed_with_a_remark():
    for asked in (privurn.NoisyCounts(), privurn.Smoothed(), privurn.PosteriorDraws()):
        made = privurn.release(PAY.pay[:50].to_frame(), asked, domain=privurn.Grid(0, 80_000, 200), **PAIR)
        assert any("more cells (401) than confidential records (50)" in remark for remark in made.remarks)


def test_noise_in_empty_cells_is_announced():
    made = privurn.release(PAY, privurn.NoisyCounts(), domain={"pay": privurn.Grid(0, 80_000, 20)}, epsilon=1)
    assert any("of the released records" in remark for remark in made.remarks)
    coarse = privurn.release(PAY, privurn.NoisyCounts(), domain={"pay": GRID}, epsilon=1)
    assert coarse.remarks == ()


@pytest.mark.parametrize("epsilon", [1e-9, 0.01])
def test_a_smoothed_histogram_that_is_nearly_uniform_says_so_with_the_number(epsilon, tmp_path):
    made = privurn.release(PAY, privurn.Smoothed(), domain={"town": TOWN}, epsilon=epsilon)
    weight = Fraction(made.certificate["mechanism"]["parameters"]["weight"])
    gain = 4000 * math.expm1(epsilon / 4000)
    assert float(1 - weight) == pytest.approx(gain / (4 + gain), rel=2e-4)
    assert 0.99 < weight <= 1
    first = made.remarks[0]
    assert "nearly uniform noise" in first
    assert f"{float(weight):.10g}" in first
    made.save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").valid
    comfortable = privurn.release(PAY, privurn.Smoothed(), domain={"town": TOWN}, **PAIR)
    assert comfortable.remarks == ()


def test_fewer_records_are_offered_where_they_are_worth_more():
    made = privurn.release(PAY, privurn.Smoothed(), domain={"pay": GRID}, epsilon=1)
    better = int(made.remarks[-1].partition("records=")[2].rstrip(")."))
    public = Public(n=4000, cells=21, guarantee=Guarantee(epsilon=1, delta=0.0))
    fewer, _ = choose(privurn.Smoothed(records=better), public)
    plain, _ = choose(privurn.Smoothed(), public)
    assert fewer.effective_sample_size > 2 * plain.effective_sample_size


@pytest.mark.parametrize("asked", KINDS, ids=repr)
def test_all_rows_in_one_cell(asked):
    same = np.full(4000, 8000.0)
    made = privurn.release(pd.DataFrame({"pay": same}), asked, domain=GRID, **PAIR)
    data = made.data
    if "count" in data or "probability" in data:
        weights = data["count"] if "count" in data else data["probability"]
        assert data.pay[weights.idxmax()] == 8000
    else:
        assert data.pay.mode()[0] == 8000


def test_one_cell_needs_no_noise():
    one = privurn.Bins([0, 100_000])
    for asked in (
        privurn.NoisyCounts(),
        privurn.NoisyCounts(noise="discrete-gaussian"),
        privurn.Smoothed(),
        privurn.PosteriorDraws(),
    ):
        made = privurn.release(PAY, asked, domain={"pay": one}, epsilon=1)
        assert made.certificate["achieved"]["delta"] == 0.0
        assert set(made.data.pay) == {50_000}


def test_alternatives_are_true():
    with pytest.raises(CalibrationError) as caught:
        privurn.release(PAY, privurn.Smoothed(smoothing=0.01), domain={"pay": GRID}, **PAIR)
    fewer, more, _ = (each.changes.get("mechanism") for each in caught.value.alternatives)
    records = fewer.records
    assert (fewer, more) == (privurn.Smoothed(smoothing=0.01, records=records), privurn.Smoothed(smoothing=more.smoothing))
    for asked in (fewer, more):
        assert privurn.release(PAY, asked, domain={"pay": GRID}, **PAIR)
    with pytest.raises(CalibrationError):
        privurn.release(PAY, privurn.Smoothed(smoothing=0.01, records=records + 1), domain={"pay": GRID}, **PAIR)
    with pytest.raises(CalibrationError) as caught:
        privurn.release(PAY, privurn.PosteriorDraws(alpha=3), domain={"pay": GRID}, **PAIR)
    assert len(caught.value.alternatives) == 3
    assert privurn.release(PAY, caught.value.alternatives[0].changes["mechanism"], domain={"pay": GRID}, **PAIR)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"mechanism": privurn.NoisyCounts(noise="cauchy")}, FormatError),
        ({"mechanism": privurn.NoisyCounts(publish="means")}, FormatError),
        ({"mechanism": privurn.NoisyCounts(publish="counts", records=5)}, ModelError),
        ({"mechanism": privurn.NoisyCounts(publish="counts", smoothing=0.5)}, ModelError),
        ({"mechanism": privurn.NoisyCounts(smoothing=2)}, ModelError),
        ({"mechanism": privurn.NoisyCounts(noise="discrete-gaussian"), "delta": 0}, CalibrationError),
        ({"mechanism": privurn.Smoothed(smoothing=0)}, ModelError),
        ({"mechanism": privurn.PosteriorDraws(draws=0)}, ModelError),
        ({"mechanism": privurn.PosteriorDraws(records=1000)}, ModelError),
        ({"mechanism": "perturbed-histogram"}, FormatError),
        ({"mechanism": privurn.NoisyCounts}, FormatError),
        ({"mechanism": privurn.Discover()}, ModelError),
        ({"mechanism": privurn.PosteriorDraws(), "domain": {"pay": SPREAD}}, DomainError),
        ({"mechanism": privurn.NoisyCounts(publish="counts"), "domain": {"pay": SPREAD}}, DomainError),
        ({"mechanism": privurn.NoisyCounts(), "domain": {"town": privurn.OpenLabels()}}, ModelError),
        ({"mechanism": privurn.NoisyCounts(), "domain": None}, DomainError),
        ({"mechanism": privurn.NoisyCounts(), "domain": {"pay": privurn.Grid(0, 80_000_000, 1)}}, ModelError),
    ],
)
def test_impossible_requests_cost_nothing(arguments, kind, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=2, delta=1e-5)
    with pytest.raises(kind):
        privurn.release(PAY, **{"domain": {"pay": GRID}, "ledger": ledger, **PAIR, **arguments})
    assert ledger.entries() == []


def test_within_bins(tmp_path):
    frame = pd.DataFrame({"pay": [5.0] * 4000 + [None] * 1000 + [900.0] * 1000})
    domain = privurn.Bins([0, 10, 100], outside="other", nulls="cell")
    spread = replace(domain, within="uniform")
    made = privurn.release(frame, privurn.NoisyCounts(), domain=spread, epsilon=8, entropy=SeededEntropy(3))
    values = made.data.pay.dropna()
    assert values.between(0, 100, inclusive="neither").all()
    assert values.nunique() > 3000
    assert 1500 < made.data.pay.isna().sum() < 2500  # 2000 with a deviation of 37: beyond with probability 1e-40
    assert made.certificate["domain"]["columns"]["pay"]["within"] == "uniform"
    plain = privurn.release(frame, privurn.NoisyCounts(), domain=domain, epsilon=8).save(tmp_path / "out")
    assert set(plain.data.pay.dropna()) <= {5.0, 55.0}
    assert "within" not in plain.certificate["domain"]["columns"]["pay"]
    with pytest.raises(DomainError):
        decode(np.array([0]), privurn.JointDomain({"pay": spread}))
    with pytest.raises(DomainError, match="within='edges' is not known"):
        replace(domain, within="edges")


# ---- planning and the command line -----------------------------------------------------------------------------------


def test_the_plan_lists_them():
    found = options(n=5000, cells=40, guarantee=Guarantee(**PAIR))
    names = [option.mechanism for option in found]
    assert names.count("perturbed-histogram") == 2
    smoothed = next(option for option in found if option.mechanism == "smoothed-histogram")
    assert smoothed.effective_sample_size == pytest.approx(5000 * (1 - smoothed.prior_weight) ** 2)
    sample = next(option for option in found if option.mechanism == "posterior-sample")
    assert sample.records == 10**6
    assert sample.effective_sample_size > smoothed.effective_sample_size / 2
    pure = [option.mechanism for option in options(n=5000, cells=40, guarantee=Guarantee(epsilon=1, delta=0.0))]
    assert pure.count("perturbed-histogram") == 1
    assert "posterior-sample" not in pure
    fine = options(n=50, cells=10**7, guarantee=Guarantee(**PAIR))
    [row] = [option for option in fine if option.mechanism == "perturbed-histogram"]
    assert row.records == 0
    assert "at most 5,000,000" in row.remark


def test_the_command_line(privurn_command, tmp_path):
    PAY.to_csv(tmp_path / "pay.csv", index=False)
    words = ["release", "pay.csv", "--column", "pay", "--epsilon", 1, "--mechanism"]
    done = privurn_command(
        *words,
        "perturbed-histogram",
        "--grid",
        "0:80000:20000",
        "--publish",
        "counts",
        "--noise",
        "laplace",
        "-o",
        "a",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "5 noisy counts" in done.stdout
    assert (tmp_path / "a" / "data.csv").read_text().splitlines()[0] == '"pay","count"'
    assert privurn_command("verify", "a", cwd=tmp_path).returncode == 0
    done = privurn_command(
        *words,
        "smoothed-histogram",
        "--bins",
        "0,9000,80000",
        "--smoothing",
        "0.7",
        "--within",
        "uniform",
        "-o",
        "b",
        "--json",
        cwd=tmp_path,
    )
    assert json.loads(done.stdout)["certificate"]["mechanism"]["parameters"]["weight"] == "7/10"
    done = privurn_command(
        *words, "posterior-sample", "--grid", "0:80000:20000", "--delta", 1e-6, "--draws", 2, "-o", "c", cwd=tmp_path
    )
    assert "10 cell probabilities" in done.stdout
    assert privurn_command("verify", "c", cwd=tmp_path).returncode == 0
    done = privurn_command(*words, "perturbed-histogram", "-o", "d", cwd=tmp_path)  # no bounds
    assert done.returncode == 2
    assert "--grid" in done.stderr
    done = privurn_command(*words, "auto", "--grid", "0:80000:20000", "--draws", 2, "-o", "d", cwd=tmp_path)
    assert done.returncode == 2
    assert "posterior-sample" in done.stderr
