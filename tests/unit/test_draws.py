"""Draws: diagnostics that notice a stuck chain, and the way to ArviZ and netCDF and back."""

import numpy as np
import pytest

from privurn.errors import FormatError, ModelError
from privurn.inference.draws import Draws, effective_draws, potential_scale_reduction


def autoregression(rng, *, chains, draws, rho, shift=0.0):
    noise = rng.normal(size=(chains, draws)) * np.sqrt(1 - rho**2)
    out = np.empty((chains, draws))
    out[:, 0] = rng.normal(size=chains)
    for t in range(1, draws):
        out[:, t] = rho * out[:, t - 1] + noise[:, t]
    return out + shift * np.arange(chains)[:, None]


def test_effective_draws_of_an_autoregression():
    values = autoregression(np.random.default_rng(3), chains=4, draws=20_000, rho=0.9)
    assert effective_draws(values) == pytest.approx(80_000 * (1 - 0.9) / (1 + 0.9), rel=0.15)


def test_problems_name_what_has_not_mixed():
    rng = np.random.default_rng(4)
    good = autoregression(rng, chains=4, draws=2000, rho=0.3)
    apart = autoregression(rng, chains=4, draws=2000, rho=0.3, shift=2.0)
    slow = autoregression(rng, chains=4, draws=2000, rho=0.999)
    draws = Draws(variables={"good": good, "apart": apart, "slow": slow}, markov=True)
    words = " ".join(draws.problems())
    assert "apart has not mixed" in words
    assert "slow has not mixed" in words
    assert "good" not in words
    assert potential_scale_reduction(good) < 1.01
    assert potential_scale_reduction(apart) > 1.05
    assert Draws(variables={"apart": apart}, markov=False).problems() == ()


def test_a_chain_on_its_way_from_a_bad_start_is_seen():
    """A hundredth of one chain far away: ranks do not see it, the mean does."""
    rng = np.random.default_rng(6)
    clean = rng.normal(size=(4, 8000))
    spoilt = clean.copy()
    spoilt[2, :80] += 1000.0 * np.linspace(1.0, 0.0, 80)
    assert potential_scale_reduction(spoilt) < 1.01
    draws = Draws(variables={"clean": clean, "spoilt": spoilt}, markov=True)
    [problem] = draws.problems()
    assert problem.startswith("spoilt has a mean")
    assert draws.problems(means=False) == ()


def test_a_mean_outside_its_interval_needs_draws_that_come_often():
    """One draw in a hundred far away: six of them are too few to say how often they come, sixty are not."""
    rng = np.random.default_rng(7)

    def rare(draws):
        values = rng.normal(1.0, 0.1, (4, draws))
        values[:, ::100] = 1e6
        return values

    few, many = (Draws(variables={"share": rare(draws)}, markov=True) for draws in (200, 2000))
    for each in (few, many):
        [row] = each.summary()
        assert row.mean > row.upper
    assert few.problems()[0].startswith("share has a mean")
    assert many.problems() == ()


def test_far_draws_of_one_chain_alone_are_seen_however_often_they_come():
    """A chain that comes and goes where no other has been has seen something else, or is not there yet."""
    values = np.random.default_rng(9).normal(1.0, 0.1, (4, 4000))
    values[1, :800:8] = 1e3
    [problem] = Draws(variables={"x": values}, markov=True).problems()
    assert problem.startswith("x has a mean")
    values[:, ::50] = 1e3
    assert Draws(variables={"x": values}, markov=True).problems() == ()


def test_heavy_tails_of_independent_draws_are_no_problem():
    values = np.random.default_rng(8).standard_t(3.0, size=(4, 2000))
    assert Draws(variables={"x": values}, markov=True).problems() == ()


