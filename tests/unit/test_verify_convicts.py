"""Certificates sealed again around a contradiction do not verify, and any file whatever gets an answer."""

import hashlib
import json
import os
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privurn
from privurn.errors import CertificateError, NotCertifiable, PrivurnError
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.noise_law import NoiseLaw
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic
from privurn.privacy.certificate import Certificate
from privurn.releases.privatise import privatise
from privurn.releases.statistics import release_statistics

PEOPLE = pd.DataFrame({"town": ["a", "b", "a", "c"] * 30, "age": np.arange(120) % 7, "pay": np.linspace(0, 9, 120)})
TOWN = privurn.Categories(["a", "b", "c"], outside="other")


@pytest.fixture
def folder(tmp_path):
    privurn.release(PEOPLE, privurn.Urn(records=50), domain={"town": TOWN}, epsilon=1.0, delta=1e-5).save(tmp_path / "out")
    return tmp_path / "out"


def resealed(folder, edit=lambda fields: None, data=None, file="data.csv"):
    """Why a release does not verify whose certificate, and data where given, were replaced and sealed again."""
    fields = json.loads((folder / "certificate.json").read_text())
    if data is not None:
        (folder / "data.csv").unlink(missing_ok=True)
        (folder / file).write_bytes(data)
        fields["output"].update(file=file, sha256=hashlib.sha256(data).hexdigest())
    edit(fields)
    (folder / "certificate.json").write_text(Certificate.seal(fields).to_json())
    verdict = privurn.verify(folder)
    assert verdict.valid == (not verdict.reasons)
    return " ".join(verdict.reasons)


ROWS = b"".join(b"abc"[i % 3 : i % 3 + 1] + b"\n" for i in range(50))


def test_nothing_changed_verifies(folder):
    assert resealed(folder) == ""
    assert resealed(folder, data=b"town\n" + ROWS) == ""  # as true a release as any


@pytest.mark.parametrize(
    ("data", "columns", "reason"),
    [
        (b"ssn,name\n" + b"123,a\n" * 50, None, "columns that are stated"),
        (b"ssn,name\n" + b"123,a\n" * 50, ["ssn", "name"], "columns do not fit the domain"),
        (b"town,ssn\n" + b"a,123\n" * 50, ["town", "ssn"], "columns do not fit the domain"),
        (b"town\n" + b"a\n" * 50, ["town", "ssn"], "columns do not fit the domain"),
        (b"town\n" + b"a\n" * 49 + b"123-45-6789\n", None, "outside the domain"),
        (b"town\n" + b"a\n" * 49 + b"\n", None, "outside the domain"),
        (b'town\n""\n' + b"a\n" * 49, None, "outside the domain"),
        (b"town\n" + b"a\n" * 49, None, "rows"),
        (b"town\n" + b"a\n" * 51, None, "rows"),
        (b"town\ntown\n" + b"a\n" * 49, None, "outside the domain"),
        (b"town,town\n" + b"a,a\n" * 50, None, "columns"),
        (b"town\n" + b"a\n" * 49 + b"\xff\xfe\n", None, "cannot be read"),
        (b"town\n" + b"a\n" * 49 + b"\x00\n", None, "outside the domain"),
        (b"town\n" + b"a\n" * 49 + b"x" * 200_000 + b"\n", None, "outside the domain"),
        (b"town\n" + b"x" * 9_000_000, None, "cannot be"),
        (b"", None, "cannot be read"),
        (b"\n", None, "columns"),
        (b"town\n", None, "rows"),
    ],
    ids=range(18),
)
def test_data_that_the_mechanism_cannot_have_released(folder, data, columns, reason):
    assert reason in resealed(folder, lambda d: columns and d.update(columns=columns), data)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 100, b"town\n" + ROWS, os.urandom(4000)], ids=range(5))
def test_junk_parquet_gets_an_answer(folder, content):
    assert "cannot be read" in resealed(folder, data=content, file="data.parquet")


def test_parquet_is_read_with_its_types(folder, tmp_path):
    for column, holds in ((["a", "b"] * 25, True), ([1, 2] * 25, False), ([None, "a"] * 25, False), ([["a"]] * 50, False)):
        pq.write_table(pa.table({"town": column}), tmp_path / "made.parquet")
        assert (resealed(folder, data=(tmp_path / "made.parquet").read_bytes(), file="data.parquet") == "") == holds


def secret_dictionary():
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 25), pa.array(["a", "b", "SECRET"]))
    return pa.table({"town": coded})


