"""`privurn infer` on privatised records as a person meets it."""

import json

import numpy as np
import pytest

from privurn.inference.mixtures.samplers import MixtureSampler

SHORT = ["--draws", 40, "--warm-up", 20, "--thin", 1, "--chains", 2, "--seed", 1, "--sampler", "neal5"]


@pytest.fixture
def noisy(tmp_path, monkeypatch):
    """Sixty records in two groups behind Laplace noise, in a folder; the working folder is beside it."""
    return privatised(tmp_path, monkeypatch, epsilon=10)


def privatised(tmp_path, monkeypatch, *, epsilon):
    import privurn

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")  # no word of a table is broken
    rng = np.random.default_rng(1)
    y = rng.choice([-5.0, 5.0], size=60) + rng.normal(size=60)
    privurn.privatise(y, domain=privurn.Bounds(-10, 10), epsilon=epsilon).save("noisy")
    return tmp_path


def test_table_and_files(command, noisy):
    pictures = ["--plot", "density.png", "--plot", "together=together.svg", "--plot", "clusters=k.png"]
    files = ["-o", "draws.nc", "--synthetic", "synthetic.csv", "--records", "1e2"]
    done = command("infer", "noisy", *SHORT, "--clusters", "--deconvolution", *pictures, *files)
    assert done.returncode == 0, done.stderr
    for word in ("n_clusters", "mean", "q0.5", "effective draws", "R-hat", "accepted", "Hellinger", "Point clustering"):
        assert word in done.stdout
    assert "has not mixed" in done.stderr  # forty draws
    assert (noisy / "synthetic.csv").read_text().count("\n") == 101
    for name in ("density.png", "together.svg", "k.png", "draws.nc"):
        assert (noisy / name).stat().st_size > 1000


