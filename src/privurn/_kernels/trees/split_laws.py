"""Laws of a split on a lattice, P(the left child has i steps | both have i + j), as tables over i and j.

Nodes whose children's windows lie near zero share a table that begins at i = j = 0: with few records a cell that is most of
them. The others get tables of their own windows.

symbol  meaning
law     (i, j) from the first steps of both windows on: the law under one component
laws    (.., i, j): first the sum over the components by their weights; then those of each, or scratch if there is no room
"""

import math

import numpy as np

from privurn._kernels._compile import compiled, written_out
from privurn._kernels.trees.components import BAND, BETA, component_at, update_band, update_inverse_whole, update_side


@written_out
def update_given_sum(law, total, component):
    """The law of the left child's steps 0, ..., total given their sum: beta-binomial or binomial, from about its mode."""
    slope, size = (1.0, component.size) if component.form == BETA else (0.0, 1.0)
    alpha, beta = size * component.r, size * (1.0 - component.r)
    top = min(int(component.r * (total + 1)), total)
    law[top] = whole = 1.0
    for i in range(top, total):
        law[i + 1] = law[i] * ((i * slope + alpha) * (total - i) / ((i + 1.0) * ((total - i - 1) * slope + beta)))
        whole += law[i + 1]
    for i in range(top - 1, -1, -1):
        law[i] = law[i + 1] * ((i + 1.0) * ((total - i - 1) * slope + beta) / ((i * slope + alpha) * (total - i)))
        whole += law[i]
    for i in range(total + 1):
        law[i] /= whole


@written_out
def update_shared(law, a, r, h):
    """The law from i = j = 0 on; where h > 1, each sum's has its own variance."""
    size = law.shape[0]
    found = np.empty(2 * size)
    for total in range(2 * size - 1):
        begin, end = max(0, total - size + 1), min(size, total + 1)
        component = component_at(a, r, h, float(total * h), float(total))
        if component.form == BAND:
            for i in range(begin, end):
                law[i, total - i] = 0.0
            first, last = update_band(found, total, begin, end, component)
            for i in range(first, last):
                law[i, total - i] = found[i - first]
        else:
            update_given_sum(found, total, component)
            for i in range(begin, end):
                law[i, total - i] = found[i]


@written_out
def update_mixture(laws, at, size_u, size_v, weight):
    """Add one component's law to the sum of all."""
    for i in range(size_u):
        for j in range(size_v):
            laws[0, i, j] += weight * laws[at, i, j]


@compiled
def update_tables(tables, shares, h, concentrations, weights):
    """Laws for some shares r, from zero on: (table, .., i, j)."""
    size = tables.shape[2]
    for t in range(shares.shape[0]):
        laws = tables[t]
        for i in range(size):
            for j in range(size):
                laws[0, i, j] = 0.0
        for c in range(concentrations.shape[0]):
            if weights[c] > 0.0:
                at = min(c + 1, laws.shape[0] - 1)
                update_shared(laws[at], concentrations[c], shares[t], h)
                update_mixture(laws, at, size, size, weights[c])


@written_out
def update_own_law(law, lo_u, size_u, lo_v, size_v, node, h, a):
    """The law of a node's split under one concentration, on the windows lo_u, ... and lo_v, ... of its children."""
    size = size_u + size_v - 1
    component = component_at(a, node.share, h, node.upper, lo_u + lo_v + 0.5 * size)
    if component.form == BAND:
        found = np.empty(size_u)
        for i in range(size_u):
            for j in range(size_v):
                law[i, j] = 0.0
        for x in range(size):
            total = lo_u + lo_v + x
            begin, end = max(lo_u, total - lo_v - size_v + 1), min(lo_u + size_u, total - lo_v + 1)
            begin, end = update_band(found, total, begin, end, component)
            for i in range(begin, end):
                law[i - lo_u, total - i - lo_v] = found[i - begin]
        return
    side_u, side_v, inverse = np.empty(size_u), np.empty(size_v), np.empty(size)
    scale = update_side(side_u, lo_u, component, True) + update_side(side_v, lo_v, component, False)
    scale = math.exp(scale - update_inverse_whole(inverse, lo_u + lo_v, component))
    for i in range(size_u):
        factor = scale * side_u[i]
        for j in range(size_v):
            law[i, j] = factor * side_v[j] * inverse[i + j]


@compiled
def update_own_laws(laws, lo_u, size_u, lo_v, size_v, node, h, concentrations, weights):
    """The laws of a node's split (.., i, j)."""
    for i in range(size_u):
        for j in range(size_v):
            laws[0, i, j] = 0.0
    for c in range(concentrations.shape[0]):
        if weights[c] > 0.0:
            at = min(c + 1, laws.shape[0] - 1)
            update_own_law(laws[at], lo_u, size_u, lo_v, size_v, node, h, concentrations[c])
            update_mixture(laws, at, size_u, size_v, weights[c])
