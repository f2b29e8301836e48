"""Posteriors of latent counts: what an analyst may conclude from released cells, records or noisy counts."""

from privurn.inference.counts.model import CountModel
from privurn.inference.counts.posterior import count_posterior
from privurn.inference.counts.released import Observed
from privurn.inference.counts.results import CountPosterior
from privurn.inference.counts.unbiased import Estimate

__all__ = ["CountModel", "CountPosterior", "Estimate", "Observed", "count_posterior"]