def test_json_says_everything(command, noisy):
    done = command("infer", "noisy/data.csv", *SHORT, "--strength", "gamma:2:2", "--clusters", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["channel"]["scale"] == 2.0
    assert (answer["records"], answer["sampler"], answer["chains"], answer["draws"]) == (60, "neal5", 2, 40)
    names = [each["name"] for each in answer["variables"]]
    assert names[:3] == ["n_clusters", "strength", "mean[within bounds]"]
    assert len(answer["clusters"]["labels"]) == 60
    assert 0.0 < answer["acceptance"] <= 1.0
    density = answer["density"]
    assert np.all(np.array(density["lower"]) <= np.array(density["upper"]))
    width = density["grid"][1] - density["grid"][0]
    assert 0.8 < width * sum(density["mean"]) <= 1.0 + 1e-6
    again = json.loads(command("infer", "noisy", *SHORT, "--strength", "gamma:2:2", "--clusters", "--json").stdout)
    assert again == answer


def test_the_file_of_draws_holds_what_is_printed(command, noisy):
    import xarray

    done = command("infer", "noisy", *SHORT, "--level", 0.9, "-o", "draws.nc", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    with xarray.open_datatree(noisy / "draws.nc", engine="h5netcdf") as tree:
        stored = tree["posterior"].dataset.load()
    figures = {each["name"]: each for each in answer["variables"]}
    for name in ("mean", "deviation", "q0.05", "q0.25", "q0.5", "q0.75", "q0.95"):
        values, printed = stored[name].to_numpy(), figures[f"{name}[within bounds]"]
        assert values.shape == (2, 40)
        assert stored[name].attrs["long_name"] == f"{name}[within bounds]"
        assert printed["mean"] == pytest.approx(values.mean(), rel=1e-12)
        assert (printed["lower"], printed["upper"]) == pytest.approx(
            tuple(np.quantile(values, [0.05, 0.95], method="inverted_cdf")), rel=1e-12
        )
    assert stored.attrs["mass_not_kept"] == answer["mass_not_kept"]
    assert 0.0 < answer["mass_not_kept"] <= 1e-4
    table = command("infer", "noisy", *SHORT).stdout
    assert "mean[within bounds]" in table
    assert "of the population between -10 and 10" in table
    assert "was not drawn atom by atom" in table


def test_a_release_that_says_nothing_is_called_so(command, tmp_path, monkeypatch):
    privatised(tmp_path, monkeypatch, epsilon=1e-3)
    done = command("infer", "noisy", *SHORT[2:], "--draws", 200, "--json")
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert not answer["informativeness"]["informative"]
    assert any("the release tells little" in each for each in answer["warnings"])
    assert "warning: the release tells little" in done.stderr


def interrupted(monkeypatch, after):
    """Ctrl-C in the middle of a sweep, once."""
    sweeps, calls = MixtureSampler.advance, []

    def advance(self, *given, **options):
        calls.append(None)
        if len(calls) == after:
            raise KeyboardInterrupt
        return sweeps(self, *given, **options)

    monkeypatch.setattr(MixtureSampler, "advance", advance)
    return calls


@pytest.mark.parametrize("after", [3, 75], ids=["warming up", "drawing"])
def test_interrupted_runs_leave_the_checkpoint_alone_and_go_on(command, noisy, monkeypatch, after):
    words = ["infer", "noisy", *SHORT, "--json"]
    whole = json.loads(command(*words).stdout)
    with monkeypatch.context() as patch:
        calls = interrupted(patch, after)
        done = command(*words, "--checkpoint", "run.npz", "-o", "draws.nc", "--plot", "density.png")
    assert done.returncode == 130
    assert len(calls) >= after
    assert "interrupted: nothing is half-written" in done.stderr
    assert sorted(each.name for each in noisy.iterdir()) == ["noisy", "run.npz"]
    resumed = command(*words, "--checkpoint", "run.npz")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout) == whole
    other = command(*words[:-1], "--strength", 2, "--checkpoint", "run.npz")
    assert other.returncode == 2
    assert "belongs to another run" in other.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--kernel", "beta"], 2, "between 0 and 1"),
        (["--kernel", "categorical"], 2, "whole numbers"),
        (["--kernel", "cauchy"], 2, "auto, gaussian"),
        (["--mixing", "urn"], 2, "dirichlet-process, pitman-yor, finite"),
        (["--discount", 0.2], 2, "--mixing pitman-yor"),
        (["--components", 3], 2, "--mixing finite"),
        (["--mixing", "pitman-yor", "--discount", 1.5], 2, "discount < 1"),
        (["--mixing", "finite", "--strength", "gamma:1:1"], 2, "only the Dirichlet process"),
        (["--strength", "much"], 2, "gamma:2:2"),
        (["--strength", "-1"], 2, "positive"),
        (["--sampler", "gibbs"], 2, "not known"),
        (["--sampler", "neal2"], 2, "conjugate"),
        (["--draws", "0"], 2, "at least 1"),
        (["--level", 1], 2, "between 0 and 1"),
        (["--plot", "density.gif"], 2, ".png, .svg or .pdf"),
        (["--plot", "pie=pie.png"], 2, "traces"),
        (["--plot", "none/density.png"], 2, "no folder"),
        (["--checkpoint", "none/run.npz"], 2, "no folder"),
        (["-o", "draws.csv"], 2, ".nc"),
        (["--synthetic", "synthetic.txt", "--records", 5], 2, "CSV or Parquet"),
        (["--synthetic", "synthetic.csv", "--records", 0], 2, "at least one"),
        (["--synthetic", "taken.csv", "--records", 5], 2, "exists"),
    ],
    ids=lambda each: " ".join(map(str, each)) if isinstance(each, list) else "",
)
def test_bad_words_are_refused_and_nothing_is_written(command, noisy, words, code, said):
    (noisy / "taken.csv").write_text("mine\n")
    done = command("infer", "noisy", "-o", "first.nc", *words)
    assert done.returncode == code
    assert said in done.stderr
    assert sorted(each.name for each in noisy.iterdir()) == ["noisy", "taken.csv"]
    assert (noisy / "taken.csv").read_text() == "mine\n"


def test_a_wrong_certificate_is_refused(command, noisy):
    data = noisy / "noisy" / "data.csv"
    data.write_text(data.read_text().replace("1", "2", 1))
    done = command("infer", "noisy", *SHORT, "-o", "draws.nc")
    assert done.returncode == 1
    assert "does not verify" in done.stderr
    missing = command("infer", "nowhere")
    assert missing.returncode == 2
    assert not (noisy / "draws.nc").exists()