HIDING = {
    "a note on the column": lambda: pa.table(
        [["a"] * 50], schema=pa.schema([pa.field("town", pa.string(), metadata={"ssn": "123-45-6789"})])
    ),
    "text that no record has": secret_dictionary,
    "bytes": lambda: pa.table({"town": pa.array([b"a"] * 50)}),
    "long text": lambda: pa.table({"town": pa.array(["a"] * 50, pa.large_string())}),
}


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("what", HIDING)
def test_parquet_has_no_room_for_more_than_the_records(folder, tmp_path, what, typed):
    made = tmp_path / "made.parquet"
    pq.write_table(HIDING[what](), made, store_schema=typed)
    if what in ("long text", "a note on the column") and not typed:
        return  # the file then says just text, and is as good as any
    assert resealed(folder, data=made.read_bytes(), file="data.parquet") != ""


def test_parquet_has_no_room_beside_its_columns(folder, tmp_path):
    made = tmp_path / "made.parquet"
    pq.write_table(pa.table({"town": ["a", "b"] * 25}), made)
    data = made.read_bytes()
    footer = 8 + int.from_bytes(data[-8:-4], "little")
    assert resealed(folder, data=data, file="data.parquet") == ""
    assert resealed(folder, data=data[:-footer] + b"SECRET" + data[-footer:], file="data.parquet") != ""


def test_text_is_no_number(tmp_path):
    out = tmp_path / "out"
    grid = privurn.Grid(0, 10, 1, outside="other")
    privurn.release(PEOPLE, privurn.Urn(records=3), domain={"age": grid}, epsilon=1.0, delta=1e-5).save(out)
    assert resealed(out, data=b"age\nnan\n0\n10.0\n") == ""
    for text in (b"nan(John_Smith)", b"0x1", b"infinity", b" 1", b"1_000", b"+1", b"1e9999", b"NAN", b"1."):
        assert resealed(out, data=b"age\n" + text + b"\n0\n1\n") != "", text


def nested(depth):
    out = []
    for _ in range(depth):
        out = [out]
    return out


CLAIMS = {
    "rho of a central release": (lambda d: d.update(rho=1e-9), "rho"),
    "no rho": (lambda d: d.pop("rho"), "rho"),
    "a payment without entry": (lambda d: d.update(ledger={"used": True}), "ledger"),
    "a payment without ledger": (lambda d: d.update(ledger={"used": True, "entry": 1}), "ledger"),
    "an entry of nothing": (lambda d: d["ledger"].update(entry=1), "ledger"),
    "used: 0": (lambda d: d.update(ledger={"used": 0}), "ledger"),
    "epsilon as text": (lambda d: d["target"].update(epsilon="1"), "target.epsilon"),
    "epsilon true": (lambda d: d["target"].update(epsilon=True), "target.epsilon"),
    "delta false": (lambda d: d["target"].update(delta=False), "target.delta"),
    "an unknown claim": (lambda d: d.update(audited=True), "audited"),
    "a claim inside": (lambda d: d["privacy_unit"].update(people=1), "privacy_unit.people"),
    "a claim among versions": (lambda d: d["software"].update(approved="1"), "software.approved"),
    "a claim among the parameters": (lambda d: d["mechanism"]["parameters"].update(audited=True), "parameters"),
    "a claim in the domain": (lambda d: d["domain"].update(audited=True), "domain"),
    "a claim in a column": (lambda d: d["domain"]["columns"]["town"].update(audited=True), "domain"),
    "records as text": (lambda d: d["mechanism"]["parameters"].update(records="50"), "parameters"),
    "records true": (lambda d: d["mechanism"]["parameters"].update(records=True), "parameters"),
    "n as a decimal": (lambda d: d.update(n=120.0), "n:"),
    "a made-up moment": (lambda d: d.update(created="yesterday"), "created"),
    "another time zone": (lambda d: d.update(created="2026-01-31T23:59:59+01:00"), "created"),
    "a version that is none": (lambda d: d["software"].update(numpy="certified by all"), "software.numpy"),
    "another file": (lambda d: d["output"].update(file="../secret.csv"), "file"),
    "a cell twice": (
        lambda d: d["domain"]["columns"]["town"].update(values=["a", "b", "c", "other"]),
        "category",
    ),
    "cells beyond all": (lambda d: d["mechanism"]["parameters"].update(cells=10**18), "domain"),
    "records beyond all": (lambda d: d.update(records=10**18), "records"),
    "a long alpha": (lambda d: d["mechanism"]["parameters"].update(alpha="1" * 10**6), "parameters"),
    "a fraction of long numbers": (lambda d: d["mechanism"]["parameters"].update(alpha="1e999999999"), "parameters"),
    "a long list of alphas": (lambda d: d["mechanism"]["parameters"].update(alpha=["1"] * 10**6), "parameters"),
    "depth": (lambda d: d["mechanism"]["parameters"].update(alpha=nested(400)), ""),
    "version 1": (lambda d: d.update(schema="privurn-certificate/1"), "earlier version"),
    "version 3": (lambda d: d.update(schema="privurn-certificate/3"), "later version"),
    "no schema": (lambda d: d.update(schema=2), "schema"),
}


