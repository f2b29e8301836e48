"""Every name of the registry with every model: a posterior, or one sentence why not, as docs/reference/inference.md says."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from docs.inference_matrix import IN_BINS, MODELS, NO, OF_CELLS, YES, matrix, page
from test_mechanism_contract import NUMBERS, MechanismContract, contracts

import privurn
from privurn.errors import PrivurnError
from privurn.inference.infer import FITTING
from privurn.inference.mixtures.reading import default_model, read_privatised
from privurn.mechanisms.local import LaplaceChannel
from privurn.mechanisms.registry import CHANNELS, MECHANISMS, REGISTRY, recipes

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning"),  # plain numbers say where they overflow
    pytest.mark.usefixtures("interpreted", "little_work"),
]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "inference.md"
ROWS = {row.name: row for row in matrix()}
CONTRACTS = {each.name: each for each in contracts(MechanismContract) if each.__name__.startswith("Test")}
QUICK = privurn.Run(draws=8, warm_up=4, chains=2, thin=1, seed=1)
BINS = privurn.Bins([0, 1, 2, 3, 4])
FORMULAS = {"LogisticRegression": "v ~ u", "LinearRegression": "w ~ u", "PoissonRegression": "w ~ u"}
ELSEWHERE = {
    ("pitman-yor", YES): "of open labels",
    ("pitman-yor", OF_CELLS): "where the discount is 0: that is dirichlet-process",
}
"""What the releases of this file are refused for, and what they would have to be."""


def made(model, release):
    """A model by its name; a mixture that states its channel has that of the release, where it has one."""
    if model != "MixtureModel":
        return getattr(privurn, model)(*([FORMULAS[model]] if model in FORMULAS else []))
    local = release.certificate["mechanism"]["name"] in CHANNELS
    return default_model(read_privatised(release).channel if local else LaplaceChannel.calibrate(bounds=(0, 4), epsilon=1))


@pytest.fixture
def little_work(monkeypatch):
    """What the prior says is drawn in plain Python here, so little of it, and few steps of a move."""
    monkeypatch.setattr("privurn.inference.mixtures.posterior.REGROUP", 1)
    for module in ("prior", "results"):
        monkeypatch.setattr(f"privurn.inference.mixtures.{module}.PRIOR_ATOMS", 200)
    monkeypatch.setattr("privurn.inference.mixtures.results.PRIOR_MEASURES", 10)


def test_the_page_is_made_from_the_registry():
    assert PAGE.read_text() == page()
    assert set(ROWS) == set(REGISTRY)


@pytest.fixture(scope="module")
def releases():
    """One of each name, made when it is first asked for."""
    found = {}

    def find(name):
        if name not in found:
            found[name] = of_a_table() if name == "noisy-marginals" else CONTRACTS[name]().release(ledger=False)
        return found[name]

    return find


def of_a_table():
    """Of a column of each kind that regressions have as their response."""
    rng = np.random.default_rng(1)
    table = {"u": rng.choice(["a", "b"], 60), "v": rng.integers(0, 2, 60), "w": rng.integers(0, 5, 60)}
    domain = {"u": privurn.Categories(["a", "b"]), "v": privurn.Categories([0, 1]), "w": privurn.Grid(0, 4, 1)}
    return privurn.release(pa.table(table), privurn.Marginals(), domain=domain, epsilon=3, ledger=False)


def one_sentence(error):
    return error.message.endswith(".") and error.message.rstrip(".").count(". ") == 0 and len(error.message) > 20


@pytest.mark.parametrize("model", [None, *MODELS])
@pytest.mark.parametrize("name", ROWS)
def test_a_posterior_or_one_sentence(releases, name, model):
    answers = ROWS[name].answers
    answer = answers[model] if model else (YES if YES in answers.values() else NO)
    given = {"model": made(model, releases(name))} if model else {}
    if answer in (YES, OF_CELLS) and (name, answer) not in ELSEWHERE:
        assert isinstance(privurn.infer(releases(name), **given, run=QUICK), privurn.Posterior)
        return
    with pytest.raises(PrivurnError) as caught:  # in equal bins only: these releases are of categories
        privurn.infer(releases(name), **given, run=QUICK)
    assert one_sentence(caught.value), caught.value.message


def test_the_page_has_every_public_model_that_infer_takes():
    priors = (privurn.RegressionPrior, privurn.LogisticPrior, tuple)  # they stand for a SumModel
    taken = tuple({each for kinds in FITTING.values() for each in kinds} - set(priors))
    public = {name for name in privurn.__all__ if isinstance(getattr(privurn, name), type)}
    assert {name for name in public if issubclass(getattr(privurn, name), taken)} == set(MODELS)


def test_noisy_counts_are_a_tree_of_which_the_cells_were_measured():
    recipe, domain = privurn.NoisyCounts(publish="counts"), privurn.Grid(0, 4, 1)
    counts = privurn.release(NUMBERS, recipe, domain=domain, epsilon=3, ledger=False)
    assert isinstance(privurn.infer(counts, privurn.PolyaTree(), run=QUICK), privurn.Posterior)


def test_a_channel_of_single_records_is_not_that_of_counts():
    counts = privurn.release(NUMBERS, privurn.NoisyCounts(publish="counts"), domain=BINS, epsilon=3, ledger=False)
    with pytest.raises(PrivurnError, match="MixtureModel is no model of one output of all records"):
        privurn.infer(counts, made("MixtureModel", counts), run=QUICK)


def test_open_labels_have_the_urns_own_prior():
    labels = np.repeat(["a", "b", "c"], 20)
    recipe = privurn.PitmanYorUrn(discount=0.5)
    made = privurn.release(labels, recipe, domain=privurn.OpenLabels(), epsilon=1, delta=0.1)
    assert isinstance(privurn.infer(made, run=QUICK), privurn.Posterior)


IN_EQUAL_BINS = {name for name, row in ROWS.items() if row.answers["Mixture"] == IN_BINS}


@pytest.mark.parametrize("name", sorted(IN_EQUAL_BINS))
def test_a_mixture_is_behind_equal_bins(name):
    published = {"publish": "counts"} if "publish" in recipes()[name].__dataclass_fields__ else {}
    made = privurn.release(NUMBERS, recipes()[name](**published), domain=BINS, epsilon=3)
    found = privurn.infer(made, privurn.Mixture(), run=QUICK)
    assert {"mean", "n_clusters"} <= set(found.draws.variables)


@pytest.mark.parametrize(
    "name", sorted(set(MECHANISMS) - IN_EQUAL_BINS - {"label-discovery", "pitman-yor", "pseudo-posterior", "noisy-marginals"})
)
def test_a_mixture_is_behind_no_other_counts_in_equal_bins(name):
    made = privurn.release(NUMBERS, recipes()[name](), domain=BINS, epsilon=3, delta=0.1)
    with pytest.raises(PrivurnError) as caught:
        privurn.infer(made, privurn.Mixture(), run=QUICK)
    assert one_sentence(caught.value)
