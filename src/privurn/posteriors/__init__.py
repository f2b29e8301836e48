"""Posteriors of releases: what an analyst may conclude from what was published."""

from privurn.posteriors.posterior import posterior
from privurn.posteriors.released import Observed
from privurn.posteriors.results import Estimate, Posterior

__all__ = ["Estimate", "Observed", "Posterior", "posterior"]
