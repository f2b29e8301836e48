"""Random edits of certificates that are sealed again: each is convicted, or is still a consistent statement. A twin decides."""

import copy
import csv
import io
import json
import random
import re

import numpy as np
import pandas as pd
import pytest

import certificate_twin as twin
import privurn
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic
from privurn.privacy.ledger import Ledger
from privurn.releases.privatise import privatise
from privurn.releases.statistics import release_statistics

EDITS = 30
"""Of each kind of release: some 400 in all."""

SLOW = {"posterior sample": 4}
"""A million urn draws take seconds to account for."""

RNG = np.random.default_rng(4)
PEOPLE = pd.DataFrame(
    {
        "town": RNG.choice(["a", "b"], 6),
        "age": RNG.integers(0, 3, 6),
        "pay": RNG.uniform(0, 10, 6),
        "yes": RNG.integers(0, 2, 6),
    }
)
LABELS = pd.DataFrame({"kind": ["a"] * 500 + ["b"] * 400})
TOWN = privurn.Categories(["a", "b"], outside="other")
AGE = privurn.Grid(0, 2, 1)
PAY = privurn.Bins([0, 2, 5, 10], outside="other")
SPREAD = privurn.Bins([0, 2, 5, 10], outside="other", within="uniform")


def released(folder, data=PEOPLE, **asked):
    privurn.release(data, **{"epsilon": 2.0, "delta": 0.01, **asked}).save(folder)


def noised(folder, **asked):
    privatise(PEOPLE, **{"epsilon": 2.0, **asked}).save(folder)


def paid(folder):
    ledger = Ledger.create(folder.parent / "people.ledger", epsilon=5, delta=0.1)
    released(folder, domain={"town": TOWN}, mechanism=privurn.Urn(records=4), ledger=ledger)


def summed(folder, mechanism, budget):
    release_statistics(PEOPLE, mechanism=mechanism, budget=budget).save(folder)


SECRET, PUBLIC = (
    Budget(epsilon=1.5, epsilon_n=0.5, neighbouring="add-remove"),
    Budget(epsilon=1.0, delta=0.01, noise="discrete-gaussian", neighbouring="replace-one"),
)
KINDS = {
    "urn": paid,
    "noisy counts": lambda f: released(
        f, domain={"age": AGE, "town": TOWN}, mechanism=privurn.NoisyCounts(publish="counts"), delta=0.0
    ),
    "noisy records": lambda f: released(f, domain={"age": AGE}, mechanism=privurn.NoisyCounts(), delta=0.0),
    "posterior sample": lambda f: released(f, domain={"age": AGE}, mechanism=privurn.PosteriorDraws()),
    "smoothed": lambda f: released(f, domain={"pay": SPREAD}, mechanism=privurn.Smoothed(records=4)),
    "midpoints": lambda f: released(f, domain={"pay": PAY}, mechanism=privurn.Exponential(records=4), delta=0.0),
    "model": lambda f: released(
        f,
        domain={"yes": privurn.Grid(0, 1, 1)},
        mechanism=privurn.Pseudo(model=privurn.mechanisms.models.Bernoulli(points=64)),
        delta=0.0,
    ),
    "open urn": lambda f: released(f, domain={"town": privurn.OpenLabels()}, mechanism=privurn.OpenUrn(records=9), delta=0.9),
    "discovered": lambda f: released(
        f, LABELS, domain={"kind": privurn.OpenLabels()}, epsilon=4.0, delta=1e-3, mechanism=privurn.Discover(records=20)
    ),
    "laplace": lambda f: noised(f, domain={"pay": privurn.Bounds(0, 10)}),
    "whole numbers": lambda f: noised(f, channel=privurn.DiscreteLaplace(), domain={"age": privurn.Bounds(0, 2)}),
    "responses": lambda f: noised(
        f, channel=privurn.RandomisedResponse(), domain={"town": privurn.Categories(["a", "b", "c"], outside="other")}
    ),
    "sum": lambda f: summed(f, BernoulliStatistic.calibrated(column="yes", budget=SECRET), SECRET),
    "public sum": lambda f: summed(f, BernoulliStatistic.calibrated(column="yes", budget=PUBLIC), PUBLIC),
}


class Made:
    """A release as content that can be edited: its certificate, and the CSV text."""

    def __init__(self, folder):
        self.file = folder / "certificate.json"
        self.certificate = json.loads(self.file.read_text())
        self.data = folder / self.certificate["output"]["file"]
        self.published = self.data.read_bytes()

    def verdict(self, certificate, published):
        self.data.write_bytes(published)
        self.file.write_text(json.dumps(certificate))
        return privurn.verify(self.file)


@pytest.fixture(scope="module", params=KINDS)
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "out"
    KINDS[request.param](folder)
    return Made(folder)


def places(data, path=()):
    """Paths to everything inside, containers too."""
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from places(value, (*path, key))


def holder(data, path):
    for key in path[:-1]:
        data = data[key]
    return data


