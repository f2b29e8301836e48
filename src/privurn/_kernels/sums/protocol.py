"""What a model must be able to do, as functions on flat arrays that are chosen by the type of the model's record.

A model is a NamedTuple of numbers and arrays, and so is the noise; `provide` attaches the functions below to its type. One
source of the chain is compiled for each (`privurn._kernels.dispatch`), whatever the width of a record (`model.columns`) and of
the sum (`len(noise.values)`): a width in the type would be compiled for again and again. Functions called once a record are
inlined: a call would copy all fields of the model's record, which costs more than the work.

theta     all parameters, one flat array, in an order of the model's own
row       one latent record, a flat array
u         the same record with its dependence on theta taken out
"""

from privurn._kernels.dispatch import generic, implement


@generic(on=1, often=True)
def update_record(model, theta, rng, row):
    """Draw a record given the parameters."""


@generic(on=1, often=True)
def update_statistic(model, row, out):
    """What the record adds to the sum that is released with noise."""


@generic(on=1)
def update_parameters(model, theta, records, n, rng):
    """Draw the parameters given the first n records, or a step that leaves that law as it is."""


@generic(on=1, often=True)
def log_noise(noise, total):
    """Log density, up to a constant, of what was released where the sum without noise is `total`."""


@generic(on=1, often=True, default=True)
def log_exchanged(noise, total, old, new, candidate):
    """The same where the statistic of a record goes from `old` to `new`; `candidate` gets the sum that this makes."""
    for j in range(len(candidate)):
        candidate[j] = total[j] + (new[j] - old[j])
    return log_noise(noise, candidate)


@generic(on=1)
def update_free(model, theta, free):
    """Parameters as coordinates without bounds."""


@generic(on=1)
def update_from_free(model, free, theta):
    """And back."""


@generic(on=1)
def log_prior(model, theta):
    """Log prior density of the free coordinates (their Jacobian included), up to a constant."""


@generic(on=1)
def update_standard(model, theta, row, rng, u):
    """Take the parameters out of a record; where that needs more than the record, draw the rest given it."""


@generic(on=1)
def update_restored(model, theta, u, row):
    """Put the parameters back in."""


@generic(on=1)
def update_total(model, theta, standard, n, out):
    """Sum of the statistic over the first n standardised records, restored."""


@generic(on=1)
def log_ancillary(model, theta, standard, n):
    """Log density of the first n standardised records, up to a constant: 0 where their law is free of the parameters."""


@generic(on=1)
def update_linearised(model, theta, standard, n, out, slopes):
    """As `update_total` without rounding, and slopes[j, k], its derivative along free coordinate k: as many as entries."""


@generic(on=1, default=True)
def update_balanced(model, noise, size, theta, records, n, total, spread, tuning, rng):
    """Balanced steps of n: that of `balance` for models with slopes, which attach it, so that others do not compile it."""
    return records, n, 0


@generic(on=1)
def update_summary(model, records, n, out):
    """Sufficient statistic of the complete data: what expectation and maximisation need of the records."""


@generic(on=1)
def update_maximum(model, summary, theta):
    """Parameters of the highest complete-data likelihood at an expected sufficient statistic."""


REQUIRED = (update_record, update_statistic, update_parameters, log_noise)
INTERWEAVING = (
    update_free,
    update_from_free,
    log_prior,
    update_standard,
    update_restored,
    update_total,
    log_ancillary,
)
BALANCING = (update_linearised, update_balanced)
MAXIMISING = (update_summary, update_maximum)
FUNCTIONS = {each.__name__: each for each in (*REQUIRED, log_exchanged, *INTERWEAVING, *BALANCING, *MAXIMISING)}


def provide(kind, **functions):
    """Attach functions to a type of models; those it lacks are missing moves, not errors."""
    for name, function in functions.items():
        implement(FUNCTIONS[name], kind)(function)


def provide_from(kind, namespace):
    """The same for all functions that a module defines under the names of this one."""
    provide(kind, **{name: namespace[name] for name in FUNCTIONS if name in namespace})


def provided(kind):
    """What was attached to a type, by name."""
    return {name: each.table[kind,] for name, each in FUNCTIONS.items() if (kind,) in each.table}
