"""Wording of messages that are put together from parts."""

import ast
import re

import numpy as np
import pytest

import privurn
from privurn.certificates.verify import verify
from privurn.errors import CertificateError, FormatError, ModelError
from privurn.inference.counts.composition import composition
from privurn.inference.counts.released import observe
from privurn.inference.counts.urn_measures import measure_posterior
from privurn.inference.mixtures.reading import read_privatised
from privurn.inference.sums.reading import released_sums
from privurn.mechanisms.exponential import ExponentialHistogram
from privurn.mechanisms.sums.calibrating import Budget
from privurn.mechanisms.sums.sum_statistic import BernoulliStatistic
from privurn.privacy.certificate import Certificate
from privurn.releases.statistics import release_statistics
from privurn.reports.html.page import report
from sources import FILES, nodes, place


def test_no_error_puts_an_article_before_an_unknown_word():
    """ "a exponential release": a name that is filled in may begin with any letter."""
    found = []
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, ast.Raise) and re.search(r"\ban? \{[a-z]", ast.unparse(node)):
                found.append(f"{place(path)}:{node.lineno}")
    assert found == []


def test_a_release_is_named_without_an_article():
    mechanism = ExponentialHistogram(n=10, cells=3, records=4, epsilon=1.0)
    for ask in (composition, lambda made, counts: measure_posterior(made, labels=["a"], counts=counts)):
        with pytest.raises(ModelError, match=r"^there is no likelihood for a release by exponential: its normaliser"):
            ask(mechanism, counts=[4])
    with pytest.raises(FormatError, match=r"^an object of type int is no release"):
        observe(3)
    with pytest.raises(FormatError, match=r"^an object of type int is no release"):
        read_privatised(3)


def of_the_future(certificate):
    """The same certificate for a mechanism that this version has never heard of, sealed again."""
    return Certificate.seal({**certificate.data, "mechanism": {"name": "teleported", "parameters": {}}})


def test_reasons_are_quoted_without_a_second_full_stop(tmp_path):
    out = privurn.release(np.arange(5.0), domain=privurn.Grid(0, 4, 1), epsilon=1, delta=1e-6)
    out.save(tmp_path / "release")
    path = tmp_path / "release" / "certificate.json"
    path.write_text(of_the_future(Certificate.read(path)).to_json())
    [reason] = verify(tmp_path / "release").reasons
    assert reason.endswith("the mechanism 'teleported' is not known to this version")
    for refused in (report, observe):
        with pytest.raises(CertificateError) as error:
            refused(tmp_path / "release")
        assert "not known to this version" in error.value.message
        assert ".." not in error.value.message
    path.write_text("{}")
    assert not verify(tmp_path / "release").reasons[0].endswith(".")


def test_reasons_of_statistics_have_no_full_stop(tmp_path):
    budget = Budget(epsilon=1, neighbouring="add-remove")
    made = BernoulliStatistic.calibrated(column="column_0", budget=budget)
    path = tmp_path / "statistics"
    release_statistics(np.ones((5, 1)), mechanism=made, budget=budget).save(path)
    (path / "certificate.json").write_text(of_the_future(Certificate.read(path)).to_json())
    [reason] = verify(path).reasons
    assert reason.endswith("'teleported' is not known to this version")
    with pytest.raises(CertificateError) as error:
        released_sums(path)
    assert ".." not in error.value.message