def test_categories_keep_their_names(command, tmp_path, monkeypatch):
    import privurn

    monkeypatch.chdir(tmp_path)
    towns = np.random.default_rng(2).choice(["north", "south"], p=[0.8, 0.2], size=200)
    privurn.privatise(
        towns, privurn.RandomisedResponse(), domain=privurn.Categories(["north", "south"], outside="other"), epsilon=3
    ).save("noisy")
    done = command("infer", "noisy", *SHORT, "--synthetic", "synthetic.csv", "--records", 30, "-o", "draws.nc")
    assert done.returncode == 0, done.stderr
    for name in ("share[north]", "share[south]", "share[other]"):
        assert name in done.stdout
    import xarray

    with xarray.open_datatree(tmp_path / "draws.nc", engine="h5netcdf") as tree:
        shares = tree["posterior"].dataset["share"].load()
    assert shares["category"].to_numpy().tolist() == ["north", "south", "other"]
    assert shares.sum("category").to_numpy() == pytest.approx(1.0)
    written = (tmp_path / "synthetic.csv").read_text().replace('"', "").split()
    assert len(written) == 31
    assert set(written[1:]) <= {"north", "south", "other"}
    assert command("infer", "noisy", *SHORT, "--plot", "usual.png").returncode == 0
    assert (tmp_path / "usual.png").stat().st_size > 1000
    refused = command("infer", "noisy", "--plot", "density=density.png")
    assert refused.returncode == 2
    assert "no density" in refused.stderr
    refused = command("infer", "noisy", "--deconvolution")
    assert "Laplace or the Gaussian" in refused.stderr


@pytest.mark.long
@pytest.mark.parametrize("sampler", ["neal2", "neal3", "neal8"])
def test_marginal_samplers_by_name(command, tmp_path, monkeypatch, sampler):
    import privurn

    monkeypatch.chdir(tmp_path)
    y = np.random.default_rng(3).normal(size=40)
    privurn.privatise(y, privurn.Gaussian(), domain=privurn.Bounds(-10, 10), epsilon=5, delta=1e-6).save("noisy")
    done = command("infer", "noisy", *SHORT[:-1], sampler, "--kernel", "total-gaussian", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sampler"] == sampler


@pytest.mark.long
def test_noisy_counts_of_all_records(command, tmp_path, monkeypatch):
    import privurn

    monkeypatch.chdir(tmp_path)
    y = np.random.default_rng(4).normal(size=300)
    bins = privurn.Bins(np.linspace(-5, 5, 21).tolist(), outside="clamp")
    privurn.release(y, privurn.NoisyCounts(publish="counts"), domain=bins, epsilon=4).save("counts")
    done = command("infer", "counts", "--model", "mixture", *SHORT, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["records"] == 300
    refused = command("infer", "counts", "--model", "mixture", "--clusters")
    assert refused.returncode == 2
    assert "who is with whom" in refused.stderr


def test_several_columns_of_categories(command, tmp_path, monkeypatch):
    import csv

    import pandas as pd

    import privurn

    monkeypatch.chdir(tmp_path)
    group = np.random.default_rng(1).integers(2, size=150)
    people = pd.DataFrame({"town": np.array(["u", "v"])[group], "sex": np.array(["f", "m"])[group]})
    lists = {"town": privurn.Categories(["u", "v"], outside="other"), "sex": privurn.Categories(["f", "m"], outside="other")}
    privurn.privatise(people, privurn.RandomisedResponse(), domain=lists, epsilon=8).save("noisy")
    files = [
        "--plot",
        "clusters=k.png",
        "--plot",
        "together=t.png",
        "-o",
        "draws.nc",
        "--synthetic",
        "synthetic.csv",
        "--records",
        200,
    ]
    done = command("infer", "noisy", *SHORT, "--clusters", *files)
    assert done.returncode == 0, done.stderr
    for word in ("share[town=u]", "share[sex=m]", "share[sex=other]", "behind the randomised-responses channel"):
        assert word in done.stdout
    for name in ("k.png", "t.png", "draws.nc"):
        assert (tmp_path / name).stat().st_size > 1000
    with (tmp_path / "synthetic.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 200
    assert set(rows[0]) == {"town", "sex"}
    assert sum((row["town"], row["sex"]) in (("u", "f"), ("v", "m")) for row in rows) > 120
    answer = json.loads(command("infer", "noisy", *SHORT, "--kernel", "categorical", "--json").stdout)
    assert [column["categories"] for column in answer["channel"]["columns"]] == [3, 3]
    assert command("infer", "noisy", *SHORT, "--kernel", "gaussian").returncode == 2
    wide = pd.DataFrame({name: list("ab") * 5 for name in "abcdefghi"})
    many = {name: privurn.Categories(["a", "b"], outside="other") for name in wide}
    privurn.privatise(wide, privurn.RandomisedResponse(), domain=many, epsilon=8).save("wide")
    refused = command("infer", "wide", *SHORT)
    assert refused.returncode == 2
    assert "joint categories" in refused.stderr
