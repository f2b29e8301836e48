"""Whole releases of random tables through the public call, each compared with a twin in exact integers and fractions.

Random are the names of files and columns, decoys beside them, the domain, the records, the mechanism and its parameters. What
is released must be what the twin gives, to the last record; what is refused must be refused before the ledger pays.
"""

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import privurn
from privurn.counts import CountTable
from privurn.errors import PrivurnError
from privurn.mechanisms.registry import rebuild
from privurn.privacy.entropy import Entropy
from release_twin import PlayedEntropy, UrnTwin, bin_cell, category_cell, grid_cell, write_table

F = Fraction
EXPLORING = settings.get_current_profile_name() == "exploring"
FUZZED = settings(max_examples=10_000 if EXPLORING else 100, suppress_health_check=list(HealthCheck), deadline=None)
LARGE = settings(max_examples=3_000 if EXPLORING else 75, suppress_health_check=list(HealthCheck), deadline=None)

OURS = ["joint_cell", "n", "label", "cell", "t", "c0", "categories_0", "readable_0", "present_0", "number", "rowid", "value"]
LETTERS = "aZé0_ .'\"`;[]{}*?%=-,:/\\#$"
FILE_NAMES = ["d[1]", "q*", "a?b", "{x,y}", "it's", "%41", "a b", "-o", "#", "[!a]", "x;y", "**", "d"]
LABELS = ["a", "b", "A", " a", "=1+1", "-2", "@x", "+3", "'", '"', "nan", "NaN", "inf", "1", "1.0", "é", "x,y", "'=1", "null"]

column_names = st.one_of(
    st.sampled_from(OURS),
    st.text(LETTERS, min_size=1, max_size=8).map(str.strip).filter(lambda name: name.strip(" ,;|\t") != ""),
)


def decoys(stem: str) -> list[str]:
    """Files that a pattern of this name would match, or that quoting would lead to."""
    matched = stem.replace("[1]", "1").replace("**", "s").replace("*", "secret").replace("?", "x").replace("[!a]", "b")
    return [each for each in {matched, stem.replace("%41", "A"), stem.partition(";")[0], "x"} if each and each != stem]


@dataclass(frozen=True)
class Case:
    """One release to try, and the cells of its records by the twin."""

    stem: str
    kind: str
    column: str
    others: tuple[str, ...]
    domain: Any
    records: tuple[Any, ...]
    cells: tuple[int, ...]
    values: tuple[Any, ...]
    asked: dict[str, Any] = field(default_factory=dict)
    seed: int = 0


@st.composite
def grids(draw: Any) -> tuple[Any, list, list, list]:
    low = draw(st.sampled_from(["0", "-3", "0.1", "1e6", "-1e-3", "1e17", "123456789.25"]))
    step = draw(st.sampled_from(["1", "0.5", "0.1", "1000", "1e-3", "1e16", "1e18", "1e299"]))
    size = draw(st.integers(2, 6))
    bottom, gap = F(low), F(step)
    domain = lambda: privurn.Grid(low, str(bottom + gap * (size - 1)), step)  # noqa: E731
    places = draw(
        st.lists(st.tuples(st.integers(-2, size + 1), st.sampled_from([0, F(1, 4), F(-1, 4)])), min_size=2, max_size=12)
    )
    numbers = [float(bottom + gap * (place + offset)) for place, offset in places]
    numbers += draw(st.lists(st.sampled_from([math.inf, -math.inf, 1e308, -1e308]), max_size=2))
    points = [bottom + gap * i for i in range(size)]
    whole = all(each.denominator == 1 and abs(each) < 2**63 for each in points)
    values = [int(each) if whole else float(each) for each in points]
    return domain, numbers, [grid_cell(each, low=bottom, step=gap, size=size) for each in numbers], values


@st.composite
def bins(draw: Any) -> tuple[Any, list, list, list]:
    edges = draw(
        st.sampled_from(
            [["0", "1"], ["0", "18", "65", "120"], ["-0.1", "0", "0.3"], ["0", "1e200", "1e300"], ["-5", "-4.5", "-4"]]
        )
    )
    exact = [F(each) for each in edges]
    numbers = draw(
        st.lists(
            st.sampled_from([-10.0, -4.5, -0.0, 0.0, 0.2, 1.0, 17.9, 18.0, 64.0, 120.0, 1e250, math.inf]),
            min_size=2,
            max_size=12,
        )
    )
    middles = [float((a + b) / 2) for a, b in pairwise(exact)]
    return lambda: privurn.Bins(edges), numbers, [bin_cell(each, edges=exact) for each in numbers], middles


