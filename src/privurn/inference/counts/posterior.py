"""From releases of the same data to the posterior of figures of their distribution, however the data were released."""

from typing import Any

from privurn.errors import ModelError
from privurn.inference.cautions import say
from privurn.inference.counts import open_labels
from privurn.inference.counts.asked import functionals_of
from privurn.inference.counts.model import CountModel
from privurn.inference.counts.released import Observed
from privurn.inference.counts.results import CountPosterior, draw
from privurn.inference.counts.sampling import Job, Of
from privurn.inference.run import Run
from privurn.inference.trees.cells import cells_as_tree, usual_tree
from privurn.inference.trees.model import PolyaTree
from privurn.mechanisms.tree_measurements import TreeMeasurements


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
    own = model if isinstance(model, CountModel) else CountModel()
    tree = model if isinstance(model, PolyaTree) else PolyaTree(within=own.within)
    cells = _cells(observed, own, asked=tree is model)
    if cells is not None or observed[0].measured is not None:
        job = Job(observed=observed, prior="mechanism", run=settled, within=tree.within, size=own.size, tree=tree, cells=cells)
    else:
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
    views = draw(job, asked, of=of)
    return say(CountPosterior(job=job, functionals=asked, of=of, views=views, column=column, level=level))


def _cells(observed: tuple[Observed, ...], model: CountModel, *, asked: bool) -> TreeMeasurements | None:
    """Counts of cells as those of a tree, where a tree is the model that was `asked` for, or the default."""
    first = observed[0]
    if first.measured is not None:
        return None
    usual = model.prior is None and first.domain is not None and usual_tree(first.domain)
    if not (asked or usual):
        return None
    alone = len(observed) == 1 and first.domain is not None
    found = cells_as_tree(first.term, first.domain, n=first.n, whole=model.size is not None) if alone else None  # type: ignore[arg-type]
    if found is None and asked:
        raise ModelError(
            "a Polya tree is for one release of noisy counts, or of records whose number of confidential ones is public.",
            hint="Leave the model out",
        )
    return found
