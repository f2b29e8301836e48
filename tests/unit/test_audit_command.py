"""`privurn audit` on the command line: what it prints, and its exit codes."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from privurn.cli.audit import audit
from privurn.cli.mechanism_options import AuditCommand
from privurn.errors import FormatError, ModelError
from privurn.mechanisms.registry import recipes

URN = ["dirichlet-multinomial", "--n", "6", "--cells", "3", "--alpha", "1", "--records", "1"]  # its epsilon is log 2 = 0.69


@pytest.fixture
def run():
    app = typer.Typer()
    app.command(cls=AuditCommand)(audit)

    def call(*words):
        result = CliRunner().invoke(app, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


def test_exit_codes_say_whether_the_claim_was_refuted(run):
    honest = run(*URN, "--samples", "2e4", "--seed", 1, "--json")
    assert honest.exit_code == 0
    answer = json.loads(honest.stdout)
    assert (answer["audited"], answer["convicted"]) == ("dirichlet-multinomial", False)
    assert 0.3 < answer["epsilon_lower"] < answer["epsilon"] == pytest.approx(np.log(2.0))
    refuted = run(*URN, "--samples", 20_000, "--seed", 1, "--epsilon", 0.3)
    assert refuted.exit_code == 1
    assert "CONVICTED" in refuted.stdout


def test_open_urns_and_claims_of_nothing(run):
    at_floor = run("pitman-yor", "--n", 6, "--strength", 1, "--discount", 0.5, "--records", 2, "--samples", 400, "--seed", 2)
    assert at_floor.exit_code == 0
    assert "No finite epsilon was claimed" in at_floor.stdout
    sampled = run("posterior-sample", "--n", 5, "--cells", 3, "--alpha", 2, "--records", 9, "--samples", 400, "--seed", 1)
    assert sampled.exit_code == 0, sampled.output
    answer = run("dirichlet-process", "--n", 6, "--records", 1, "--delta", 0.2, "--samples", 400, "--json")
    assert json.loads(answer.stdout)["epsilon"] == 0.0


def test_a_function_by_name(run, tmp_path, monkeypatch):
    (tmp_path / "audited_by_name.py").write_text("def tell(records):\n    return int(records.sum())\n\nconstant = 3\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    told = run("--callable", "audited_by_name:tell", "--n", 4, "--cells", 2, "--epsilon", 1, "--samples", 400, "--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout)["convicted"] is True
    for wrong in ("audited_by_name:nothing", "audited_by_name:constant", "audited_by_name", "no_such_module:f"):
        with pytest.raises(FormatError):
            run("--callable", wrong, "--n", 4, "--cells", 2, "--epsilon", 1)


def test_a_release_by_its_folder(run, tmp_path):
    import privurn

    folder = tmp_path / "out"
    data = np.random.default_rng(1).choice(["a", "b"], 20)
    privurn.release(
        data, privurn.Urn(records=5), domain=privurn.Categories(["a", "b"], outside="other"), epsilon=2.0, delta=1e-3
    ).save(folder)
    done = run("--certificate", folder, "--samples", 400, "--seed", 3, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["epsilon"] == 2.0
    with pytest.raises(FormatError):  # exit code 2: 1 is for a conviction
        run("--certificate", tmp_path / "nowhere")
    with pytest.raises(FormatError):
        run("--certificate", folder, "--epsilon", 1)


@pytest.mark.parametrize(
    "words",
    [
        [],
        [*URN, "--callable", "a:b"],
        ["dirichlet-multinomial", "--n", 5, "--records", 2, "--cells", 1],
        ["dirichlet-multinomial", "--n", 5, "--records", 2, "--cells", 3, "--smoothing", 1],
        [*URN, "--neighbouring", "add-remove"],
        ["--certificate", "out", "--alpha", 1],
        ["pitman-yor", "--n", 5, "--records", 2],
        ["exponential", "--n", 5, "--cells", 2, "--loss", "magic"],
        ["dirichlet-multinomial", "--n", 5, "--records", 2, "--alpha", 1],
        ["dirichlet-process", "--records", 2],
        ["dirichlet-process", "--n", 5, "--records", 2, "--discount", 0.5],
        ["gaussian", "--n", 5, "--records", 2],
        ["--callable", "os:getcwd", "--n", 5, "--cells", 2, "--takes", "frames"],
    ],
)
def test_what_cannot_be_audited_is_said(run, words):
    with pytest.raises((FormatError, ModelError)):
        run(*words)


MORE = {
    "pitman-yor": ["--discount", "1/2", "--records", 1],
    "dirichlet-process": ["--records", 1],
    "posterior-sample": ["--records", 9],
    "pseudo-posterior": ["--model", "beta"],
}
OPEN = {"pitman-yor", "dirichlet-process"}


@pytest.mark.parametrize("name", recipes())
def test_every_mechanism_can_be_audited_by_its_name(run, name):
    cells = [] if name in OPEN else ["--cells", 3]
    words = [name, "--n", 6, *cells, "--delta", 0.1, "--samples", 100, "--seed", 1, "--json", *MORE.get(name, [])]
    done = run(*words)
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["audited"] == name
    assert answer["epsilon"] is None or name in OPEN or answer["epsilon"] <= 1.0  # calibrated for that


def test_a_secret_number_of_records(run):
    done = run("perturbed-histogram", "--cells", 2, "--records", 5, "--neighbouring", "add-remove", "--samples", 100, "--json")
    assert done.exit_code == 0, done.output
