"""Runs of chains: the same for any number of threads and pieces, and bit by bit the same after an interruption."""

import numpy as np
import pytest

from privurn.errors import FormatError, ModelError
from privurn.inference import run as running
from privurn.inference.run import TAILS, Schedule, run_chains, run_until_mixed


class Walk:
    """An autoregression whose step is adapted while warming."""

    name = "walk"
    monitored = ("x",)

    def __init__(self, *, data=1.0, stop_after=None):
        self.data, self.stop_after, self.calls = data, stop_after, 0

    def fingerprint(self):
        return f"walk {self.data}"

    def start(self, rng):
        return {"x": rng.normal(size=1), "step": np.ones(1)}

    def advance(self, state, rng, *, sweeps, thin, warming):
        self.calls += 1
        if self.stop_after is not None and self.calls > self.stop_after:
            raise KeyboardInterrupt
        kept = []
        for t in range(sweeps):
            noise = rng.normal()
            state["x"][0] = 0.5 * state["x"][0] + state["step"][0] * noise
            if warming:
                state["step"][0] *= np.exp(0.01 * (abs(noise) - 0.8))
            if (t + 1) % thin == 0:
                kept.append(state["x"][0])
        return {"x": np.array(kept)}, {"size": np.abs(kept)}


SCHEDULE = Schedule(chains=3, warm_up=230, draws=310, thin=2, seed=8)


def test_the_same_for_any_threads_and_pieces(monkeypatch):
    first = run_chains(Walk(), schedule=SCHEDULE, threads=1)
    monkeypatch.setattr(running, "PIECES", 7)
    second = run_chains(Walk(), schedule=SCHEDULE, threads=3)
    assert first["x"].shape == (3, 310)
    assert np.array_equal(first["x"], second["x"])
    assert not np.array_equal(first["x"][0], first["x"][1])
    assert first.attributes["seed"] == 8
    assert first.attributes["sampler"] == "walk"
    assert first.sample_stats["size"].shape == (3, 310)


@pytest.mark.parametrize("calls", [4, 301, 303, 500])
def test_an_interrupted_run_goes_on_bit_by_bit(tmp_path, calls):
    whole = run_chains(Walk(), schedule=SCHEDULE)
    file = tmp_path / "run.ckpt"
    with pytest.raises(KeyboardInterrupt):
        run_chains(Walk(stop_after=calls), schedule=SCHEDULE, checkpoint=file)
    assert file.exists()
    resumed = run_chains(Walk(), schedule=SCHEDULE, checkpoint=file)
    assert np.array_equal(whole["x"], resumed["x"])
    assert np.array_equal(whole.sample_stats["size"], resumed.sample_stats["size"])
    again = Walk(stop_after=0)  # a finished run is not run again
    assert np.array_equal(run_chains(again, schedule=SCHEDULE, checkpoint=file)["x"], whole["x"])


def test_more_draws_continue_a_finished_run(tmp_path):
    file = tmp_path / "run.ckpt"
    short = Schedule(chains=3, warm_up=230, draws=100, thin=2, seed=8)
    run_chains(Walk(), schedule=short, checkpoint=file)
    longer = run_chains(Walk(), schedule=SCHEDULE, checkpoint=file)
    assert np.array_equal(longer["x"], run_chains(Walk(), schedule=SCHEDULE)["x"])
    with pytest.raises(FormatError, match="another run"):
        run_chains(Walk(), schedule=short, checkpoint=file)


def test_checkpoints_of_other_runs_are_refused(tmp_path):
    file = tmp_path / "run.ckpt"
    run_chains(Walk(), schedule=SCHEDULE, checkpoint=file)
    with pytest.raises(FormatError, match="another run"):
        run_chains(Walk(data=2.0), schedule=SCHEDULE, checkpoint=file)
    with pytest.raises(FormatError, match="another run"):
        run_chains(Walk(), schedule=Schedule(chains=3, warm_up=230, draws=310, thin=2, seed=9), checkpoint=file)
    file.write_bytes(b"PK nonsense")
    with pytest.raises(FormatError, match="cannot be read"):
        run_chains(Walk(), schedule=SCHEDULE, checkpoint=file)
    assert file.read_bytes() == b"PK nonsense"


def test_progress_ends_at_the_end_and_shows_figures():
    seen = []
    run_chains(Walk(), schedule=SCHEDULE, progress=lambda done, total, figures: seen.append((done, total, dict(figures))))
    assert seen[-1][0] == seen[-1][1] == SCHEDULE.sweeps
    assert [each[0] for each in seen] == sorted(each[0] for each in seen)
    assert set(seen[-1][2]) == {"ESS x", "size"}
    assert 100 < seen[-1][2]["ESS x"] < 2000


def test_a_fresh_seed_is_drawn_and_told():
    one, two = (run_chains(Walk(), schedule=Schedule(chains=1, warm_up=0, draws=5)) for _ in range(2))
    assert one.attributes["seed"] != two.attributes["seed"]
    again = run_chains(Walk(), schedule=Schedule(chains=1, warm_up=0, draws=5, seed=one.attributes["seed"]))
    assert np.array_equal(one["x"], again["x"])


