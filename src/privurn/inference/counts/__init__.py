"""Posteriors of releases: what an analyst may conclude from what was published."""

from privurn.inference.counts.posterior import posterior
from privurn.inference.counts.released import Observed
from privurn.inference.counts.results import Estimate, Posterior

__all__ = ["Estimate", "Observed", "Posterior", "posterior"]