@pytest.mark.parametrize("what", CLAIMS)
def test_a_sealed_claim_that_is_not_so(folder, what):
    edit, reason = CLAIMS[what]
    started = time.process_time()
    reasons = resealed(folder, edit)
    assert reasons
    assert reason in reasons
    assert time.process_time() - started < 20.0


PARAMETERS = {
    "draws": ("posterior-sample", {"n": 100, "cells": 3, "alpha": "30", "records": 10**6, "draws": 10**9}),
    "new values": ("pitman-yor", {"n": 5, "records": 10**9, "strength": "1", "discount": "1/2",
                                  "base": {"kind": "fresh-labels", "prefix": "new_"}, "old_values_only": False}),
    "gaps": ("exponential", {"n": 10, "cells": 3, "records": 5, "epsilon": 1.0, "loss": "w1", "gaps": ["1e999999999", "1"],
                             "base": "uniform over histograms"}),
    "noise": ("label-discovery", {"n": 10, "records": 5, "discovery": {"scale": -1.0, "threshold": 3, "distances": [2, 2, 1]},
                                  "urn": {"n": 10, "cells": 1, "alpha": "1", "records": 5},
                                  "urn_guarantee": {"epsilon": 1.0, "delta": 0.1}}),
    "a grid": ("pseudo-posterior", {"n": 10, "cells": 2, "domain": {"kind": "grid", "low": "0", "high": "1e300", "step": "1"},
                                    "model": {"kind": "bernoulli"}, "threshold": 1.0, "steps": 2**20, "records": 5, "draws": 1,
                                    "reference": None, "downscale": 1.0}),
    "points": ("pseudo-posterior", {"n": 10, "cells": 2,
                                    "domain": {"kind": "grid", "low": "0", "high": "1", "step": "1", "outside": "clamp",
                                               "nulls": "error"},
                                    "model": {"kind": "bernoulli", "probability": [False, 1.0], "points": 10},
                                    "threshold": 1.0, "steps": 2**20, "records": 5, "draws": 1, "reference": None,
                                    "downscale": 1.0}),
    "a sum": ("noisy-bernoulli-statistics", {"neighbouring": "add-remove", "size_noise": None,
                                             "noise": {"kind": "laplace", "scale": 1.0, "step": 1.0},
                                             "contributions": 1, "column": "a", "upper": 1,
                                             "missing": "made up"}),
}  # fmt: skip


@pytest.mark.parametrize("what", PARAMETERS)
def test_impossible_parameters_are_refused_at_once(folder, what):
    name, parameters = PARAMETERS[what]
    started = time.process_time()
    reasons = resealed(folder, lambda d: d.update(mechanism={"name": name, "parameters": parameters}))
    assert "parameters" in reasons or "recomputed" in reasons
    from privurn.mechanisms.registry import rebuild

    if what != "noise":  # whose scale is seen when its guarantee is computed
        with pytest.raises(CertificateError):
            rebuild(name, parameters)
    assert time.process_time() - started < 5.0


def test_files_that_are_no_files(folder, tmp_path):
    content = (folder / "data.csv").read_bytes()
    (folder / "data.csv").rename(tmp_path / "elsewhere.csv")
    assert "missing" in " ".join(privurn.verify(folder).reasons)
    (folder / "data.csv").symlink_to(tmp_path / "elsewhere.csv")
    assert "no regular file" in " ".join(privurn.verify(folder).reasons)
    (folder / "data.csv").unlink()
    (folder / "data.csv").mkdir()
    assert "no regular file" in " ".join(privurn.verify(folder).reasons)
    (folder / "data.csv").rmdir()
    os.mkfifo(folder / "data.csv")
    assert "no regular file" in " ".join(privurn.verify(folder).reasons)
    (folder / "data.csv").unlink()
    (folder / "data.csv").write_bytes(content)
    assert privurn.verify(folder).valid
    (folder / "certificate.json").unlink()
    os.mkfifo(folder / "certificate.json")
    assert "no readable certificate" in " ".join(privurn.verify(folder).reasons)


JUNK = {
    "deep": b"[" * 10**6,
    "deep objects": b'{"a":' * 10**5,
    "a long number": b'{"n": ' + b"9" * 10**5 + b"}",
    "twenty-one digits": b'{"n": ' + b"9" * 21 + b"}",
    "infinity": b'{"n": 1e999}',
    "a constant": b'{"n": NaN}',
    "half a letter": b'{"n": "\\ud800"}',
    "no UTF-8": b'{"n": "\xff"}',
    "zeros": b"\x00" * 100,
    "twice": b'{"schema": 1, "schema": 2}',
    "statistics of nothing": b'{"schema": "privurn-statistics/2"}',
    "earlier statistics": b'{"schema": "privurn-statistics/1"}',
    "nothing": b"",
    "null": b"null",
}


