"""Every name of the registry with every model: a posterior, or one sentence why not, as docs/reference/inference.md says."""

from pathlib import Path

import numpy as np
import pytest
from docs.inference_matrix import IN_BINS, MODELS, NO, OF_CELLS, YES, matrix, page
from test_mechanism_contract import NUMBERS, MechanismContract, contracts

import privurn
from privurn.errors import PrivurnError
from privurn.mechanisms.registry import MECHANISMS, REGISTRY, recipes

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning"),  # plain numbers say where they overflow
    pytest.mark.usefixtures("interpreted", "little_work"),
]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "inference.md"
ROWS = {row.name: row for row in matrix()}
CONTRACTS = {each.name: each for each in contracts(MechanismContract) if each.__name__.startswith("Test")}
QUICK = privurn.Run(draws=8, warm_up=4, chains=2, thin=1, seed=1)
BINS = privurn.Bins([0, 1, 2, 3, 4])
FORMULAS = {"LogisticRegression": ["v ~ u"]}


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
    made = {}

    def find(name):
        if name not in made:
            made[name] = CONTRACTS[name]().release(ledger=False)
        return made[name]

    return find


def one_sentence(error):
    return error.message.endswith(".") and error.message.rstrip(".").count(". ") == 0 and len(error.message) > 20


@pytest.mark.parametrize("model", [None, *MODELS])
@pytest.mark.parametrize("name", ROWS)
def test_a_posterior_or_one_sentence(releases, name, model):
    answers = ROWS[name].answers
    answer = answers[model] if model else (YES if YES in answers.values() else NO)
    given = {"model": getattr(privurn, model)(*FORMULAS.get(model, ()))} if model else {}
    if answer == YES and name != "pitman-yor":  # which is so for open labels: below
        assert isinstance(privurn.infer(releases(name), **given, run=QUICK), privurn.Posterior)
        return
    if answer == OF_CELLS:  # not of records from noisy counts, or of several draws
        try:
            found: object = privurn.infer(releases(name), **given, run=QUICK)
        except PrivurnError as error:
            found = error
        assert isinstance(found, privurn.Posterior) or one_sentence(found)
        return
    with pytest.raises(PrivurnError) as caught:  # in equal bins only: these releases are of categories
        privurn.infer(releases(name), **given, run=QUICK)
    assert one_sentence(caught.value), caught.value.message


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
