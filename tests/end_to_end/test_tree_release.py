"""The default release of numbers, as a person makes it: measurements, records made from them, one certificate."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import privurn
from privurn.cli.main import app
from privurn.errors import ModelError
from privurn.mechanisms.noisy_tree import PerturbedTree
from privurn.mechanisms.registry import rebuild
from privurn.privacy.certificate import Certificate, file_hash
from privurn.releases.synthetic import synthetic_table

RNG = np.random.default_rng(3)
AGES = RNG.integers(18, 90, 3000).astype(float)
GRID = privurn.Grid(0, 99, 1)


def made(data=AGES, mechanism=None, *, domain=GRID, epsilon=1.0, **options):
    return privurn.release(data, mechanism, domain=domain, epsilon=epsilon, **options)


def resealed(folder, *, measurements=None, data=None):
    """Files edited, with a certificate that names their hashes."""
    certificate = Certificate.read(folder)
    fields = {}
    for key, content in (("output", measurements), ("synthetic", data)):
        if content is not None:
            file = folder / certificate[key]["file"]
            file.write_text(content)
            fields[key] = {**certificate[key], "sha256": file_hash(file)}
    (folder / "certificate.json").write_text(certificate.with_fields(**fields).to_json())
    return privurn.verify(folder)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("neighbouring", ["replace-one", "add-remove"])
def test_the_default_is_a_noisy_tree_with_records_near_the_data(tmp_path, delta, neighbouring):
    asked = None if neighbouring == "replace-one" else privurn.NoisyTree(records=3000)
    release = made(mechanism=asked, delta=delta, neighbouring=neighbouring).save(tmp_path / "out")
    assert release.certificate["mechanism"]["name"] == "noisy-tree"
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["certificate.json", "data.csv", "measurements.csv"]
    assert privurn.verify(tmp_path / "out").reasons == ()
    records = np.asarray(release.data, float)
    assert len(records) == 3000
    far = np.abs(np.sort(records) - np.sort(AGES)).mean()
    assert far < 1.0  # ages from 18 to 90; a plain sample of as many lies 0.5 away


@pytest.mark.filterwarnings("ignore::privurn.errors.InferenceWarning")
def test_the_exact_chain_of_the_command_line_says_how_long_it_was(tmp_path):
    made(AGES[:40], domain=privurn.Grid(0, 96, 32)).save(tmp_path / "out")
    asked = ["infer", str(tmp_path / "out"), "--exact", "--ask", "mean", "--draws", "60"]
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    assert "chains of 60 draws (as asked)" in " ".join(shown.output.split())


def test_records_follow_from_measurements_certificate_and_seed_alone(tmp_path):
    release = made().save(tmp_path / "out")
    stated = release.certificate["mechanism"]
    mechanism = rebuild(stated["name"], stated["parameters"])
    counts = pd.read_csv(tmp_path / "out" / "measurements.csv")["count"].to_numpy()
    seed = release.certificate["synthetic"]["seed"]
    again = synthetic_table(
        mechanism.measurements(mechanism.read(counts)),
        domain=privurn.JointDomain({"value": GRID}),
        records=3000,
        copies=1,
        seed=seed,
    )
    published = pd.read_csv(tmp_path / "out" / "data.csv")
    assert again.table.to_pandas().equals(published.astype(again.table.to_pandas().dtypes))
    inferred = privurn.infer(tmp_path / "out").synthetic(records=3000, seed=seed).to_pandas()
    assert inferred.equals(published.astype(inferred.dtypes))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_come_back_as_they_came(frame):
    release = made(frame({"age": AGES}), domain={"age": GRID}, delta=1e-6)
    assert isinstance(release.data, frame)
    assert isinstance(release.measurements, frame)
    assert list(release.measurements.columns) == ["age", "depth", "node", "count"]


def test_an_urn_has_no_measurements():
    assert made(mechanism=privurn.Urn(), delta=1e-6).measurements is None


def test_special_cells_and_spread_bins(tmp_path):
    data = np.concatenate([AGES, np.full(500, 1000.0)])
    bins = privurn.Bins([0, 18, 30, 65, 100], outside="other", within="uniform")
    release = made(data, domain=bins, epsilon=4.0).save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").reasons == ()
    records = np.asarray(release.data, float)
    assert abs(int(np.isnan(records).sum()) - 500) < 20
    assert len(np.unique(records)) > 1000


def test_two_columns_through_a_quad_tree(tmp_path):
    table = pd.DataFrame({"x": RNG.integers(0, 16, 2000), "y": RNG.integers(0, 4, 2000)})
    domain = {"x": privurn.Grid(0, 15, 1), "y": privurn.Grid(0, 7, 1)}
    release = privurn.release(table, domain=domain, epsilon=2.0).save(tmp_path / "out")
    assert release.certificate["mechanism"]["parameters"]["shape"] == [16, 8]
    assert privurn.verify(tmp_path / "out").reasons == ()
    assert abs(release.data["y"].mean() - table["y"].mean()) < 0.2
    found = privurn.infer(tmp_path / "out", ask=["mean(x)", "P(y<4)"], run=privurn.Run(draws=200, seed=1))
    assert found.summary()[1].mean > 0.95


def test_copies_are_tables_of_the_confidential_size_and_combine(tmp_path):
    release = made(mechanism=privurn.NoisyTree(copies=20), delta=1e-6).save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").reasons == ()
    table = release.synthetic.table.to_pandas()
    assert table.groupby("copy").size().tolist() == [3000] * 20
    each = [group["value"] for _, group in table.groupby("copy")]
    found = privurn.combine([x.mean() for x in each], [x.var() / len(x) for x in each])
    assert abs(found.estimate - AGES.mean()) < 4 * found.standard_error
    own = privurn.infer(tmp_path / "out", ask="mean", run=privurn.Run(seed=1)).summary()[0]
    assert found.standard_error == pytest.approx(own.deviation, rel=0.4)


def test_copies_of_a_secret_n_have_its_posterior(tmp_path):
    asked = privurn.NoisyTree(copies=10, guess=1000)
    release = made(mechanism=asked, neighbouring="add-remove").save(tmp_path / "out")
    sizes = release.synthetic.table.to_pandas().groupby("copy").size()
    assert len(sizes) == 10
    assert abs(sizes.mean() - 3000) < 200
    assert privurn.verify(tmp_path / "out").reasons == ()


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_inference_makes_the_very_copies_of_a_release(relation):
    asked = privurn.NoisyTree(copies=3, guess=None if relation == "replace-one" else 1000)
    release = made(mechanism=asked, neighbouring=relation)
    again = privurn.infer(release, ask="mean").synthetic(copies=3, seed=release.synthetic.seed)
    assert again.equals(release.synthetic.table)


def test_copies_of_what_has_no_likelihood_are_refused():
    release = made(AGES[:60], privurn.Exponential(records=5), domain=privurn.Bins([0, 50, 100]))
    with pytest.raises(privurn.errors.PrivurnError, match="no likelihood"):
        privurn.infer(release, ask="mean").synthetic(copies=3)


def test_edits_are_convicted(tmp_path):
    made().save(tmp_path / "out")
    out = tmp_path / "out"
    measured, data = (out / "measurements.csv").read_text(), (out / "data.csv").read_text()
    for file in ("measurements.csv", "data.csv"):
        text = (out / file).read_text()
        (out / file).write_text(text + "1\n")
        assert "its hash does not fit" in privurn.verify(out).reasons[0]
        (out / file).unlink()
        assert "is missing" in privurn.verify(out).reasons[0]
        (out / file).write_text(text)
    assert resealed(out, measurements=measured, data=data).valid
    lines = measured.splitlines()
    swapped = [lines[0], lines[2], lines[1], *lines[3:]]
    broken = lines[1].rpartition(",")[0] + ",1.5"
    for content in ("\n".join(swapped), "\n".join([lines[0], broken, *lines[2:]]), "\n".join(lines[:-1])):
        assert not resealed(out, measurements=content + "\n").valid
    assert Certificate.read(out)["mechanism"]["parameters"]["tied"] == [7]  # 100 cells: each number of a leaf is one of a sum
    raised = lines[-1].rpartition(",")
    content = "\n".join([*lines[:-1], f"{raised[0]},{int(raised[2]) + 1}"]) + "\n"
    assert "is not the table of the tree" in resealed(out, measurements=content).reasons[0]
    assert resealed(out, measurements=measured).valid
    wrong = data.splitlines()
    assert not resealed(out, data="\n".join([wrong[0], "1234", *wrong[2:]]) + "\n").valid
    assert resealed(out, data=data).valid


def test_an_urn_cannot_claim_records_from_measurements(tmp_path):
    tree, urn = tmp_path / "tree", tmp_path / "urn"
    made().save(tree)
    made(mechanism=privurn.Urn(), delta=1e-6).save(urn)
    stated = Certificate.read(tree)["synthetic"]
    (urn / "certificate.json").write_text(Certificate.read(urn).with_fields(synthetic=stated).to_json())
    assert any("made from measurements" in each for each in privurn.verify(urn).reasons)


def test_copies_are_complete(tmp_path):
    out = tmp_path / "out"
    made(AGES[:200], privurn.NoisyTree(copies=2)).save(out)
    lines = (out / "data.csv").read_text().splitlines()
    assert resealed(out, data="\n".join(lines) + "\n").valid
    first = [lines[0], *("1," + line.split(",")[1] for line in lines[1:])]
    for wrong in (first, lines[:1], [lines[0], lines[-1]], lines[:-1]):
        certificate = Certificate.read(out)
        rows = {**certificate["synthetic"], "rows": len(wrong) - 1}
        (out / "certificate.json").write_text(certificate.with_fields(synthetic=rows).to_json())
        assert not resealed(out, data="\n".join(wrong) + "\n").valid


def test_a_column_called_copy(tmp_path):
    frame = pd.DataFrame({"copy": AGES[:300]})
    release = made(frame, privurn.NoisyTree(copies=2), domain={"copy": GRID}).save(tmp_path / "out")
    assert list(release.data.columns) == ["copy_", "copy"]
    assert privurn.verify(tmp_path / "out").valid


@pytest.mark.parametrize(
    ("data", "mechanism", "epsilon"),
    [
        (AGES, privurn.NoisyTree(guess=50), 1e-14),
        (AGES, privurn.NoisyTree(guess=50, copies=2), 1e-14),
        (AGES[:0], privurn.NoisyTree(guess=50, records=7), 90.0),
    ],
)
def test_what_was_paid_for_is_never_lost(tmp_path, data, mechanism, epsilon):
    """Where no records can be made, the measurements are still released, with a remark.

    At epsilon 1e-14 there seem to be some 1e14 records; that two draws are below 2e8 together has a probability of about 1e-12.
    """
    frame = pd.DataFrame({"age": data})
    ledger = privurn.Ledger.create(tmp_path / "l", epsilon=100, delta=1e-6, neighbouring="add-remove")
    options = {"domain": {"age": GRID}, "epsilon": epsilon, "neighbouring": "add-remove", "ledger": ledger}
    release = privurn.release(frame, mechanism, **options).save(tmp_path / "out")
    assert release.synthetic is None
    assert any("No records were made" in each for each in release.remarks)
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["certificate.json", "measurements.csv"]
    assert privurn.verify(tmp_path / "out").valid
    assert len(release.measurements) == release.certificate["output"]["rows"]


@pytest.mark.parametrize(("n", "copies"), [(0, 1), (0, 20), (1, 1), (1, 20)])
def test_what_tells_of_next_to_no_record_is_valid_with_and_without_records(tmp_path, n, copies):
    """With n secret and little noise the posterior may be of none, or of some copies without any."""
    asked = privurn.NoisyTree(guess=50, copies=copies)
    for run in range(4):
        release = made(AGES[:n], asked, epsilon=8.0, neighbouring="add-remove", ledger=False).save(tmp_path / str(run))
        found = privurn.verify(tmp_path / str(run))
        assert found.reasons == ()
        assert release.synthetic is None or len(release.synthetic.table) > 0
        privurn.infer(tmp_path / str(run), ask="mean")


@pytest.mark.parametrize(
    ("domain", "makes"),
    [
        ({"age": GRID}, "privurn.releases.synthetic.synthetic_table"),
        ({"age": GRID, "sex": privurn.Categories(["f", "m"])}, "privurn.releases.tables.synthetic_table"),
    ],
    ids=["a column", "a table"],
)
def test_ctrl_c_while_records_are_made_leaves_the_measurements(tmp_path, monkeypatch, domain, makes):
    """They are paid for, and records can be made from them later."""

    def interrupted(*given, **options):
        raise KeyboardInterrupt

    frame = pd.DataFrame({"age": AGES, "sex": ["f", "m"] * (len(AGES) // 2)})[list(domain)]
    with monkeypatch.context() as patch:
        patch.setattr(makes, interrupted)
        release = privurn.release(frame, domain=domain, epsilon=1, delta=1e-6).save(tmp_path / "out")
    assert any("(interrupted)" in each for each in release.remarks)
    assert privurn.verify(tmp_path / "out").valid
    assert not list((tmp_path / "out").glob("data.*"))
    made = privurn.infer(tmp_path / "out").synthetic(records=100, seed=1)
    assert len(made) == 100


def test_one_value_and_missing_ones_are_cells_in_no_order():
    frame = pd.DataFrame({"x": pd.array([1.0, None, 2.0] * 20, dtype="Float64")})
    release = made(frame, domain={"x": privurn.Bins([0, 10], nulls="cell")}, delta=1e-6)
    assert release.certificate["mechanism"]["name"] == "perturbed-histogram"


@pytest.mark.parametrize(
    ("mechanism", "domain", "message"),
    [
        (privurn.NoisyTree(records=0), GRID, "at least 1"),
        (privurn.NoisyTree(copies=0), GRID, "positive whole number"),
        (privurn.NoisyTree(independent="no"), GRID, "True or False"),
        (privurn.NoisyTree(copies=2, records=5), GRID, "as many records"),
        (privurn.NoisyTree(), privurn.Categories(["a"], outside="other"), "columns of numbers"),
        (privurn.NoisyTree(), privurn.Grid(0, 6_000_000, 1), "at most 5,000,000"),
        (privurn.NoisyTree(noise="uniform"), GRID, "not known"),
    ],
)
def test_what_cannot_be_had_is_refused_with_a_way_out(mechanism, domain, message):
    data = np.array(["a"] * 10) if isinstance(domain, privurn.Categories) else AGES
    with pytest.raises(privurn.errors.PrivurnError, match=message) as caught:
        made(data, mechanism, domain=domain)
    assert caught.value.hint or caught.value.offered


def test_a_tree_is_not_deeper_than_its_cells():
    with pytest.raises(ModelError, match="below its leaves"):
        PerturbedTree(n=5, shape=(4,), depths=(3,), scales=(1.0,), noise="discrete-laplace")


def test_the_command_line_makes_measurements_and_records(tmp_path, privurn_command):
    pd.DataFrame({"age": AGES}).to_csv(tmp_path / "people.csv", index=False)
    words = ("people.csv", "--column", "age", "--grid", "0:99:1", "--epsilon", "1", "-o", "out")
    done = privurn_command("release", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3,000 synthetic records" in done.stdout
    assert "measurements.csv" in done.stdout
    assert privurn_command("verify", "out", cwd=tmp_path).returncode == 0
    said = json.loads(privurn_command("infer", "out", "--ask", "mean", "--seed", "1", "--json", cwd=tmp_path).stdout)
    assert said["how"]["prior"] == "Polya tree"
    assert "approximate" in said["how"]["how"]
    assert privurn_command("report", "out", "-o", "page.html", cwd=tmp_path).returncode == 0
    page = (tmp_path / "page.html").read_text()
    assert "What may be concluded" in page
    assert "for use at face value" in page
    assert "posterior band" in page
    secret = (*words[:-1], "secret", "--neighbouring", "add-remove", "--records", "3000")
    assert privurn_command("release", *secret, cwd=tmp_path).returncode == 0
    refused = privurn_command("infer", "out", "--prior", "1", cwd=tmp_path)
    assert refused.returncode == 2
    assert "noisy trees" in refused.stderr
