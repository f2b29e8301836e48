"""A refused request offers three things to type, and each of them works when it is typed."""

import re
import shlex

import numpy as np
import pytest

from privurn.cli.main import command, spoken
from privurn.errors import CalibrationError, ModelError, PrivurnError
from privurn.mechanisms.alternatives import rounded_up
from privurn.mechanisms.choice import choose
from privurn.mechanisms.perturbed_histogram import NoisyCounts
from privurn.mechanisms.recipe import Public
from privurn.privacy.profile import Guarantee

TOWNS = ("Aa", "Bb", "Cc", "Dd")
PAIR = "--epsilon 1 --delta 1e-6"
PAY = "--column pay --grid 0:100:5"
SHARE = "--column share --grid 0:1:0.05"
TOWN = "--column town --categories Aa,Bb,Cc,Dd"
OPEN = "--column town --open-labels"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(4)
    path = tmp_path_factory.mktemp("refusals") / "people.csv"
    rows = zip(rng.gamma(3, 9, 400).clip(0, 100), rng.beta(1, 3, 400), rng.choice(TOWNS, 400), strict=True)
    path.write_text("pay,share,town\n" + "\n".join(f"{pay:.0f},{share:.3f},{town}" for pay, share, town in rows) + "\n")
    return path


def attempt(table, out, words):
    command()(["release", str(table), *words, "--seed", "1", "-o", str(out)], standalone_mode=False)


def alternatives(error):
    """The lines that the command prints."""
    return [line.removeprefix("    - ") for line in spoken(error, ["release"]).splitlines() if line.startswith("    - ")]


def typed(words, alternative):
    """The refused command with what the alternative says to type, and without what it says to leave out."""
    said, _, left = alternative.partition(" (leave ")
    new = re.findall(r"(--[a-z-]+) ('[^']*'|[^\s]+)", said)
    assert new, alternative
    dropped = {*re.findall(r"--[a-z-]+", left), *(option for option, _ in new)}
    kept, skip = [], False
    for i, word in enumerate(words):
        if word.startswith("--"):
            skip = word in dropped
            if skip and i + 1 == len(words):
                continue
        if not skip:
            kept.append(word)
    return kept + [part for option, value in new for part in (option, shlex.split(value)[0])]