def test_impossible_schedules():
    for words in ({"chains": 0}, {"draws": 0}, {"thin": 0}, {"warm_up": -1}, {"seed": -1}):
        with pytest.raises(ModelError):
            Schedule(**words)


@pytest.mark.parametrize("name", ["chains", "warm_up", "draws", "thin", "seed"])
@pytest.mark.parametrize("value", [2.5, "10", True, [1], np.float64(3.0)])
def test_schedules_are_of_whole_numbers(name, value):
    with pytest.raises(ModelError, match=rf"{name} must be a whole number, at least [01].\n  For example {name}=[14]"):
        Schedule(**{name: value})


def test_numbers_of_numpy_are_whole_too():
    schedule = Schedule(chains=np.int64(2), draws=np.uint8(5), seed=np.int32(3))
    assert schedule == Schedule(chains=2, draws=5, seed=3)
    assert {type(each) for each in (schedule.chains, schedule.draws, schedule.seed)} == {int}


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"threads": -1}, ModelError, "threads must be a whole number, at least 1"),
        ({"threads": 0}, ModelError, "threads"),
        ({"threads": 1.5}, ModelError, "threads"),
        ({"schedule": {"draws": 10}}, ModelError, "needs a schedule"),
        ({"progress": 3}, ModelError, "progress must be a function"),
        ({"checkpoint": 3}, FormatError, "name of a file"),
        ({"checkpoint": "."}, FormatError, "no checkpoint can be written"),
        ({"checkpoint": "nowhere/at/all.ckpt"}, FormatError, "folder that exists"),
    ],
)
def test_impossible_runs_are_refused_before_any_work(given, error, words):
    walk = Walk()
    with pytest.raises(error, match=words):
        run_chains(walk, **{"schedule": SCHEDULE} | given)
    assert walk.calls == 0


class Astray(Walk):
    """One chain in two starts far away and comes back slowly."""

    name, monitored = "astray", ()

    def start(self, rng):
        return {"x": np.array([1e6 * (rng.random() < 0.5)])}

    def advance(self, state, rng, *, sweeps, thin, warming):
        self.calls += 1
        if self.stop_after is not None and self.calls > self.stop_after:
            raise KeyboardInterrupt
        path = state["x"][0] * 0.999 ** np.arange(1, sweeps + 1)
        state["x"][0] = path[-1]
        kept = (path + rng.normal(size=sweeps))[thin - 1 :: thin]
        return {"x": kept}, {"size": np.abs(kept)}


ASTRAY = Schedule(chains=4, warm_up=100, draws=500, seed=3)


def test_chains_that_go_on_forget_what_was_judged():
    found, problems = run_until_mixed(Astray(), schedule=ASTRAY, longest=64_000)
    assert problems == ()
    assert found.n_draws > 2000
    assert found.attributes["draws"] == found.n_draws == found.attributes["forgotten"] + 500
    assert abs(found["x"].mean()) < 5.0 * found.summary()[0].standard_error
    whole = run_chains(Astray(), schedule=Schedule(chains=4, warm_up=100, draws=2 * found.n_draws - 500, seed=3))
    np.testing.assert_allclose(whole["x"][:, found.attributes["forgotten"] :], found["x"], rtol=1e-9)  # the same chains
    assert abs(whole["x"].mean()) > 1000.0  # with all that was judged
    _, stopped = run_until_mixed(Astray(), schedule=ASTRAY, longest=1000)
    assert stopped


@pytest.mark.parametrize("calls", [3, 700, 1200, 1201, 1600, 1605, 2100, 10**9])
def test_a_run_of_a_chosen_length_goes_on_bit_by_bit(tmp_path, calls):
    whole, _ = run_until_mixed(Astray(), schedule=ASTRAY, longest=64_000)
    file = tmp_path / "run.ckpt"
    try:
        run_until_mixed(Astray(stop_after=calls), schedule=ASTRAY, longest=64_000, checkpoint=file)
        assert calls == 10**9
    except KeyboardInterrupt:
        pass
    again = Astray(stop_after=0 if calls == 10**9 else None)  # a finished run is not run again
    resumed, problems = run_until_mixed(again, schedule=ASTRAY, longest=64_000, checkpoint=file)
    assert problems == ()
    assert np.array_equal(whole["x"], resumed["x"])
    assert np.array_equal(whole.sample_stats["size"], resumed.sample_stats["size"])
    assert whole.attributes == resumed.attributes
    with pytest.raises(FormatError, match="another run"):  # its first draws are gone
        run_chains(Astray(), schedule=Schedule(chains=4, warm_up=100, draws=10**6, seed=3), checkpoint=file)


def test_tails_too_heavy_for_a_mean_are_not_waited_for():
    class Cauchy(Walk):
        def advance(self, state, rng, *, sweeps, thin, warming):
            return {"x": np.repeat(rng.standard_cauchy(sweeps // 5 + 1), 5)[:sweeps]}, {}

    schedule = Schedule(chains=4, warm_up=0, draws=500, seed=2)
    found, problems = run_until_mixed(Cauchy(), schedule=schedule, longest=10**6)
    assert found.n_draws <= TAILS * 500
    assert found.problems(means=False) == ()
    assert (problems == ()) == (found.problems() == ())