@st.composite
def categories(draw: Any) -> tuple[Any, list, list, list]:
    values = draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=5, unique_by=str.strip))
    labels = draw(st.lists(st.sampled_from(LABELS), min_size=2, max_size=12))
    return (
        lambda: privurn.Categories(values, outside="other"),
        labels,
        [category_cell(each, values=values) for each in labels],
        [*values, "other"],
    )


alphas = st.one_of(
    st.integers(1, 50).map(str),
    st.fractions(F(1, 50), 40, max_denominator=60).map(str),
    st.integers(10**3, 10**30).map(lambda digits: f"{digits % 97 + 1}.{digits}"),
)


@st.composite
def questions(draw: Any, cells: int, *, numeric: bool) -> dict[str, Any]:
    """Mechanism and parameters; budgets so large that what is asked for is mostly granted."""
    records = draw(st.integers(1, 6))
    wide: dict[str, Any] = {"epsilon": 40.0, "delta": 0.5}
    pure = {**wide, "delta": 0.0}
    secret = draw(st.booleans())
    relation = {"neighbouring": "add-remove"} if secret else {}
    weight = st.one_of(st.sampled_from(["0.25", "1", "1/3"]), st.integers(1, 10**30).map(lambda digits: f"0.{digits:030d}"))
    name = draw(
        st.sampled_from(["auto", "urn", "urn", "urn", "smoothed", "noisy", "noisy counts", "open", "exponential", "model"])
    )
    if name == "auto":
        return {"mechanism": privurn.Urn(records=records), "epsilon": 1.0, "delta": 1e-3, **relation}
    if name == "urn":
        vector = draw(st.booleans())
        alpha = draw(st.lists(alphas, min_size=cells, max_size=cells)) if vector else draw(alphas)
        return {**wide, "mechanism": privurn.Urn(alpha=alpha, records=records), **relation}
    if name == "smoothed":
        return {**wide, "mechanism": privurn.Smoothed(smoothing=draw(weight), records=records)}
    if name == "noisy":
        noise = draw(st.sampled_from(["discrete-laplace", "laplace"]))
        return {**pure, "mechanism": privurn.NoisyCounts(noise=noise, smoothing=draw(weight), records=records), **relation}
    if name == "noisy counts":
        noise = draw(st.sampled_from(["discrete-laplace", "laplace", "discrete-gaussian"]))
        asked = {"epsilon": 2.0, "delta": 1e-3 if noise == "discrete-gaussian" else 0.0}
        return {**asked, "mechanism": privurn.NoisyCounts(noise=noise, publish="counts"), **relation}
    if name == "exponential" and cells > 1:
        loss = draw(st.sampled_from(["l1", "l2-squared"]))
        return {**pure, "epsilon": 2.0, "mechanism": privurn.Exponential(loss=loss, records=records)}
    if name == "model" and numeric:
        return {**pure, "epsilon": 2.0, "mechanism": privurn.Pseudo(model=draw(models()), records=records), **relation}
    discount = draw(st.sampled_from(["0", "1/2", "0.123456789012345678901234567"]))
    own: dict[str, Any] = {"strength": draw(alphas), "records": records}
    urn = privurn.OpenUrn(**own) if discount == "0" else privurn.PitmanYorUrn(discount=discount, **own)
    return {**wide, "delta": 0.999999, "mechanism": urn}


@st.composite
def models(draw: Any) -> Any:
    """Normal curves in boxes from sensible to absurd; as a mapping, since building one may refuse."""
    deviation = draw(st.sampled_from([(1.0, 10.0), (1e-300, 100.0), (1e-160, 1e-155), (1e150, 1e300)]))
    mean = draw(st.sampled_from([(-10.0, 10.0), (0.0, 1e200), (-1e308, 1e308)]))
    return {"kind": "normal", "mean": list(mean), "deviation": list(deviation), "points": [5, 4]}


