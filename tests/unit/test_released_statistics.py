"""Noisy statistics: what is written is read back, what was edited is refused, what cannot be certified is said."""

import csv
import json
import math
import shutil

import numpy as np
import pyarrow as pa
import pytest

import privurn
from privurn.certificates.verify import verify
from privurn.domain import Categories
from privurn.errors import BudgetExceeded, CertificateError, DomainError, FormatError, ModelError, NoRelease, PrivurnError
from privurn.inference.size import SizePrior
from privurn.inference.sums.reading import read_sums, released_sums
from privurn.inference.verified import verified
from privurn.mechanisms.registry import rebuild
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.dirichlet_statistic import DirichletStatistic
from privurn.mechanisms.sums.noise_law import NoiseLaw
from privurn.mechanisms.sums.regression_statistic import NormalStatistic, RegressionStatistic
from privurn.mechanisms.sums.statistic import NoisyStatistics
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic, PoissonStatistic
from privurn.privacy.certificate import Certificate, file_hash
from privurn.privacy.entropy import SeededEntropy, SystemEntropy
from privurn.privacy.ledger import Ledger
from privurn.releases.statistics import release_statistics

SECRET = 8675309.25
BUDGET = Budget(epsilon=1.1, epsilon_n=0.1, neighbouring="add-remove")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    n = 500
    columns = {
        "age": rng.uniform(18, 90, n),
        "pay": rng.gamma(4, 9000, n),
        "ill": rng.integers(0, 2, n),
        "visits": rng.poisson(3, n),
        "sex": rng.choice(["f", "m"], n),
    }
    days = rng.dirichlet([2, 3, 4], n)
    return pa.table({**columns, "sleep": days[:, 0], "work": days[:, 1], "rest": days[:, 2]})


def mechanisms(budget):
    whole = Budget(**{**vars(budget), "noise": "discrete-laplace"}) if budget.noise == "laplace" else budget
    return [
        RegressionStatistic.calibrated(
            response="pay", covariates=["age"], bounds={"pay": (0, "2e5"), "age": (0, 120)}, budget=budget, squares="complement"
        ),
        NormalStatistic.calibrated(response="age", bounds=(0, 120), budget=budget),
        DirichletStatistic.calibrated(parts=("sleep", "work", "rest"), floor=0.001, budget=budget),
        BernoulliStatistic.calibrated(column="ill", budget=whole),
        PoissonStatistic.calibrated(column="visits", upper=20, budget=whole),
    ]


