"""Functionals of releases with open labels: shares of named labels, and the probability of something new.

The random measure is drawn by `urn_measures` under the mechanism's own prior, the only one there is for labels nobody listed.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privurn.errors import DomainError, FormatError, ModelError
from privurn.inference.counts.functionals import Functional
from privurn.inference.counts.released import MISSING, Observed
from privurn.inference.counts.sampling import Job, Of, Views
from privurn.inference.counts.urn_measures import open_posterior
from privurn.inference.draws import Draws

SHOWN = 10
"""Labels, the most frequent first, that are reported where nothing is asked for."""


def default_functionals(release: Observed) -> list[str]:
    """Shares of the labels released most often, and the probability of something new."""
    order = np.argsort(-release.counts, kind="stable")[:SHOWN]
    column = quoted(release.column or "x")
    return [f"P({column}={quoted(_name(release.labels[i]))})" for i in order] + ["discovery"]


def check_column(functionals: Sequence[Functional], column: str | None) -> None:
    """Labels are of one column: by its name, or x."""
    if column is None:
        return
    for each in functionals:
        for named in (each.column, *(condition.column for condition in each.conditions)):
            if named not in (None, "x", column):
                raise FormatError(
                    f"the release has no column {named!r}, which {each.name!r} asks for.",
                    hint=f"Its only column is {column!r}: for example P({quoted(column)}=LABEL)",
                )


def draw_open_views(job: Job, functionals: Sequence[Functional], *, of: Of) -> Views:
    """Independent draws under the mechanism's own prior."""
    release = job.observed[0]
    law = open_posterior(release.term, labels=release.labels, of_data=getattr(release.term, "of_data", None))
    weights = np.column_stack([_weights(each, release.labels) for each in functionals])
    schedule = job.schedule
    rows = []
    for i, seed in enumerate(np.random.SeedSequence(schedule.seed).spawn(schedule.chains)):
        rng = np.random.Generator(np.random.PCG64(seed))
        drawn = law.draw(schedule.draws, rng=rng, about=of)
        rows.append(drawn.weights @ weights[:-1] + drawn.elsewhere[:, None] * weights[-1])
        job.run.progress((i + 1) * schedule.draws, schedule.chains * schedule.draws, {})
    found = np.stack(rows)
    stated = {key: value for key, value in asdict(schedule).items() if key in ("chains", "draws", "seed")}
    named = {each.name: found[:, :, i] for i, each in enumerate(functionals)}
    return {of: Draws(variables=named, markov=False, attributes={**stated, **job.attributes(of)})}


def naive_open_draws(job: Job, functionals: Sequence[Functional]) -> Draws:
    """The released records taken for the data: the bootstrap's Bayesian twin, Dirichlet(S), which knows of nothing new."""
    release = job.observed[0]
    rng = np.random.default_rng(job.schedule.seed)
    drawn = rng.dirichlet(release.counts.astype(np.float64), size=(job.schedule.chains, job.schedule.draws))
    weights = np.column_stack([_weights(each, release.labels) for each in functionals])[:-1]
    named = {each.name: drawn @ weights[:, i] for i, each in enumerate(functionals)}
    return Draws(variables=named, markov=False, attributes={"how": "the release taken for the data: not valid"})


def face_value(functionals: Sequence[Functional], release: Observed) -> dict[str, float]:
    """The functionals of the released records themselves."""
    shares = np.append(release.shares, 0.0)
    return {each.name: float(shares @ _weights(each, release.labels)) for each in functionals}


def _weights(functional: Functional, labels: Sequence[str | None]) -> NDArray[np.float64]:
    """Weights of the released labels and, last, of everything elsewhere."""
    if functional.kind == "discovery":
        return np.append(np.zeros(len(labels)), 1.0)
    names = [_name(label) for label in labels]
    if functional.kind == "function" and functional.function is not None:
        values = np.asarray(functional.function(np.array(names, object)), np.float64)
        if values.shape != (len(labels),) or not np.all(np.isfinite(values)):
            raise ModelError(f"the function {functional.name!r} must return one finite number for each released label.")
        return np.append(values, 0.0)
    if functional.kind != "event":
        raise FormatError(
            f"{functional.name!r} needs numbers, and the release holds open labels.", hint="For example P(x=LABEL), discovery"
        )
    weights = np.ones(len(labels) + 1)
    for each in functional.conditions:
        if each.operator not in ("=", "!="):
            raise FormatError(f"labels have no order: {functional.name!r}.", hint="For example P(x=LABEL)")
        if str(each.value) not in names:
            raise DomainError(f"the label {each.value!r} was not released.", hint="Everything not released is 'discovery'")
        match = np.append(np.array([name == each.value for name in names], np.float64), 0.0)
        weights = weights * (match if each.operator == "=" else 1.0 - match)
    return weights


def _name(label: Any) -> str:
    return MISSING if label is None else str(label)


def quoted(name: str) -> str:
    """A label as it can be written in a functional."""
    plain = name.strip() == name and name and not set(name) & set("'\"<>=!,()") and " and " not in f" {name} "
    return name if plain else f'"{name}"' if '"' not in name else f"'{name}'"