@pytest.mark.parametrize("what", JUNK)
def test_junk_certificates_get_an_answer(tmp_path, what):
    (tmp_path / "certificate.json").write_bytes(JUNK[what])
    for path in (tmp_path, tmp_path / "certificate.json"):
        verdict = privurn.verify(path)
        assert not verdict.valid
        assert verdict.reasons
        with pytest.raises(CertificateError):
            Certificate.read(path)


@settings(max_examples=60)
@given(st.binary(max_size=300), st.sampled_from(["data.csv", "data.parquet", "certificate.json"]))
def test_any_bytes_get_an_answer(tmp_path_factory, content, name):
    folder = tmp_path_factory.getbasetemp() / "any-bytes"
    if not folder.exists():
        privurn.release(PEOPLE, privurn.Urn(records=50), domain={"town": TOWN}, epsilon=1.0, delta=1e-5).save(folder)
    before = (folder / "certificate.json").read_bytes()
    try:
        if name == "certificate.json":
            (folder / name).write_bytes(content)
            assert not privurn.verify(folder).valid
        else:
            assert resealed(folder, data=content, file=name)
    finally:
        (folder / "certificate.json").write_bytes(before)


def test_the_command_answers_too(folder, privurn_command):
    resealed(folder, data=b"town\n\xff\n")
    done = privurn_command("verify", folder)
    assert done.returncode == 1
    assert "NOT valid" in done.stdout
    assert "Traceback" not in done.stderr


def test_what_cannot_be_certified_is_not_paid_for(tmp_path):
    ledger = privurn.Ledger.create(tmp_path / "people.ledger", epsilon=5, neighbouring="add-remove")

    class Own(BernoulliStatistic):
        model = "own"

    noise = NoiseLaw(kind="laplace", scale=1, step=1)
    own = Own(neighbouring="add-remove", noise=noise, column="age")
    with pytest.raises(NotCertifiable):
        release_statistics(PEOPLE, mechanism=own, budget=Budget(epsilon=1.0, neighbouring="add-remove"), ledger=ledger)
    assert ledger.entries() == []
    known = BernoulliStatistic(neighbouring="add-remove", noise=noise, column="age")
    release_statistics(PEOPLE, mechanism=known, budget=Budget(epsilon=1.0, neighbouring="add-remove"), ledger=ledger).save(
        tmp_path / "stats"
    )
    assert privurn.verify(tmp_path / "stats").reasons == ()


def test_local_noise_lies_on_its_lattice(tmp_path):
    made = {
        "laplace": {"channel": privurn.Laplace(), "domain": {"pay": privurn.Bounds(0.1, 9.3)}},
        "gaussian": {"channel": privurn.Gaussian(), "domain": {"pay": privurn.Bounds(-1e6, 1e6)}, "delta": 1e-5},
        "wavelet": {"channel": privurn.HaarWavelet(levels=2), "domain": {"pay": privurn.Bounds(0, 9)}},
        "whole": {"channel": privurn.DiscreteGaussian(), "domain": {"age": privurn.Bounds(0, 6)}, "delta": 1e-5},
    }
    for name, asked in made.items():
        out = tmp_path / name
        privatise(PEOPLE, epsilon=0.01, **asked).save(tmp_path / f"{name}.columns", file_format="parquet")
        privatise(PEOPLE, epsilon=0.01, **asked).save(out)
        assert privurn.verify(out).reasons == privurn.verify(tmp_path / f"{name}.columns").reasons == ()
        raw = (out / "data.csv").read_text().splitlines()
        fields = raw[1].split(",")
        for wrong in ("0.123456789", "", "nan", "inf", "text"):
            data = "\n".join([raw[0], ",".join([wrong, *fields[1:]]), *raw[2:]]) + "\n"
            assert "cannot have released" in resealed(out, data=data.encode())


def test_a_million_rows_are_checked_in_seconds(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(0, 100, 10**6), "town": rng.choice(["a", "b", "c"], 10**6)})
    domain = {"age": privurn.Grid(0, 99, 1), "town": TOWN}
    privurn.release(table, privurn.Urn(records=10**6), domain=domain, epsilon=1.0, delta=1e-6).save(tmp_path / "out")
    started = time.process_time()
    assert privurn.verify(tmp_path / "out").reasons == ()
    assert time.process_time() - started < 15.0


def test_readers_of_certificates_refuse_what_verify_refuses(folder):
    resealed(folder, lambda d: d.update(audited=True))
    for read in (privurn.infer, privurn.report, Certificate.read):
        with pytest.raises(PrivurnError, match="audited"):
            read(folder)