@st.composite
def cases(draw: Any) -> Case:
    domain, records, cells, values = draw(st.one_of(grids(), bins(), categories()))
    numeric = not isinstance(values[-1], str)
    kind = draw(st.sampled_from(["csv", "parquet"]))
    column = draw(column_names)
    others = draw(st.lists(column_names, max_size=3, unique=True).map(lambda names: [each for each in names if each != column]))
    asked = draw(questions(len(values), numeric=numeric))
    stem = draw(st.sampled_from(FILE_NAMES))
    return Case(
        stem,
        kind,
        column,
        tuple(others),
        domain,
        tuple(records),
        tuple(cells),
        tuple(values),
        asked,
        draw(st.integers(0, 2**32)),
    )


def placed(case: Case, folder: Path) -> Path:
    """The file of a case, with decoys beside it that hold other records and more of them."""
    names = [case.column, *case.others]
    rows = len(case.records)
    text = case.kind == "csv"
    own = [repr(each) if text and isinstance(each, float) else each for each in case.records]
    order = sorted(names, key=lambda name: hash((name, case.seed)))
    columns = {name: own if name == case.column else [f"secret {i}" for i in range(rows)] for name in order}
    for stem in decoys(case.stem):
        write_table(
            folder / f"{stem}.{case.kind}", {name: 7 * list(values) for name, values in columns.items()}, kind=case.kind
        )
    path = folder / f"{case.stem}.{case.kind}"
    write_table(path, columns, kind=case.kind)
    return path


class Purse(privurn.Ledger):
    """A ledger that is never empty and only counts: one file pays for all."""

    def __init__(self, path: Path, relation: str) -> None:
        super().__init__(privurn.Ledger.create(path / relation, epsilon=1, neighbouring=relation).path)
        self.debits = 0

    def debit(self, spent: Any, **more: Any) -> int:
        assert spent.guarantee.neighbouring == self.meta["neighbouring"]
        self.debits += 1
        return self.debits

    def complete(self, number: int, *, output: str) -> None:
        """Nothing is written down."""

    def stamp(self, number: int) -> dict[str, Any]:
        return {"used": True, "ledger": self.meta["id"], "entry": number, "hash": f"{number:064x}"}


@pytest.fixture(scope="module")
def purses(tmp_path_factory):
    return {relation: Purse(tmp_path_factory.mktemp("purses"), relation) for relation in ("replace-one", "add-remove")}


def played_noise(noise: Any) -> Any:
    """In place of OpenDP's noise: what it is given is written down, what comes back is whole and can be repeated."""

    def add(exact: np.ndarray, **law: Any) -> np.ndarray:
        noise.append([int(each) for each in exact.ravel()])
        return exact + np.arange(exact.size).reshape(exact.shape) % 5 - 2

    return add


@given(case=cases())
@FUZZED
def test_release_is_what_the_twin_gives_or_is_refused_before_payment(case, purses):
    noise: list[list[int]] = []
    asked = dict(case.asked)
    entropy = PlayedEntropy(case.seed)
    with TemporaryDirectory() as name, patch("privurn.mechanisms.perturbed_histogram.noisy_integers", played_noise(noise)):
        folder = Path(name)
        path = placed(case, folder)
        ledger = purses[asked.get("neighbouring", "replace-one")]
        before = ledger.debits
        out, refusal = outcome(case, str(path), ledger=ledger, entropy=entropy, asked=asked)
        if refusal is not None:
            event(f"refused: {asked['mechanism'].alias}")
            assert ledger.debits == before, f"refused after payment: {refusal}"
            assert not any(each in refusal.message for each in case.records if isinstance(each, str) and len(each) > 2)
            assert may_be_refused(case, asked), f"refused without need: {refusal}"
            return
        event(f"released: {asked['mechanism'].alias}")
        assert ledger.debits == before + 1
        check_release(case, out, entropy, noise)
        saved = out.save(folder / "out", file_format="csv" if case.seed % 2 else "parquet")
        assert privurn.verify(folder / "out") == privurn.Verification(True, ())
        assert saved.certificate["output"]["rows"] == out.table.num_rows