def other_value(value, rng):
    """Another value: of the same type, of another one, or the same number written another way."""
    if isinstance(value, bool):
        return rng.choice([not value, int(value), str(value).lower(), None])
    if isinstance(value, (int, float)):
        near = [value + 1, value - 1, -value, value * 2, value * (1 + 1e-12), value * 1.001, 0, 10**18, 1e300]
        typed = [float(value), int(value), str(value), value > 0, [value], None, {"value": value}]
        return rng.choice([*near, *typed])
    if isinstance(value, str):
        near = [
            value + "x",
            value[:-1],
            value.upper(),
            value[::-1],
            "",
            "0",
            "1",
            "1/2",
            "7",
            "other",
            "null",
            "kept",
            "uniform",
        ]
        digits = re.sub(r"\d", lambda found: str((int(found[0]) + 1) % 10), value)
        return rng.choice(
            [*near, digits, None, 1, True, [value], "2030-02-28T12:00:00+00:00", "a" * 64, "w1", "l2", "unreadable"]
        )
    if isinstance(value, list):
        return rng.choice([value[::-1], value[:-1], [*value, *value[:1]], [*value, "ssn"], [], {}, None, "list"])
    if isinstance(value, dict):
        return rng.choice([{}, [], None, {**value, "claim": "audited"}, dict(reversed(list(value.items())))])
    return rng.choice([0, 1, 1e-9, "", False, [], {}, "null"])


def edit(data, rng):
    """One edit, at any depth: change or retype, delete, add, or swap two entries."""
    data = copy.deepcopy(data)
    path = rng.choice(list(places(data)))
    inside, key = holder(data, path), path[-1]
    what = rng.random()
    if what < 0.65:
        inside[key] = other_value(inside[key], rng)
    elif what < 0.75:
        del inside[key]
    elif what < 0.85:
        name = rng.choice(["claim", "rho", "hash", "within", "labels", "other", "kind", "n", "seed"])
        inside.insert(key, "claim") if isinstance(inside, list) else inside.__setitem__(
            name, rng.choice([1e-9, "uniform", [], True])
        )
    else:
        second = rng.choice(list(places(data)))
        inside_second = holder(data, second)
        one, two = copy.deepcopy(inside[key]), copy.deepcopy(inside_second[second[-1]])
        if path != second[: len(path)] and second != path[: len(second)]:
            inside[key], inside_second[second[-1]] = two, one
    return data


def edited_rows(raw, rng):
    """A data file with a field changed, a column or row more or less, or something that is no table."""
    table = list(csv.reader(io.StringIO(raw.decode())))
    what = rng.randrange(7)
    row = rng.randrange(len(table))
    if what == 0:
        table[row].append("123-45-6789")
    elif what == 1:
        table = [[*each, "x"] for each in table]
    elif what == 2:
        del table[row]
    elif what == 3:
        table.insert(row, table[-1])
    elif what == 4:
        return raw[: rng.randrange(len(raw))] + bytes([rng.randrange(256)]) + raw[rng.randrange(len(raw)) :]
    else:
        fields = [
            "a",
            "b",
            "c",
            "other",
            "0",
            "1",
            "2",
            "1.0",
            "3",
            "7.5",
            "-1",
            "nan",
            "0.25",
            "new_1",
            "new_7",
            "=1+1",
            "",
            "inf",
        ]
        table[row][rng.randrange(len(table[row]))] = rng.choice(fields)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(table)
    return out.getvalue().encode()


def edited(made, rng):
    """Another certificate and output, with hashes that fit; now and then also a hash that does not."""
    certificate, published = made.certificate, made.published
    if rng.random() < 0.25:
        published = edited_rows(published, rng)
        sha256 = twin.hashlib.sha256(published).hexdigest()
        certificate = {**certificate, "output": {**certificate["output"], "sha256": sha256}}
        if rng.random() < 0.5:
            rows = max(0, len(list(csv.reader(io.StringIO(published.decode(errors="replace"))))) - 1)
            certificate["output"]["rows"] = rows
    else:
        for _ in range(rng.choice([1, 1, 1, 2])):
            certificate = edit(certificate, rng)
    return (twin.sealed(certificate) if rng.random() < 0.95 else certificate), published


def test_as_made_it_holds(made):
    assert made.verdict(made.certificate, made.published).reasons == ()
    assert twin.holds(made.certificate, made.published, made.certificate)


def judged(made, rng, edits):
    """Verifies edits and asks the twin about each; returns how many still hold."""
    kept = 0
    for i in range(edits):
        certificate, published = edited(made, rng)
        verdict = made.verdict(certificate, published)
        expected = twin.holds(certificate, published, made.certificate)
        changes = [
            key
            for key in {*certificate, *made.certificate} - {"sha256"}
            if twin.canonical(certificate.get(key)) != twin.canonical(made.certificate.get(key))
        ]
        said = {key: (made.certificate.get(key), certificate.get(key)) for key in changes}
        assert verdict.valid == expected, (i, verdict.reasons, said, published != made.published)
        kept += expected
    return kept


def test_resealed_edits_are_convicted_or_still_hold(made, request):
    kind = request.node.callspec.id
    edits = SLOW.get(kind, EDITS)
    assert judged(made, random.Random(kind), edits) < edits


@pytest.mark.long
def test_many_more_edits(made, request):
    kind = request.node.callspec.id
    edits = 10 * SLOW.get(kind, EDITS)
    assert 0 < judged(made, random.Random(f"{kind}, more"), edits) < edits // 2