BUDGETS = [
    BUDGET,
    Budget(epsilon=0.3, neighbouring="add-remove"),
    Budget(epsilon=0.7, neighbouring="replace-one", contributions=2),
    Budget(epsilon=1.5, epsilon_n=0.5, delta=1e-6, noise="discrete-gaussian", neighbouring="add-remove"),
    Budget(epsilon=1.0, delta=1e-6, noise="discrete-gaussian", neighbouring="replace-one"),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_written_read_and_verified(people, tmp_path, budget):
    for mechanism in mechanisms(budget):
        made = release_statistics(people, mechanism=mechanism, budget=budget)
        own = read_sums(verified(made))
        for file_format in ("csv", "parquet"):
            path = tmp_path / f"{mechanism.model}-{file_format}"
            saved = made.save(path, file_format=file_format)
            assert verify(path).reasons == ()
            found = read_sums(verified(path))
            assert np.array_equal(found.values, own.values)
            assert (found.n, found.noisy_n) == (own.n, own.noisy_n)
            assert found.mechanism.parameters() == mechanism.parameters()
            assert saved.certificate["neighbouring"] == budget.neighbouring
            assert (found.n == 500) == (budget.neighbouring == "replace-one")
            assert found.mechanism.profile.delta(budget.epsilon) <= budget.delta


def test_a_column_called_n_is_not_the_number_of_records(tmp_path):
    """Nor is one whose name is empty, or text that a spreadsheet would run."""
    for name in ("n", "", "=1+1", "a\nb"):
        table = pa.table({name: [1, 0, 1, 1]})
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        made = release_statistics(table, mechanism=BernoulliStatistic.calibrated(column=name, budget=BUDGET), budget=BUDGET)
        assert made.save(folder).table.column("sum_of").to_pylist() == [name, "n_" if name == "n" else "n"]
        assert verify(folder).reasons == ()
        assert released_sums(folder).noisy_n == released_sums(made).noisy_n


def test_values_are_near_the_truth(people):
    """At a large epsilon the released sums are the sums that the class describes, offsets and all."""
    budget = Budget(epsilon=550.0, epsilon_n=50.0, neighbouring="add-remove")
    for mechanism in mechanisms(budget):
        public = mechanism.draw(people, entropy=SystemEntropy())
        assert public.noisy_n == 500.0
        if isinstance(mechanism, RegressionStatistic):
            records = np.column_stack([people[name].to_numpy() for name in mechanism.columns])
            low, high = np.array(mechanism.lower), np.array(mechanism.upper)
            z = np.column_stack([np.ones(500), np.clip(2 * (records - low) / (high - low) - 1, -1, 1)])
            exact = (z.T @ z)[np.triu_indices(z.shape[1])][1:] - 500 * mechanism.offsets
        elif isinstance(mechanism, DirichletStatistic):
            exact = [np.log(np.maximum(people[name].to_numpy(), 0.001)).sum() for name in mechanism.columns]
        else:
            exact = [np.minimum(people[mechanism.columns[0]].to_numpy(), mechanism.upper).sum()]
        assert np.all(np.abs(public.values - exact) < 40 * mechanism.noise.scale + 1e-3), mechanism.name
        assert public.log_density(np.asarray(exact, float)) > public.log_density(np.asarray(exact, float) + 10)


@pytest.fixture
def written(people, tmp_path):
    path = tmp_path / "stats"
    release_statistics(people, mechanism=mechanisms(BUDGET)[0], budget=BUDGET).save(path)
    return path


ROWS = {
    "a value": lambda rows: rows[1].__setitem__(1, "0"),
    "the noisy n": lambda rows: rows[-1].__setitem__(1, "123"),
    "a large noisy n": lambda rows: rows[-1].__setitem__(1, "1e18"),
    "no noisy n": lambda rows: rows.pop(),
    "an entry's name": lambda rows: rows[1].__setitem__(0, "other"),
    "another order": lambda rows: rows.append(rows.pop(1)),
    "one value less": lambda rows: rows.pop(1),
    "one value more": lambda rows: rows.append(["more", "1"]),
    "a word for a value": lambda rows: rows[1].__setitem__(1, "many"),
    "no number": lambda rows: rows[1].__setitem__(1, ""),
    "infinity": lambda rows: rows[1].__setitem__(1, "inf"),
    "beside the lattice": lambda rows: rows[1].__setitem__(1, "0.1"),
    "more than records add up to": lambda rows: rows[1].__setitem__(1, "1e300"),
    "less than records add up to": lambda rows: rows[1].__setitem__(1, "-1e300"),
    "more records than tables hold": lambda rows: rows[-1].__setitem__(1, "1e20"),
    "n beside the lattice": lambda rows: rows[-1].__setitem__(1, "100.5"),
    "a further column": lambda rows: [row.append("1") for row in rows],
    "other columns": lambda rows: rows[0].__setitem__(1, "sum"),
}
HARMLESS = ("a value", "the noisy n", "a large noisy n")
"""Where hashes fit: other numbers that the mechanism could have published."""


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("what", ROWS)
def test_edited_numbers_are_refused(written, what, sealed):
    with (written / "measurements.csv").open(newline="") as handle:
        rows = list(csv.reader(handle))
    ROWS[what](rows)
    with (written / "measurements.csv").open("w", newline="") as handle:
        csv.writer(handle, lineterminator="\n").writerows(rows)
    if sealed:
        stated = {"file": "measurements.csv", "rows": len(rows) - 1, "sha256": file_hash(written / "measurements.csv")}
        certificate = Certificate.read(written).with_fields(output=stated)
        (written / "certificate.json").write_text(certificate.to_json())
    if sealed and what in HARMLESS:
        assert verify(written).valid
        return
    assert not verify(written).valid
    with pytest.raises(CertificateError):
        released_sums(written)


EDITS = {
    "the scale": lambda c: c["mechanism"]["parameters"]["noise"].__setitem__("scale", 90.0),
    "a bound": lambda c: c["mechanism"]["parameters"]["lower"].__setitem__(0, -1.0),
    "the target": lambda c: c["target"].__setitem__("epsilon", 0.5),
    "the relation": lambda c: c.__setitem__("neighbouring", "replace-one"),
    "the mechanism": lambda c: c["mechanism"].__setitem__("name", "noisy-other-statistics"),
    "the model": lambda c: c["mechanism"].__setitem__("name", "noisy-normal-statistics"),
    "no mechanism": lambda c: c.pop("mechanism"),
    "no output": lambda c: c.__setitem__("output", None),
    "a public n": lambda c: c.__setitem__("n", 500),
}


@pytest.mark.parametrize("what", EDITS)
def test_edited_certificates_are_refused(written, what):
    data = json.loads((written / "certificate.json").read_text())
    EDITS[what](data)
    (written / "certificate.json").write_text(json.dumps(data))
    with pytest.raises((CertificateError, FormatError)):
        released_sums(written)
    assert not verify(written).valid


RESEALED = {
    "the target": lambda c: c["target"].__setitem__("epsilon", 0.5),
    "the achieved": lambda c: c["achieved"].__setitem__("epsilon", 0.5),
    "the profile": lambda c: c["profile"][3].__setitem__("delta", 0.0),
    "the words": lambda c: c["assumptions"].append("All is well."),
    "the unit": lambda c: c["privacy_unit"].__setitem__("contributions", 2),
    "the relation": lambda c: c.__setitem__("neighbouring", "replace-one"),
    "the columns": lambda c: c["columns"].reverse(),
    "the bounds": lambda c: c["domain"]["lower"].__setitem__(0, -5.0),
    "the randomness": lambda c: c.__setitem__("randomness", "a coin"),
    "not private": lambda c: c.__setitem__("private", False),
    "n": lambda c: c.__setitem__("n", 500),
    "records": lambda c: c.__setitem__("records", 5),
    "records made from sums": lambda c: c.__setitem__("synthetic", {**c["output"], "file": "data.csv", "copies": 1, "seed": 1}),
    "the ledger": lambda c: c.__setitem__("ledger", {}),
}


@pytest.mark.parametrize("what", RESEALED)
def test_sealed_lies_do_not_verify(written, what):
    """A certificate sealed again after an edit is intact, and still wrong."""
    fields = json.loads((written / "certificate.json").read_text())
    shutil.copy(written / "measurements.csv", written / "data.csv")
    RESEALED[what](fields)
    (written / "certificate.json").write_text(Certificate.seal(fields).to_json())
    found = verify(written)
    assert not found.valid
    assert all("edited" not in reason for reason in found.reasons)


def test_what_holds_no_sums_is_refused(people, tmp_path):
    with pytest.raises(NoRelease):
        released_sums(tmp_path / "absent")
    made = privurn.release(people.select(["sex"]), domain={"sex": Categories(["f", "m"])}, epsilon=1, ledger=False)
    with pytest.raises(ModelError, match="no sums over records"):
        released_sums(made)


def test_nothing_is_overwritten(people, written):
    made = release_statistics(people, mechanism=mechanisms(BUDGET)[0], budget=BUDGET)
    before = (written / "measurements.csv").read_bytes()
    with pytest.raises(FormatError, match="exists"):
        made.save(written)
    assert (written / "measurements.csv").read_bytes() == before
    with pytest.raises(FormatError, match="no folder"):
        made.save(written.parent / "absent" / "stats")


def test_the_ledger_pays_first(people, tmp_path):
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=2.0, neighbouring="add-remove")
    made = release_statistics(people, mechanism=mechanisms(BUDGET)[0], budget=BUDGET, ledger=ledger).save(tmp_path / "s")
    assert ledger.remaining()["epsilon"] == pytest.approx(0.9)
    assert ledger.entries()[0].status == "released"
    assert ledger.entries()[0].output == made.certificate["output"]["sha256"]
    with pytest.raises(BudgetExceeded):
        release_statistics(people, mechanism=mechanisms(BUDGET)[0], budget=BUDGET, ledger=ledger)
    rho = Ledger.create(tmp_path / "rho.ledger", rho=1.0, neighbouring="add-remove")
    gaussian = BUDGETS[3]
    release_statistics(people, mechanism=mechanisms(gaussian)[0], budget=gaussian, ledger=rho)
    assert rho.remaining()["rho"] == pytest.approx(1.0 - mechanisms(gaussian)[0].rho)