def outcome(case: Case, data: Any, *, ledger: Any, entropy: Entropy, asked: dict[str, Any]) -> tuple[Any, PrivurnError | None]:
    """The release, or why it was refused."""
    try:
        if isinstance(getattr(asked["mechanism"], "model", None), dict):
            model = privurn.mechanisms.models.model_from_json(asked["mechanism"].model)
            asked["mechanism"] = replace(asked["mechanism"], model=model)
        domain = {case.column: case.domain()} if case.column else case.domain()
        made = privurn.release(data, domain=domain, ledger=ledger, entropy=entropy, **asked)
    except PrivurnError as error:
        return None, error
    return made, None


def may_be_refused(case: Case, asked: dict[str, Any]) -> bool:
    """Whether a person would expect a refusal: long numbers, absurd scales, names that cannot be told apart."""
    names = [case.column, *case.others]
    clash = len({name.casefold() for name in names}) < len(names)
    long = (
        max(
            (
                len(digits)
                for key in ("alpha", "smoothing", "strength", "discount")
                for digits in np.atleast_1d(asked["mechanism"].given.get(key, ""))
            ),
            default=0,
        )
        > 9
    )
    absurd = (
        isinstance(asked["mechanism"], privurn.Pseudo)
        or max((abs(each) for each in case.values if not isinstance(each, str)), default=0) > 1e15
    )
    words = isinstance(case.values[-1], str)
    return clash or long or absurd or words or isinstance(asked["mechanism"], (privurn.Exponential, privurn.Smoothed))


def check_release(case: Case, out: Any, entropy: PlayedEntropy, noise: list[list[int]]) -> None:
    """Counts, slots and published values are the twin's."""
    stated = out.certificate["mechanism"]
    counts = Counter(case.cells)
    secret = case.asked.get("neighbouring") == "add-remove"
    assert out.certificate["n"] == (None if secret else len(case.records))
    mechanism = rebuild(stated["name"], stated["parameters"])
    table = CountTable.from_cells(np.array(sorted(counts)), np.array([counts[cell] for cell in sorted(counts)]))
    again = PlayedEntropy(case.seed)
    drawn = mechanism.draw(table, entropy=again)
    assert (again.bounds, again.drawn) == (entropy.bounds, entropy.drawn), "the release counted other records than the twin"
    column = out.table.column(case.column).to_pylist()
    assert column == [published(case.values[cell]) for cell in drawn.cells.tolist()]
    if stated["name"] == "dirichlet-multinomial":
        check_urn(stated["parameters"], counts, entropy, drawn.cells.tolist())
    if stated["name"] == "perturbed-histogram":
        steps = stated["parameters"]["steps"]
        assert noise[0] == noise[1] == [counts.get(cell, 0) * steps for cell in range(len(case.values))]


