"""Bayesian nonparametric mixtures from privatised data: densities and clusters of the confidential population.

    y_i | theta_i ~ kernel,   theta_i ~ P,   P ~ mixing,   released z_i ~ channel(. | y_i)

Kernels, mixings and channels multiply: any sampler takes any combination (docs/design-mixtures.md).
"""

from privurn.inference.mixtures.fitted import DensityEstimate
from privurn.inference.mixtures.global_samplers import (
    GlobalMixtureModel,
    GlobalNeal5,
    GlobalSlice,
    OwnGlobalChannel,
    fit_global_mixture,
)
from privurn.inference.mixtures.kernels import BetaKernel, CategoricalKernel, ComponentsKernel, GaussianKernel, OwnKernel
from privurn.inference.mixtures.marginal_samplers import Neal2, Neal3, Neal8
from privurn.inference.mixtures.mixings import DirichletProcess, FiniteDirichlet, GammaPrior, PitmanYorProcess
from privurn.inference.mixtures.model import MixtureModel, OwnChannel, TableChannel
from privurn.inference.mixtures.posterior import MixturePosterior, fit_mixture
from privurn.inference.mixtures.samplers import Keep, Neal5, SliceSampler
from privurn.inference.mixtures.total_gaussian import TotalGaussianKernel

__all__ = [
    "BetaKernel",
    "CategoricalKernel",
    "ComponentsKernel",
    "DensityEstimate",
    "DirichletProcess",
    "FiniteDirichlet",
    "GammaPrior",
    "GaussianKernel",
    "GlobalMixtureModel",
    "GlobalNeal5",
    "GlobalSlice",
    "Keep",
    "MixtureModel",
    "MixturePosterior",
    "Neal2",
    "Neal3",
    "Neal5",
    "Neal8",
    "OwnChannel",
    "OwnGlobalChannel",
    "OwnKernel",
    "PitmanYorProcess",
    "SliceSampler",
    "TableChannel",
    "TotalGaussianKernel",
    "fit_global_mixture",
    "fit_mixture",
]
