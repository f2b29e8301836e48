"""From releases of the same data to the posterior of figures of their distribution, however the data were released."""

from typing import Any

from privurn.errors import ModelError
from privurn.inference.counts import open_labels
from privurn.inference.counts.asked import functionals_of
from privurn.inference.counts.model import CountModel
from privurn.inference.counts.released import Observed
from privurn.inference.counts.results import CountPosterior, draw
from privurn.inference.counts.sampling import Job, Of
from privurn.inference.run import Run
from privurn.inference.trees.model import PolyaTree


def count_posterior(
    observed: tuple[Observed, ...],
    *,
    model: CountModel | PolyaTree | None = None,
    ask: Any = None,
    of: Of = "population",
    run: Run | None = None,
    level: float = 0.95,
) -> CountPosterior:
    """Posterior of functionals of the data's distribution, given one or several releases of the same data.

    `of`: "population", the law that the confidential records came from; "sample", the confidential records themselves; "urn",
    the limit of the urn's own draws (prior="mechanism" only), which is narrower than the population's posterior and not for it.
    """
    if of not in ("population", "sample", "urn"):
        raise ModelError(f"of={of!r} is not known.", hint="population, sample or urn")
    domain, settled = observed[0].domain, (run or Run()).settled()
    if observed[0].measured is not None:
        tree = model if isinstance(model, PolyaTree) else PolyaTree()
        job = Job(observed=observed, prior="mechanism", run=settled, within=tree.within, tree=tree)
    else:
        own = model if isinstance(model, CountModel) else CountModel()
        job = Job(
            observed=observed,
            prior=own.prior_of(domain),
            run=settled,
            within=own.within,
            size=own.size,
            shared=domain is not None and own.flat,
        )
    asked = functionals_of(observed[0], ask)
    column = observed[0].column
    open_labels.check_column(asked, column)
    return CountPosterior(job=job, functionals=asked, of=of, views=draw(job, asked, of=of), column=column, level=level)