def test_seeded_statistics_say_so(people, tmp_path):
    made = [
        release_statistics(people, mechanism=mechanisms(BUDGET)[0], budget=BUDGET, entropy=SeededEntropy(seed))
        for seed in (1, 1, 2)
    ]
    assert made[0].data == made[1].data
    assert made[0].data != made[2].data
    made[0].save(tmp_path / "s")
    assert verify(tmp_path / "s").reasons[0].startswith("the release was made with seeded")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epsilon_n": 0.0}, "epsilon_n must be positive"),
        ({"epsilon_n": math.inf}, "epsilon_n must be positive"),
        ({"epsilon_n": -1.0}, "epsilon_n must be positive"),
        ({"epsilon_n": 0.1, "neighbouring": "replace-one"}, "is public"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"delta": 1e-6}, "Gaussian noise needs a positive delta"),
        ({"noise": "discrete-gaussian"}, "Gaussian noise needs a positive delta"),
        ({"noise": "uniform"}, "not known"),
        ({"neighbouring": "sideways"}, "neighbouring relation"),
        ({"contributions": 0}, "contributions"),
    ],
)
def test_impossible_budgets(wrong, words):
    with pytest.raises(ModelError, match=words):
        Budget(**{"epsilon": 1.0, "neighbouring": "add-remove", **wrong})


