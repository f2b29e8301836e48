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
from privurn._kernels.trees.lattice import raised, update_posterior, update_sum, widest
from privurn._kernels.trees.split_laws import update_own_laws


@written_out
def between_lattices(x, spacing, masses, lo_below, spacing_below, uniform):
    """A point of the lattice below, given the step x of a lattice, by its masses there: how `update_up` reads a message."""
    size = masses.shape[0]
    if spacing == spacing_below:
        return min(max(x - lo_below, 0), size - 1)
    if spacing > spacing_below:
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
def first_above(cumulative, size, value):
    """The first of `size` places where a rising array is above a value; the last one where it never is."""
    low, high = 0, size - 1
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
        drawn[0, d] = root.lo + first_above(law, root.width, rng.random() * law[root.width - 1])


@written_out
def drawn_concentration(laws, i, j, concentrations, weights, uniform):
    """The concentration given both children's counts, by the law that each gives to them."""
    left, chosen = uniform * laws[0, i, j], concentrations.shape[0] - 1
    for c in range(concentrations.shape[0]):
        if weights[c] > 0.0:
            chosen = c
            left -= weights[c] * laws[c + 1, i, j]
            if left <= 0.0:
                break
    return concentrations[chosen]


@written_out
def update_split(
    drawn_below, p_below, drawn, p, level, below, messages_below, u, laws, at_u, at_v, concentrations, weights, rng
):
    """Both children of one node, in all draws; the laws of its split begin at [.., at_u, at_v]."""
    node = level.nodes[u]
    left, right, h, draws = node.child, node.child + 1, below.spacing, drawn.shape[1]
    one, other = below.nodes[left], below.nodes[right]
    lo_u, lo_v, size_u, size_v = one.lo, other.lo, one.width, other.width
    m_u, m_v = raised(messages_below, one.start, size_u), raised(messages_below, other.start, size_v)
    size = size_u + size_v - 1
    total = np.empty(size)
    if level.spacing != h:
        update_sum(total, m_u, m_v, laws[0], at_u, at_v)
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
    law = np.empty(size_u)
    r = node.share
    for y in range(size):
        if number[y] == number[y + 1]:
            continue
        begin, end = max(0, y - size_v + 1), min(size_u, y + 1)
        whole = 0.0
        for i in range(begin, end):
            whole += m_u[i] * m_v[y - i] * laws[0, at_u + i, at_v + y - i]
            law[i - begin] = whole
        for k in range(number[y], number[y + 1]):
            d = order[k]
            i = begin + first_above(law, end - begin, rng.random() * whole)
            j = y - i
            a = drawn_concentration(laws, at_u + i, at_v + j, concentrations, weights, rng.random())
            drawn_below[left, d], drawn_below[right, d] = lo_u + i, lo_v + j
            theta = r
            if a < math.inf and p[u, d] > 0.0:  # a mass that has vanished needs no share
                theta = rng.beta(a * r + (lo_u + i) * h, a * (1.0 - r) + (lo_v + j) * h)
            p_below[left, d], p_below[right, d] = p[u, d] * theta, p[u, d] * (1.0 - theta)


@compiled
def update_draws(drawn_below, p_below, drawn, p, level, below, messages_below, concentrations, weights, tables, rng):
    """Counts and probabilities of all nodes below a depth, given those of its own. `tables`: of each component by itself."""
    most = widest(level.nodes, below.nodes)
    own = np.empty((concentrations.shape[0] + 1, most, most))
    for u in range(level.nodes.shape[0]):
        node = level.nodes[u]
        child = below.nodes[node.child]
        if not node.two:
            masses = raised(messages_below, child.start, child.width)
            for d in range(drawn.shape[1]):
                at = between_lattices(drawn[u, d], level.spacing, masses, child.lo, below.spacing, rng.random())
                drawn_below[node.child, d], p_below[node.child, d] = child.lo + at, p[u, d]
            continue
        other = below.nodes[node.child + 1]
        laws, at_u, at_v = own, 0, 0
        if node.table >= 0:
            laws, at_u, at_v = tables[node.table], child.lo, other.lo
        else:
            update_own_laws(own, child.lo, child.width, other.lo, other.width, node, below.spacing, concentrations, weights)
        update_split(
            drawn_below, p_below, drawn, p, level, below, messages_below, u, laws, at_u, at_v, concentrations, weights, rng
        )
