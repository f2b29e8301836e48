"""Independent draws of all counts of a tree, top-down, given the messages from below on their lattices.

Given its parent's count a split depends on nothing outside its subtree, so that counts are drawn from the root to the deepest
nodes, many draws at once: those that share a node's count share the law of its split.

symbol   meaning
drawn    (node, draw): a count in steps of the depth's lattice
p        (node, draw): the population's probability of the node
y        a sum of two children, in steps of their lattice
"""

import math

import numpy as np

from privurn._kernels._compile import compiled, written_out
from privurn._kernels.trees.components import BAND, component_at, update_band, update_inverse_whole, update_side
from privurn._kernels.trees.lattice import raised, update_posterior, update_sum
from privurn._kernels.trees.split_laws import update_own_laws


@written_out
def between_lattices(x, spacing, masses, lo_below, spacing_below, uniform):
    """A point of the lattice below, given the step x of a lattice, by its masses there: how `update_up` reads a message."""
    size = masses.shape[0]
    if spacing >= spacing_below:
        ratio = spacing // spacing_below
        at = x * ratio - lo_below
        reach = ratio - 1 if x > 0 else 0
        total = 0.0
        for step in range(-reach, reach + 1):
            if 0 <= at + step < size:
                total += (ratio - abs(step)) * masses[at + step]
        left = uniform * total
        chosen = min(max(at, 0), size - 1)
        for step in range(-reach, reach + 1):
            if 0 <= at + step < size:
                chosen = at + step
                left -= (ratio - abs(step)) * masses[at + step]
                if left <= 0.0:
                    break
        return chosen
    ratio = spacing_below // spacing
    at, part = x // ratio - lo_below, x % ratio / ratio
    low = (1.0 - part) * masses[at] if 0 <= at < size else 0.0
    high = part * masses[at + 1] if 0 <= at + 1 < size else 0.0
    chosen = at if uniform * (low + high) <= low else at + 1
    return min(max(chosen, 0), size - 1)


@written_out
def first_above(cumulative, value):
    """The first place where a rising array is above a value; the last one where it never is."""
    low, high = 0, cumulative.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > value:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def update_root(drawn, level, messages, outside, rng):
    """Counts of the root."""
    root = level.nodes[0]
    law = np.empty(root.width)
    update_posterior(law, root, messages, outside)
    for x in range(1, root.width):
        law[x] += law[x - 1]
    for d in range(drawn.shape[1]):
        drawn[0, d] = root.lo + first_above(law, rng.random() * law[root.width - 1])


@written_out
def update_law(law, y, sides_u, sides_v, factors, m_u, lo_u, m_v, lo_v, node, h, concentrations, weights):
    """Cumulative law of (concentration, left child) given the sum y, flat; returns its total."""
    size_u, size_v = m_u.shape[0], m_v.shape[0]
    begin, end = max(0, y - size_v + 1), min(size_u, y + 1)
    middle = lo_u + lo_v + 0.5 * (size_u + size_v - 1)
    band = np.empty(size_u)
    running = 0.0
    for c in range(concentrations.shape[0]):
        row = law[c * size_u : (c + 1) * size_u]
        for i in range(size_u):
            row[i] = 0.0
        if weights[c] > 0.0:
            component = component_at(concentrations[c], node.share, h, node.upper, middle)
            if component.form == BAND:
                first, last = update_band(band, lo_u + lo_v + y, lo_u + begin, lo_u + end, component)
                for i in range(first, last):
                    row[i - lo_u] = weights[c] * band[i - first] * m_u[i - lo_u] * m_v[y - i + lo_u]
            else:
                factor = factors[c, y]
                for i in range(begin, end):
                    row[i] = factor * sides_u[c, i] * m_u[i] * sides_v[c, y - i] * m_v[y - i]
        for i in range(size_u):
            running += row[i]
            row[i] = running
    return running


@written_out
def update_split(drawn_below, p_below, drawn, p, level, below, messages_below, u, concentrations, weights, rng):
    """Both children of one node, in all draws."""
    node = level.nodes[u]
    left, right, h, draws = node.child, node.child + 1, below.spacing, drawn.shape[1]
    one, other = below.nodes[left], below.nodes[right]
    lo_u, lo_v, size_u, size_v = one.lo, other.lo, one.width, other.width
    m_u, m_v = raised(messages_below, one.start, size_u), raised(messages_below, other.start, size_v)
    size, n_components = size_u + size_v - 1, concentrations.shape[0]
    own, total = np.empty((2, size_u, size_v)), np.empty(size)
    update_own_laws(own, lo_u, size_u, lo_v, size_v, node, h, concentrations, weights)
    update_sum(total, m_u, m_v, own[0], 0, 0)
    sides_u, sides_v = np.empty((n_components, size_u)), np.empty((n_components, size_v))
    factors = np.empty((n_components, size))
    for c in range(n_components):
        if weights[c] > 0.0:
            component = component_at(concentrations[c], node.share, h, node.upper, lo_u + lo_v + 0.5 * size)
            if component.form != BAND:
                scale = update_side(sides_u[c], lo_u, component, True) + update_side(sides_v[c], lo_v, component, False)
                scale = weights[c] * math.exp(scale - update_inverse_whole(factors[c], lo_u + lo_v, component))
                for y in range(size):
                    factors[c, y] *= scale
    chosen = np.empty(draws, np.int64)
    number = np.zeros(size + 1, np.int64)
    for d in range(draws):
        chosen[d] = between_lattices(drawn[u, d], level.spacing, total, lo_u + lo_v, h, rng.random())
        number[chosen[d] + 1] += 1
    order, place = np.empty(draws, np.int64), np.empty(size, np.int64)
    for y in range(size):
        place[y] = number[y]
        number[y + 1] += number[y]
    for d in range(draws):
        order[place[chosen[d]]] = d
        place[chosen[d]] += 1
    law = np.empty(n_components * size_u)
    r = node.share
    for y in range(size):
        if number[y] == number[y + 1]:
            continue
        whole = update_law(law, y, sides_u, sides_v, factors, m_u, lo_u, m_v, lo_v, node, h, concentrations, weights)
        for k in range(number[y], number[y + 1]):
            d = order[k]
            at = first_above(law, rng.random() * whole)
            i, a = at % size_u, concentrations[at // size_u]
            i = min(max(i, y - size_v + 1), y)
            drawn_below[left, d], drawn_below[right, d] = lo_u + i, lo_v + y - i
            theta = r
            if a < math.inf:
                theta = rng.beta(a * r + (lo_u + i) * h, a * (1.0 - r) + (lo_v + y - i) * h)
            p_below[left, d], p_below[right, d] = p[u, d] * theta, p[u, d] * (1.0 - theta)


@compiled
def update_draws(drawn_below, p_below, drawn, p, level, below, messages_below, concentrations, weights, rng):
    """Counts and probabilities of all nodes below a depth, given those of its own."""
    for u in range(level.nodes.shape[0]):
        node = level.nodes[u]
        if node.two:
            update_split(drawn_below, p_below, drawn, p, level, below, messages_below, u, concentrations, weights, rng)
            continue
        child = below.nodes[node.child]
        masses = raised(messages_below, child.start, child.width)
        for d in range(drawn.shape[1]):
            at = between_lattices(drawn[u, d], level.spacing, masses, child.lo, below.spacing, rng.random())
            drawn_below[node.child, d], p_below[node.child, d] = child.lo + at, p[u, d]
