"""Pictures hold the numbers they claim to show, and say what they are."""

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from papers.monte_carlo import DensityRatios, density_ratios, monte_carlo_instance
from papers.pictures import density_ratio_picture, instance_curves

from privurn import drawing
from privurn.errors import FormatError, ModelError
from privurn.mechanisms.urn_plan import plan_default, plan_urn
from privurn.privacy.calibration import alpha_star, largest_records
from privurn.privacy.instance.cost import instance_delta, instance_delta_public_domain
from privurn.privacy.laws.add_remove import AddRemoveDirichletMultinomialProfile, alpha_star_add_remove
from privurn.privacy.laws.noise import GaussianProfile
from privurn.privacy.laws.urn import DirichletMultinomialProfile, DirichletProcessProfile, PitmanYorProfile
from privurn.privacy.profile import Guarantee
from privurn.privacy.trade_off import trade_off
from privurn.releases.pictures import plan_picture

CELLS = DirichletMultinomialProfile(n=5000, cells=20, alpha=12.0, records=3000)
FEW = DirichletMultinomialProfile(n=50, cells=5, alpha=2.0, records=3)
FRESH = DirichletProcessProfile(n=10_000, records=100, strength=1)
COUNTS = [40, 25, 30, 12, 7]


def lines(axes):
    """Curves with a label of their own, by label."""
    return {line.get_label(): line.get_xydata() for line in axes.lines if not line.get_label().startswith("_")}


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_profile_curves_are_the_profiles():
    promise = Guarantee(epsilon=1.0, delta=1e-6)
    picture = drawing.profile_curves({"cells": CELLS, "few": FEW, "fresh": FRESH}, guarantees={"cells": promise})
    (axes,) = picture.axes
    shown = lines(axes)
    assert list(shown) == ["cells, promised (1, 1e-06)", "few", "fresh"] == legend(axes)
    for points, profile in zip(shown.values(), (CELLS, FEW, FRESH), strict=True):
        for epsilon, delta in points:
            assert delta == pytest.approx(max(profile.delta(epsilon), 1e-15), rel=1e-9)
    assert shown["few"][-1, 0] == FEW.pure_epsilon  # and leaves the picture there
    assert shown["few"][-1, 1] < axes.get_ylim()[0]
    assert set(shown["fresh"][:, 1].round(12)) == {round(100 / 10_100, 12)}
    (dot,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert dot.get_xydata().tolist() == [[1.0, 1e-6]]
    assert axes.get_yscale() == "log"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("epsilon", "delta")
    assert "profile" in picture.get_suptitle()


@pytest.mark.parametrize("profile", [CELLS, FEW], ids=["many records", "three records"])
def test_between_its_points_a_curve_is_off_by_little(profile):
    (axes,) = drawing.profile_curves(profile).axes
    points = axes.lines[0].get_xydata()
    assert len(points) < 120  # few enough for a profile whose points are dear
    for epsilon in np.random.default_rng(1).uniform(0.0, 0.98 * points[-1, 0], 300):
        drawn = np.interp(epsilon, points[:, 0], np.log(points[:, 1]))
        if drawn > math.log(1e-12):
            assert drawn == pytest.approx(math.log(profile.delta(epsilon)), abs=0.1)


def test_the_axes_reach_every_promise():
    far, none = Guarantee(epsilon=3.0, delta=1e-14), Guarantee(epsilon=0.5, delta=0.0)
    (axes,) = drawing.profile_curves({"far": FRESH, "none": FEW}, guarantees={"far": far, "none": none}).axes
    assert axes.get_xlim()[1] > 3.0
    marks = {line.get_marker(): line.get_xydata()[0] for line in axes.lines if len(line.get_xydata()) == 1}
    assert marks["v"].tolist() in ([3.0, 1e-12], [0.5, 1e-12])
    assert axes.get_ylim()[0] < 1e-12


def test_trade_off_curves():
    promise = Guarantee(epsilon=1.0, delta=0.05)
    picture = drawing.trade_off_curves({"cells": CELLS}, guarantees=[promise, replace(promise, contributions=2)], points=21)
    (axes,) = picture.axes
    shown = lines(axes)
    assert len(shown) == 3  # one curve for equal promises
    rates = np.linspace(0.0, 1.0, 21)
    assert np.array_equal(shown["cells"], np.column_stack([rates, trade_off(CELLS, false_positive=rates)]))
    (diagonal,) = (xy for label, xy in shown.items() if "perfect privacy" in label)
    assert diagonal.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    (alone,) = (xy for label, xy in shown.items() if "promise" in label)
    e = math.exp(1.0)
    expected = np.maximum.reduce([np.zeros(21), 0.95 - e * rates, (0.95 - rates) / e])
    assert alone[:, 1] == pytest.approx(expected, abs=1e-9)
    assert "Trade-off" in picture.get_suptitle()


@pytest.mark.parametrize(
    "urn",
    [
        DirichletMultinomialProfile(n=10_000, cells=10, alpha=5.0, records=1),
        AddRemoveDirichletMultinomialProfile(cells=10, alpha=5.0, records=1),
        DirichletProcessProfile(n=100_000, strength=1.0, records=1),
        PitmanYorProfile(n=1000, strength=1.0, discount=0.5, records=7),
    ],
    ids=lambda urn: type(urn).__name__,
)
def test_records_map_is_made_of_level_curves(urn):
    epsilons = np.geomspace(0.3, 3.0, 8)
    picture = drawing.records_map(urn, epsilons=epsilons, deltas=(1e-6, 1e-2))
    axes, bar = picture.axes
    levels = {int(label.removeprefix("m = ").replace(",", "")): xy for label, xy in lines(axes).items()}
    assert [10**k for k in range(len(levels))] == list(levels)
    for records, xy in levels.items():
        expected = [min(max(replace(urn, records=records).delta(e), 1e-6), 1e-2) for e in epsilons]
        assert xy[:, 1].tolist() == expected
        assert np.array_equal(xy[:, 0], epsilons)
    assert "Largest number of records" in picture.get_suptitle()
    assert urn.neighbouring in picture.get_suptitle()
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in bar.get_yticklabels()] == [f"{records:,}" for records in levels]