def test_impossible_mechanisms():
    def regression(**given):
        return RegressionStatistic.calibrated(
            **{"response": "y", "covariates": ["x"], "bounds": (0, 1), "budget": BUDGET, **given}
        )

    for given, words in [
        ({"bounds": {"y": (0, 1)}}, "no public bounds for 'x'"),
        ({"bounds": {"y": (0, 1), "x": (1, 0)}}, "bounds of 'x' are reversed"),
        ({"bounds": {"y": (0, 1), "x": (0, 1), "z": (0, 1)}}, "'z', which is not used"),
        ({"bounds": ("low", "high")}, "must be a finite number"),
        ({"bounds": {"y": 3, "x": (0, 1)}}, "pairs of numbers"),
        ({"covariates": ["x", "x"]}, "twice"),
        ({"covariates": ["y"]}, "twice"),
        ({"squares": "odd"}, "plain"),
        ({"budget": Budget(epsilon=1, noise="discrete-laplace", neighbouring="add-remove")}, "whole numbers"),
    ]:
        with pytest.raises(PrivurnError, match=words):
            regression(**given)
    with pytest.raises(DomainError, match="floor"):
        DirichletStatistic.calibrated(parts=["a", "b"], floor=0.6, budget=BUDGET)
    with pytest.raises(ModelError, match="two parts"):
        DirichletStatistic.calibrated(parts=["a"], floor=0.1, budget=BUDGET)
    with pytest.raises(DomainError, match="holds 0 and 1"):
        BernoulliStatistic.calibrated(column="a", upper=3, budget=BUDGET)
    with pytest.raises(ModelError, match="power of two"):
        NoiseLaw(kind="laplace", scale=1.0, step=0.3)
    with pytest.raises(ModelError, match="too large"):
        NoiseLaw(kind="laplace", scale=1e30, step=1.0)
    with pytest.raises(ModelError, match="gets no noise"):
        NormalStatistic(
            neighbouring="replace-one",
            noise=NoiseLaw(kind="laplace", scale=1.0, step=4.0**-20),
            size_noise=NoiseLaw(kind="laplace", scale=1.0),
            response="y",
            lower=(0.0,),
            upper=(1.0,),
        )


def test_values_that_do_not_fit_their_mechanism():
    mechanism = NormalStatistic.calibrated(response="y", bounds=(0, 1), budget=BUDGET)
    for values, n, noisy_n in [([1.0], None, 3.0), ([1.0, np.nan], None, 3.0), ([1.0, 2.0], 3, 3.0), ([1.0, 2.0], None, None)]:
        with pytest.raises(ModelError):
            NoisyStatistics(mechanism=mechanism, values=np.array(values), n=n, noisy_n=noisy_n)
    assert NoisyStatistics(mechanism=mechanism, values=np.array([1.0, 2.0]), noisy_n=-7.0).noisy_n == -7.0  # legitimate