def test_summary_of_vectors_names_their_places():
    values = np.random.default_rng(5).normal([0.0, 10.0], 1.0, size=(2, 500, 2))
    draws = Draws(variables={"p": values}, markov=True, dims={"p": ("cell",)}, coords={"cell": ["a", "b"]})
    first, second = draws.summary(level=0.9)
    assert (first.name, second.name) == ("p[a]", "p[b]")
    assert second.lower == pytest.approx(10 - 1.645, abs=0.25)
    assert first.r_hat == pytest.approx(1.0, abs=0.02)
    constant = Draws(variables={"n": np.full((2, 10), 7)}, markov=True).summary()[0]
    assert (constant.mean, constant.deviation, constant.r_hat, constant.standard_error) == (7.0, 0.0, 1.0, 0.0)


def test_ends_of_an_interval_are_values_that_were_drawn():
    """Of 0 and 10, each in half of the draws, nothing lies between: an end at 9.5 would be no value at all."""
    draws = Draws(variables={"clusters": np.array([[0.0] * 10 + [10.0] * 10])}, markov=False)
    for level in (0.05, 0.5, 0.9):
        [row] = draws.summary(level=level)
        assert (row.lower, row.upper) == (0.0, 10.0)


def test_to_datatree_and_netcdf(tmp_path):
    import xarray

    values = np.random.default_rng(6).normal(size=(2, 10, 3))
    draws = Draws(
        variables={"p": values},
        markov=True,
        dims={"p": ("cell",)},
        coords={"cell": [1.5, 2.5, 3.5]},
        sample_stats={"accepted": np.ones((2, 10))},
        attributes={"sampler": "count-gibbs", "seed": 3, "exact": True, "moves": ["a", "b"]},
    )
    path = draws.save(tmp_path / "draws.nc")
    tree = xarray.open_datatree(path, engine="h5netcdf")
    assert np.array_equal(tree["posterior"]["p"].values, values)
    assert tree["posterior"]["p"].dims == ("chain", "draw", "cell")
    assert tree["posterior"].attrs["sampler"] == "count-gibbs"
    assert tree["posterior"].attrs["moves"] == '["a", "b"]'
    assert tree["sample_stats"]["accepted"].shape == (2, 10)
    tree.close()
    assert [each.name for each in tmp_path.iterdir()] == ["draws.nc"]
    old = draws.to_inference_data()
    assert np.array_equal(old.posterior["p"].values, values)


def test_an_interrupted_save_leaves_nothing(tmp_path, monkeypatch):
    draws = Draws(variables={"p": np.zeros((1, 4))}, markov=False)

    def stop(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Draws, "to_datatree", stop)
    with pytest.raises(KeyboardInterrupt):
        draws.save(tmp_path / "draws.nc")
    assert list(tmp_path.iterdir()) == []


def test_bad_input(tmp_path):
    with pytest.raises(ModelError, match="same chains"):
        Draws(variables={"a": np.zeros((1, 4)), "b": np.zeros((1, 5))}, markov=False)
    with pytest.raises(ModelError, match="dims"):
        Draws(variables={"a": np.zeros((1, 4))}, markov=False, dims={"a": ("cell",)})
    draws = Draws(variables={"a": np.zeros((1, 4))}, markov=False)
    with pytest.raises(ModelError, match="no draws of 'b'"):
        draws["b"]
    with pytest.raises(FormatError, match="netCDF"):
        draws.save(tmp_path / "draws.csv")
    with pytest.raises(FormatError, match="no folder"):
        draws.save(tmp_path / "none" / "draws.nc")
    with pytest.raises(ModelError, match="level"):
        draws.summary(level=95)
    with pytest.raises(ModelError, match="level"):
        draws.summary(level="95%")
    for names in (3, "a"):
        with pytest.raises(ModelError, match="names are a list"):
            draws.summary(names)
    with pytest.raises(ModelError, match="there are no draws of"):
        draws[["a"]]
    with pytest.raises(ModelError, match="NumPy arrays"):
        Draws(variables={"a": [[1.0, 2.0]]}, markov=False)