def test_records_map_agrees_with_the_solver():
    urn = DirichletMultinomialProfile(n=10_000, cells=10, alpha=5.0, records=1)
    epsilons = np.geomspace(0.3, 3.0, 6)
    axes, _ = drawing.records_map(urn, epsilons=epsilons, deltas=(1e-8, 1e-2)).axes
    levels = {int(label.removeprefix("m = ").replace(",", "")): xy[:, 1] for label, xy in lines(axes).items()}
    for i, epsilon in enumerate(epsilons):
        for delta in (3e-7, 2e-4):
            most = largest_records(urn, epsilon=float(epsilon), delta=delta)
            passed = [records for records, curve in levels.items() if curve[i] <= delta]
            if most == "unlimited":
                assert passed == list(levels)
            else:
                assert passed == [records for records in levels if records <= most]


def test_records_map_names_its_empty_regions():
    few, _ = drawing.records_map(DirichletProcessProfile(n=10_000, strength=1, records=1)).axes
    assert legend(few) == ["not even one"]
    many, _ = drawing.records_map(replace(CELLS, alpha=100.0), epsilons=np.geomspace(0.5, 3.0, 5)).axes
    assert legend(many) == ["unlimited"]
    one, _ = drawing.records_map(replace(CELLS, cells=1), epsilons=np.geomspace(0.5, 3.0, 5)).axes
    assert legend(one) == ["unlimited"]
    with pytest.raises(ModelError):
        drawing.records_map(GaussianProfile(scale=3.0))


@pytest.mark.parametrize(("relation", "solve"), [("replace-one", alpha_star), ("add-remove", alpha_star_add_remove)])
def test_alpha_star_curves(relation, solve):
    picture = drawing.alpha_star_curves(deltas=(1e-4, 1e-6), epsilons=[0.5, 1.0, 2.0], neighbouring=relation)
    (axes,) = picture.axes
    shown = lines(axes)
    assert list(shown) == ["delta = 0.0001", "delta = 1e-06"]
    for delta, xy in zip((1e-4, 1e-6), shown.values(), strict=True):
        assert xy.tolist() == [[epsilon, solve(epsilon=epsilon, delta=delta)] for epsilon in (0.5, 1.0, 2.0)]
    assert relation in picture.get_suptitle()
    if relation == "replace-one":
        assert shown["delta = 1e-06"][1, 1] == pytest.approx(37.1, abs=0.05)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_plan_picture(delta):
    guarantee = Guarantee(epsilon=1.0, delta=delta)
    picture = plan_picture(n=5000, cells=100, guarantee=guarantee, points=12)
    above, below = picture.axes
    numbers, worth = lines(above)["released records"].T
    plans = [plan_urn(n=5000, cells=100, guarantee=guarantee, records=int(m)) for m in numbers]
    assert worth.tolist() == [each.effective_sample_size for each in plans]
    assert below.lines[0].get_ydata().tolist() == [100.0 * each.prior_weight for each in plans]
    chosen = plan_default(n=5000, cells=100, guarantee=guarantee)
    (dot,) = (xy for label, xy in lines(above).items() if label.startswith("default"))
    assert dot.tolist() == [[chosen.records, chosen.effective_sample_size]]
    assert any("unlimited" in label for label in lines(above)) == (delta > 0.0)
    assert "n = 5,000, 100 cells, epsilon = 1" in picture.get_suptitle()
    assert below.get_ylabel().startswith("shrinkage")