REFUSED = [
    # urns
    f"{PAY} {PAIR} --mechanism dirichlet-multinomial --alpha 1",
    f"{PAY} {PAIR} --mechanism dirichlet-multinomial --alpha 1e-9 --records 5000",
    f"{PAY} --epsilon 0.5 --mechanism dirichlet-multinomial --alpha 2",
    f"{PAY} {PAIR} --mechanism dirichlet-multinomial --alpha 2 --contributions 3",
    f"{PAY} {PAIR} --mechanism dirichlet-multinomial --alpha 2 --neighbouring add-remove --records 300",
    f"{PAY} {PAIR} --mechanism dirichlet-process",
    f"{PAY} {PAIR} --mechanism dirichlet-process --records 100000",
    f"{PAY} --epsilon 1 --delta 0.1 --mechanism pitman-yor --discount 0.5 --records 300",
    f"{PAY} --epsilon 1 --mechanism pitman-yor --discount 0.5",
    f"{OPEN} {PAIR} --mechanism dirichlet-process --records 100",
    f"{OPEN} {PAIR} --mechanism dirichlet-process",
    f"{OPEN} --epsilon 1 --mechanism dirichlet-process",
    f"{OPEN} --epsilon 1",
    f"{OPEN} {PAIR} --mechanism dirichlet-multinomial",
    # histograms
    f"{PAY} --epsilon 1 --mechanism perturbed-histogram --noise discrete-gaussian",
    f"{PAY} {PAIR} --mechanism smoothed-histogram --smoothing 0.01",
    f"{PAY} {PAIR} --mechanism smoothed-histogram --smoothing 0.01 --contributions 2",
    f"{PAY} --epsilon 0.01 --mechanism smoothed-histogram --smoothing 1e-9",
    f"{PAY} {PAIR} --mechanism posterior-sample --alpha 3",
    f"{PAY} {PAIR} --mechanism posterior-sample --alpha 3 --neighbouring add-remove",
    f"{PAY} {PAIR} --mechanism smoothed-histogram --neighbouring add-remove --records 100",
    f"{PAY} {PAIR} --mechanism perturbed-histogram --neighbouring add-remove",
    f"{PAY} {PAIR} --neighbouring add-remove",
    f"{OPEN} {PAIR} --mechanism perturbed-histogram --noise laplace",
    f"{OPEN} --epsilon 1 --mechanism smoothed-histogram",
    # the exponential mechanism
    pytest.param(f"{PAY} {PAIR} --mechanism exponential --loss l2 --records 300", marks=pytest.mark.long),  # half a minute
    f"{PAY} {PAIR} --mechanism exponential --records 200000",
    f"{PAY} {PAIR} --mechanism exponential --neighbouring add-remove --records 10",
    f"{TOWN} {PAIR} --mechanism exponential --loss w1",
    f"--column pay --bins 0,100 {PAIR} --mechanism exponential",
    f"{OPEN} {PAIR} --mechanism exponential",
    # the pseudo-posterior
    f"{PAY} {PAIR} --mechanism pseudo-posterior",
    f"{SHARE} {PAIR} --mechanism pseudo-posterior",
    f"{PAY} {PAIR} --mechanism pseudo-posterior --model beta",
    f"{PAY} {PAIR} --mechanism pseudo-posterior --model bernoulli --draws 2",
    f"{SHARE} {PAIR} --nulls cell --mechanism pseudo-posterior --model beta",
    f"{TOWN} {PAIR} --mechanism pseudo-posterior --model beta",
    f"{OPEN} {PAIR} --mechanism pseudo-posterior --model beta",
    f"{SHARE} {PAIR} --mechanism pseudo-posterior --model beta --neighbouring add-remove",
    f"{TOWN} {PAIR} --mechanism pseudo-posterior --model beta --neighbouring add-remove --records 100",
    f"--grid pay=0:100:20 --grid share=0:1:0.5 {PAIR} --mechanism pseudo-posterior --model beta",
]


@pytest.mark.parametrize("line", REFUSED)
def test_each_alternative_works_when_typed(line, table, tmp_path):
    words = shlex.split(line)
    with pytest.raises(PrivurnError) as refused:
        attempt(table, tmp_path / "refused", words)
    found = alternatives(refused.value)
    assert len(found) == 3, str(refused.value)
    assert "--" not in str(refused.value)
    for i, alternative in enumerate(found):
        command = typed(words, alternative.replace("LIST", ",".join(TOWNS)))
        attempt(table, tmp_path / f"out{i}", command)
        assert (tmp_path / f"out{i}" / "certificate.json").exists()


def test_records_and_weights_offered_are_the_nearest(table, tmp_path):
    """One record more, or a thousandth less of the prior, is refused again."""
    words = shlex.split(f"{PAY} {PAIR} --mechanism dirichlet-multinomial --alpha 2")
    with pytest.raises(CalibrationError) as refused:
        attempt(table, tmp_path / "refused", words)
    fewer, prior, _ = (each.changes.get("mechanism") for each in refused.value.alternatives)
    records, alpha = fewer.records, prior.alpha
    for more in (["--records", str(records + 1)], ["--alpha", str(0.999 * alpha)]):
        with pytest.raises(CalibrationError):
            attempt(table, tmp_path / "refused", words + more)


def test_too_many_cells_for_noise():
    public = Public(n=1000, cells=6_000_000, guarantee=Guarantee(epsilon=1.0, delta=1e-6))
    with pytest.raises(ModelError) as refused:
        choose(NoisyCounts(), public)
    offered = [each.changes["mechanism"] for each in refused.value.alternatives]
    assert len({type(each) for each in offered}) == 3
    for recipe in offered:
        assert choose(recipe, public)


@pytest.mark.parametrize("value", [1.0, 1.23456789, 0.1 + 0.2, 1e-7, 3e-290, 99999.9, 123456.0, 599.9999999])
def test_rounding_ends_on_the_private_side(value):
    assert value <= rounded_up(value) <= value * 1.0002