def published(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def check_urn(parameters: dict[str, Any], counts: Counter, entropy: PlayedEntropy, cells: list[int]) -> None:
    """The integers drawn have the twin's bounds, and each leads to the cell that owns its slot."""
    twin, records = UrnTwin(counts, parameters["alpha"], cells=parameters["cells"]), parameters["records"]
    assert entropy.bounds[:records] == twin.bounds(records)
    assert twin.cells(entropy.drawn[:records]) == cells


class Choices(Entropy):
    """Plays one path through a tree of choices, and knows the next path."""

    private = True
    description = "all of them"

    def __init__(self) -> None:
        self.path: list[int] = []
        self.bounds: list[int] = []

    def words(self, size: int) -> np.ndarray:
        raise AssertionError("only whole choices are played")

    def below(self, bound: int) -> int:
        place = len(self.bounds)
        self.bounds.append(bound)
        if place == len(self.path):
            self.path.append(0)
        return self.path[place]

    def below_ramp(self, first: int, *, step: int, size: int) -> np.ndarray:
        return np.array([self.below(first + step * i) for i in range(size)], np.int64)

    def shuffle(self, values: np.ndarray) -> None:
        """One order for all."""

    def advance(self) -> bool:
        """The next path; False after the last."""
        while self.path and self.path[-1] + 1 == self.bounds[-1]:
            self.path.pop()
            self.bounds.pop()
        if not self.path:
            return False
        self.path[-1] += 1
        self.bounds = []
        return True


def law_of(mechanism: Any, counts: CountTable) -> dict[tuple[int, ...], Fraction]:
    """The mechanism's law by trying every choice it can make."""
    law: dict[tuple[int, ...], Fraction] = {}
    choices = Choices()
    while True:
        cells = tuple(mechanism.draw(counts, entropy=choices).cells.tolist())
        law[cells] = law.get(cells, F(0)) + F(1, math.prod(choices.bounds))
        if not choices.advance():
            return law


short_alphas = st.fractions(F(1, 4), 3, max_denominator=4)


@given(
    records=st.lists(st.integers(0, 2), min_size=2, max_size=5),
    alpha=st.one_of(short_alphas, st.lists(short_alphas, min_size=3, max_size=3)),
    secret=st.booleans(),
)
@settings(max_examples=60 if EXPLORING else 12, deadline=None)
def test_small_urns_have_their_law_through_the_public_call(records, alpha, secret):
    given = [str(each) for each in alpha] if isinstance(alpha, list) else str(alpha)
    out = privurn.release(
        np.array(records),
        privurn.Urn(alpha=given, records=2),
        domain=privurn.Grid(0, 2, 1),
        epsilon=40,
        delta=0.5,
        neighbouring="add-remove" if secret else "replace-one",
    )
    stated, counts = out.certificate["mechanism"], Counter(records)
    table = CountTable.from_cells(np.array(sorted(counts)), np.array([counts[cell] for cell in sorted(counts)]))
    twin = [F(each) for each in given] if isinstance(given, list) else [F(given)] * 3
    total = sum(twin) + len(records)
    expected = {
        (a, b): (twin[a] + counts[a]) / total * (twin[b] + counts[b] + (a == b)) / (total + 1)
        for a, b in product(range(3), repeat=2)
    }
    assert law_of(rebuild(stated["name"], stated["parameters"]), table) == expected


@given(records=st.lists(st.integers(0, 2), min_size=2, max_size=6), weight=st.fractions(F(1, 7), 1, max_denominator=7))
@settings(max_examples=60 if EXPLORING else 12, deadline=None)
def test_small_smoothed_histograms_have_their_law_through_the_public_call(records, weight):
    out = privurn.release(
        np.array(records),
        privurn.Smoothed(smoothing=str(weight), records=1),
        domain=privurn.Grid(0, 2, 1),
        epsilon=40,
        delta=0.9,
    )
    stated, counts = out.certificate["mechanism"], Counter(records)
    table = CountTable.from_cells(np.array(sorted(counts)), np.array([counts[cell] for cell in sorted(counts)]))
    expected = {(cell,): (1 - weight) * F(counts[cell], len(records)) + weight / 3 for cell in range(3)}
    assert law_of(rebuild(stated["name"], stated["parameters"]), table) == {key: p for key, p in expected.items() if p}


@given(
    held=st.lists(st.integers(1, 2**62), min_size=1, max_size=6).filter(lambda counts: sum(counts) < 2**63),
    alpha=st.one_of(alphas, st.lists(alphas, min_size=6, max_size=6)),
    secret=st.booleans(),
    seed=st.integers(0, 2**32),
)
@LARGE
def test_huge_counts_are_drawn_from_the_exact_urn_or_refused_before_payment(held, alpha, secret, seed, purses):
    counts = Counter(dict(enumerate(held)))
    entropy = PlayedEntropy(seed)
    relation = "add-remove" if secret else "replace-one"

    def counted(source, domain, *, secret_size=False, special=None):
        return CountTable.from_cells(np.arange(len(held)), np.array(held))

    case = Case("", "", "", (), lambda: privurn.Grid(0, 5, 1), (), (), ())
    asked = {"epsilon": 40, "delta": 0.5, "mechanism": privurn.Urn(alpha=alpha, records=4), "neighbouring": relation}
    ledger = purses[relation]
    before = ledger.debits
    with patch("privurn.releases.release.count_cells", counted):
        out, refusal = outcome(case, np.arange(6), ledger=ledger, entropy=entropy, asked=asked)
    if refusal is not None:  # n is public, and beyond what profiles are computed for
        assert (ledger.debits, secret) == (before, False), str(refusal)
        assert sum(held) > 10**13, str(refusal)
        return
    check_urn(out.certificate["mechanism"]["parameters"], counts, entropy, out.data.tolist())
