"""Certificates survive a round trip, and any single change shows."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privurn
from privurn.errors import CertificateError
from privurn.privacy.certificate import Certificate

NAMES = {
    "dirichlet-multinomial": {"mechanism": privurn.Urn()},
    "dirichlet-process": {"mechanism": privurn.OpenUrn(), "delta": 0.01},
    "pitman-yor": {"mechanism": privurn.PitmanYorUrn(discount=0.5), "delta": 0.01},
    "three records": {"contributions": 3},
    "pure": {"delta": 0.0},
}


@pytest.fixture(scope="module", params=NAMES)
def saved(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "out"
    data = np.random.default_rng(0).integers(0, 10, 3000)
    arguments = {"mechanism": privurn.Urn(), "epsilon": 1.0, "delta": 1e-5, **NAMES[request.param]}
    privurn.release(data, domain=privurn.Grid(0, 9, 1), **arguments).save(folder)
    return folder


def leaves(data, path=()):
    """Every path to a plain value."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list):
        for i, value in enumerate(data):
            yield from leaves(value, (*path, i))
    else:
        yield path


def changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return f"{value}x"


def test_a_saved_release_verifies(saved):
    assert privurn.verify(saved) == privurn.Verification(True, ())
    assert privurn.verify(saved / "certificate.json").valid


def test_any_single_change_is_seen(saved, tmp_path):
    data = json.loads((saved / "certificate.json").read_text())
    (tmp_path / "data.csv").write_bytes((saved / "data.csv").read_bytes())
    for path in leaves(data):
        edited = json.loads(json.dumps(data))
        holder = edited
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = changed(holder[path[-1]])
        (tmp_path / "certificate.json").write_text(json.dumps(edited))
        assert not privurn.verify(tmp_path).valid, path
    for field in data:
        (tmp_path / "certificate.json").write_text(json.dumps({key: value for key, value in data.items() if key != field}))
        assert not privurn.verify(tmp_path).valid, field


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda d: d["target"].update(epsilon=0.5), "exceeds the target"),
        (lambda d: d["mechanism"]["parameters"].update(records=10**6), "do not fit"),
        (lambda d: d["achieved"].update(delta=1e-9), "achieved"),
        (lambda d: d["profile"][3].update(delta=1e-9), "profile"),
        (lambda d: d.update(neighbouring="add-remove"), "neighbouring"),
        (lambda d: d["mechanism"].update(name="magic"), "not known"),
        (lambda d: d["mechanism"]["parameters"].update(n="many"), "not valid"),
        (lambda d: d["domain"]["columns"]["value"].update(high="10"), "the domain does not fit"),
        (lambda d: d.update(output=None), "never saved"),
        (lambda d: d["output"].update(file="../data.csv"), "output.file"),
        (lambda d: d.update(private=False), "not private"),
        (lambda d: d.update(target=None), "malformed: target"),
    ],
)
def test_a_resealed_lie_about_the_guarantee_is_still_seen(tmp_path_factory, edit, reason):
    """Even with its hash made to fit, a certificate must agree with the figures that its parameters give."""
    folder = tmp_path_factory.mktemp("lie") / "out"
    data = np.random.default_rng(0).integers(0, 10, 3000)
    privurn.release(data, privurn.Urn(), domain=privurn.Grid(0, 9, 1), epsilon=1.0, delta=1e-5).save(folder)
    content = json.loads((folder / "certificate.json").read_text())
    edit(content)
    (folder / "certificate.json").write_text(Certificate.seal(content).to_json())
    verdict = privurn.verify(folder)
    assert not verdict.valid
    assert any(reason in each for each in verdict.reasons), verdict.reasons


def test_changed_data_are_seen(saved, tmp_path):
    for name in ("certificate.json", "data.csv"):
        (tmp_path / name).write_bytes((saved / name).read_bytes())
    with (tmp_path / "data.csv").open("a") as handle:
        handle.write("3\n")
    assert "was changed" in privurn.verify(tmp_path).reasons[0]
    (tmp_path / "data.csv").unlink()
    assert "missing" in privurn.verify(tmp_path).reasons[0]


def test_nothing_to_verify(tmp_path):
    assert not privurn.verify(tmp_path).valid
    (tmp_path / "certificate.json").write_text("{")
    assert not privurn.verify(tmp_path).valid
    with pytest.raises(CertificateError):
        Certificate.read(tmp_path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50)
@given(json_values)
def test_any_other_json_is_refused_with_a_reason(value):
    with pytest.raises(CertificateError):
        Certificate.from_json(json.dumps(value))


def test_registry_export(saved):
    import yaml

    fields = yaml.safe_load(Certificate.read(saved).to_registry_yaml())
    deployment = fields["deployment"]
    assert {"product", "dp_flavor", "privacy_loss", "model", "accounting", "implementation"} <= deployment.keys()
    assert deployment["privacy_loss"]["privacy_parameters"]["epsilon"] == 1.0