def test_content_is_never_complained_about():
    """NaN, infinities and empty tables give statistics, not messages, where n is secret and nothing was declared of them."""
    mechanism = NormalStatistic.calibrated(response="v", bounds=(0, 10), budget=BUDGET, missing="unreadable")
    odd = pa.table({"v": pa.array([1.0, math.nan, math.inf, -math.inf, SECRET])})
    assert mechanism.record_units(np.array([[math.nan], [math.inf], [-math.inf], [5.0]]))[:, 0].tolist() == [
        0,
        4**20,
        -(4**20),
        0,
    ]
    assert mechanism.draw(odd, entropy=SystemEntropy()).noisy_n is not None
    assert mechanism.draw(pa.table({"v": pa.array([], pa.float64())}), entropy=SystemEntropy()).noisy_n is not None


def test_broken_declarations_are_complained_about_without_content():
    mechanism = NormalStatistic.calibrated(response="v", bounds=(0, 10), budget=BUDGET)
    with pytest.raises(DomainError, match="missing values in 'v'") as caught:
        mechanism.draw(pa.table({"v": pa.array([SECRET, None])}), entropy=SystemEntropy())
    assert "8675309" not in str(caught.value)
    lenient = NormalStatistic.calibrated(response="v", bounds=(0, 10), budget=BUDGET, missing="unreadable")
    assert lenient.draw(pa.table({"v": pa.array([SECRET, None])}), entropy=SystemEntropy()).values.shape == (2,)
    with pytest.raises(DomainError, match="holds text"):
        mechanism.draw(pa.table({"v": ["a", "b"]}), entropy=SystemEntropy())
    with pytest.raises(DomainError, match="no column 'v'"):
        mechanism.draw(pa.table({"w": [1.0]}), entropy=SystemEntropy())
    public = RegressionStatistic.calibrated(
        response="v", covariates=["w", "x"], bounds=(0, 1), budget=Budget(epsilon=1, neighbouring="replace-one")
    )
    with pytest.raises(DomainError, match="fewer records than columns"):
        public.draw(pa.table({"v": [1.0], "w": [1.0], "x": [1.0]}), entropy=SystemEntropy())


def test_batches_add_up(tmp_path):
    """A table larger than one batch, as frame and as file, gives the sums of all its records."""
    rng = np.random.default_rng(3)
    values = rng.integers(0, 11, 300_000).astype(float)
    mechanism = NormalStatistic.calibrated(
        response="v", bounds=(0, 10), budget=Budget(epsilon=450.0, epsilon_n=50.0, neighbouring="add-remove")
    )
    exact = mechanism.record_units(values[:, None]).sum(axis=0) * mechanism.noise.step
    (tmp_path / "v.csv").write_text("v\n" + "\n".join(str(each) for each in values) + "\n")
    for data in (pa.table({"v": values}), str(tmp_path / "v.csv"), values):
        own = (
            mechanism
            if not isinstance(data, np.ndarray)
            else NormalStatistic.calibrated(
                response="value", bounds=(0, 10), budget=Budget(epsilon=450.0, epsilon_n=50.0, neighbouring="add-remove")
            )
        )
        public = own.draw(data, entropy=SystemEntropy())
        assert np.all(np.abs(public.values - exact) < 40 * own.noise.scale)
        assert public.noisy_n == 300_000


def test_unknown_mechanisms():
    with pytest.raises(CertificateError, match="not known"):
        rebuild("noisy-nonsense-statistics", {})


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "even"},
        {"lower": -1},
        {"lower": 5, "upper": 4},
        {"kind": "poisson"},
        {"mean": 3.0},
        {"kind": "poisson", "mean": 0.0},
    ],
)
def test_impossible_priors_of_n(wrong):
    with pytest.raises(ModelError):
        SizePrior(**wrong)


def test_prior_of_n_is_what_it_says():
    from scipy import stats

    n = np.arange(0, 40)
    poisson = SizePrior(kind="poisson", mean=7.0, lower=2, upper=30)
    inside = (n >= 2) & (n <= 30)
    assert np.allclose(poisson.log_mass(n)[inside], stats.poisson(7.0).logpmf(n[inside]))
    assert np.all(np.isneginf(poisson.log_mass(n)[~inside]))
    assert np.all(SizePrior().log_mass(n) == 0.0)