def test_density_ratios_in_both_directions():
    ratios = density_ratios(n=60, records=20, strength=2.0, discount=0.4, datasets=5, releases=6, neighbours=7, seed=3)
    assert 0 < ratios.singular.sum() < ratios.singular.size  # else the test below sees nothing
    forward, backward = density_ratio_picture(ratios, epsilons=(0.5, 1.5)).axes
    flat, singular = ratios.log_ratio.ravel(), ratios.singular.ravel()
    for axes, logs, side in ((forward, flat, 0), (backward, -flat, 1)):
        dots, crosses, low, high = axes.lines
        assert dots.get_ydata() == pytest.approx(np.exp(logs[~singular]))
        assert crosses.get_ydata() == pytest.approx(np.exp(logs[singular]))
        assert np.array_equal(crosses.get_xdata(), np.flatnonzero(singular))
        assert [low.get_ydata()[0], high.get_ydata()[0]] == [math.exp(0.5), math.exp(1.5)]
        assert f"{ratios.share_above(0.5)[side]:.2%} above" in legend(axes)[1]


def test_many_density_ratios_are_thinned_but_counted():
    size = 5000
    log_ratio = np.zeros((1, 1, size))
    log_ratio[..., 1] = 2.0  # falls between the drawn ones
    ratios = DensityRatios(log_ratio=log_ratio, kind=np.zeros_like(log_ratio, np.int8), singular=log_ratio > 9.0)
    axes, _ = density_ratio_picture(ratios, epsilons=(1.0,), most_points=500).axes
    assert len(axes.lines[0].get_ydata()) == 500
    assert legend(axes) == [f"e^1: {1 / size:.2%} above, impossible ones included"]


def test_instance_curves_are_marked_confidential():
    epsilons = [2.0, 0.1, 0.6]
    urn = {"records": 20, "strength": 1.0, "discount": 0.3}
    reports = [instance_delta(COUNTS, epsilon=e, **urn) for e in epsilons]
    estimates = [monte_carlo_instance(COUNTS, epsilon=e, **urn, simulations=2000, seed=i) for i, e in enumerate(epsilons)]
    picture = instance_curves(reports, estimates=estimates)
    assert picture.get_suptitle().startswith("CONFIDENTIAL")
    (axes,) = picture.axes
    shown = lines(axes)
    ordered = sorted(reports, key=lambda each: each.epsilon)
    assert shown["two-sided, tight"].tolist() == [[each.epsilon, each.delta] for each in ordered]
    forward = shown["forward, as in the papers (delta#)"]
    assert np.nan_to_num(forward[:, 1]).tolist() == [each.delta_forward for each in ordered]  # 0 is not drawn
    bars = [each for each in axes.containers if each.lines[0] is not None]
    assert bars[0].lines[0].get_ydata().tolist() == [each.delta.value for each in estimates]
    heights = np.array([segment[:, 1] for segment in bars[0].lines[2][0].get_segments()])
    errors = [each.delta.standard_error for each in estimates]
    assert np.diff(heights, axis=1).ravel() == pytest.approx([4.0 * each for each in errors])
    zeros = sum(getattr(each, name).value == 0.0 for each in estimates for name in ("delta_forward", "delta_forward_tight"))
    assert zeros >= 1
    assert len([each for each in axes.containers if each.lines[0] is None]) == zeros  # arrows
    with pytest.raises(ModelError):
        instance_curves([])


def test_only_confidential_pictures_say_so():
    public = drawing.profile_curves(FEW)
    assert "CONFIDENTIAL" not in public.get_suptitle()
    reports = [instance_delta_public_domain(COUNTS, cells=6, epsilon=9.0, records=2, alpha=1.0)]
    assert reports[0].delta == 0.0  # nothing to draw, and still a picture
    assert "CONFIDENTIAL" in instance_curves(reports).get_suptitle()


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_saved_by_suffix_and_reproducible(tmp_path, suffix, start):
    paths = [drawing.save(drawing.profile_curves(FEW), tmp_path / f"{name}.{suffix}") for name in "ab"]
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(start)
    assert len(first) > 3000
    assert first == second
    assert b"http://www.w3.org" in first or suffix != "svg"


@pytest.mark.parametrize("name", ["picture.gif", "picture", "nowhere/picture.png"])
def test_a_picture_that_cannot_be_saved(tmp_path, name):
    with pytest.raises(FormatError):
        drawing.save(drawing.profile_curves(FEW), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_odd_names_reach_the_legend(tmp_path):
    named = {"_hidden": FEW, "cost $x_1$ and $\\frac$": FRESH, "a/" * 60 + "end": CELLS}
    picture = drawing.profile_curves(named)
    drawing.save(picture, tmp_path / "odd.png")
    first, second, third = legend(picture.axes[0])
    assert "_hidden" in first
    assert second.count("\\$") == 4
    assert third.endswith("/end")
    assert len(third) < 40
    with pytest.raises(ModelError):
        drawing.profile_curves({})


def test_no_global_state_and_no_early_import():
    code = (
        "import sys, privurn.drawing as f\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from privurn.privacy.laws.urn import DirichletProcessProfile as P\n"
        "f.profile_curves(P(n=10, records=1, strength=1))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
