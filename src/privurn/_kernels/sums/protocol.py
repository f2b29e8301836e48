"""What a model must be able to do, as functions on flat arrays that dispatch on the type of the model's record.

A model is a NamedTuple of numbers and arrays; `provide` attaches the functions below to its type. Compiled code finds them by
numba's `overload`, interpreted code by the same table, so one source of the chain serves both. The noise is another such
record. Both carry a tuple (`columns` of a record, `entries` of the sum) whose length is part of their type: loops over it are
compiled for that length.

theta     all parameters, one flat array, in an order of the model's own
row       one latent record, a flat array
u         the same record with its dependence on theta taken out
"""

from collections.abc import Callable
from typing import Any

import numba
from numba.extending import overload

REQUIRED = ("update_record", "update_statistic", "update_parameters", "log_noise")
INTERWEAVING = (
    "update_free",
    "update_from_free",
    "log_prior",
    "update_standard",
    "update_restored",
    "update_total",
    "log_ancillary",
)
BALANCING = ("update_linearised",)
MAXIMISING = ("update_summary", "update_maximum")

INLINE = {"forceinline": True}
"""For functions called once a record: a call would copy all fields of the model's record, which costs more than the work."""

TABLE: dict[str, dict[type, Callable[..., Any]]] = {name: {} for name in (*REQUIRED, *INTERWEAVING, *BALANCING, *MAXIMISING)}


def provide(kind, **functions):
    """Attach functions to a type of models; those it lacks are missing moves, not errors."""
    for name, function in functions.items():
        TABLE[name][kind] = function


def provide_from(kind, namespace):
    """The same for all functions that a module defines under the names of this one."""
    provide(kind, **{name: namespace[name] for name in TABLE if name in namespace})


def _found(name, model):
    return TABLE[name].get(model.instance_class) if isinstance(model, numba.types.BaseNamedTuple) else None


def update_record(model, theta, rng, row):
    """Draw a record given the parameters."""
    TABLE["update_record"][type(model)](model, theta, rng, row)


@overload(update_record, jit_options=INLINE)
def _update_record(model, theta, rng, row):
    return _found("update_record", model)


def update_statistic(model, row, out):
    """What the record adds to the sum that is released with noise."""
    TABLE["update_statistic"][type(model)](model, row, out)


@overload(update_statistic, jit_options=INLINE)
def _update_statistic(model, row, out):
    return _found("update_statistic", model)


def update_parameters(model, theta, records, n, rng):
    """Draw the parameters given the first n records, or a step that leaves that law as it is."""
    TABLE["update_parameters"][type(model)](model, theta, records, n, rng)


@overload(update_parameters)
def _update_parameters(model, theta, records, n, rng):
    return _found("update_parameters", model)


def log_noise(noise, total):
    """Log density, up to a constant, of what was released where the sum without noise is `total`."""
    return TABLE["log_noise"][type(noise)](noise, total)


@overload(log_noise, jit_options=INLINE)
def _log_noise(noise, total):
    return _found("log_noise", noise)


def update_free(model, theta, free):
    """Parameters as coordinates without bounds."""
    TABLE["update_free"][type(model)](model, theta, free)


@overload(update_free)
def _update_free(model, theta, free):
    return _found("update_free", model)


def update_from_free(model, free, theta):
    """And back."""
    TABLE["update_from_free"][type(model)](model, free, theta)


@overload(update_from_free)
def _update_from_free(model, free, theta):
    return _found("update_from_free", model)


def log_prior(model, theta):
    """Log prior density of the free coordinates (their Jacobian included), up to a constant."""
    return TABLE["log_prior"][type(model)](model, theta)


@overload(log_prior)
def _log_prior(model, theta):
    return _found("log_prior", model)


def update_standard(model, theta, row, rng, u):
    """Take the parameters out of a record; where that needs more than the record, draw the rest given it."""
    TABLE["update_standard"][type(model)](model, theta, row, rng, u)


@overload(update_standard)
def _update_standard(model, theta, row, rng, u):
    return _found("update_standard", model)


def update_restored(model, theta, u, row):
    """Put the parameters back in."""
    TABLE["update_restored"][type(model)](model, theta, u, row)


@overload(update_restored)
def _update_restored(model, theta, u, row):
    return _found("update_restored", model)


def update_total(model, theta, standard, n, out):
    """Sum of the statistic over the first n standardised records, restored."""
    TABLE["update_total"][type(model)](model, theta, standard, n, out)


@overload(update_total)
def _update_total(model, theta, standard, n, out):
    return _found("update_total", model)


def log_ancillary(model, theta, standard, n):
    """Log density of the first n standardised records, up to a constant: 0 where their law is free of the parameters."""
    return TABLE["log_ancillary"][type(model)](model, theta, standard, n)


@overload(log_ancillary)
def _log_ancillary(model, theta, standard, n):
    return _found("log_ancillary", model)


def update_linearised(model, theta, standard, n, out, slopes):
    """As `update_total` without rounding, and slopes[j, k], its derivative along free coordinate k: as many as entries."""
    TABLE["update_linearised"][type(model)](model, theta, standard, n, out, slopes)


@overload(update_linearised)
def _update_linearised(model, theta, standard, n, out, slopes):
    return _found("update_linearised", model) or _not_linearised


def _not_linearised(model, theta, standard, n, out, slopes):
    """Compiled for models without the move, which never get here."""
    slopes[:] = 0.0


def update_summary(model, records, n, out):
    """Sufficient statistic of the complete data: what expectation and maximisation need of the records."""
    TABLE["update_summary"][type(model)](model, records, n, out)


@overload(update_summary)
def _update_summary(model, records, n, out):
    return _found("update_summary", model)


def update_maximum(model, summary, theta):
    """Parameters of the highest complete-data likelihood at an expected sufficient statistic."""
    TABLE["update_maximum"][type(model)](model, summary, theta)


@overload(update_maximum)
def _update_maximum(model, summary, theta):
    return _found("update_maximum", model)
