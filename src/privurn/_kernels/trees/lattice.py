"""Belief propagation over a tree of counts, on lattices: messages up from the cells, messages down from the root.

The message of a node is log P(what was measured in its subtree | its count), the law from outside is log P(count, what was
measured elsewhere or at the node itself). Each is held on a window of a lattice that its depth shares.

symbol      meaning
m, q        message from below (with the node's own measurement); law from outside (without it)
u, v        the left child and the right one;  K: the law of the split, (i, j) from the steps lo_u and lo_v on
h           spacing of a lattice; where parent and child differ, a count between two points goes to one of them so that its
            mean stays (finer to coarser), and from a point to a triangle around it (coarser to finer); 0 stays 0
"""

import math
from typing import Any, NamedTuple

import numpy as np

from privurn._kernels._compile import compiled, written_out
from privurn._kernels.trees.split_laws import update_own_laws

LOWEST = -700.0

KEPT = math.exp(-14.0)
"""Counts with less than this part of the largest posterior probability are left out of windows."""

NONE, LAPLACE, NORMAL = -1, 0, 1


NODE = np.dtype(
    [(name, np.int64) for name in ("lo", "width", "start", "child", "table")]
    + [(name, np.float64) for name in ("usual", "upper", "noisy", "share")]
    + [("two", np.bool_)],
    align=True,
)
"""Of a node: first step, number of steps and place in the flat arrays of its window; first child, whether there are two, and
the share of the first, as in Splits; number of the table of its split's law, -1 where it has none; what its count is about
(`usual`) and hardly above; its own noisy count. One array of these compiles much faster than ten."""


class Level(NamedTuple):
    """The nodes of one depth, the spacing of its lattice, and the noise of its measurements."""

    spacing: int
    kind: int
    scale: float
    nodes: Any


@written_out
def own_log(kind, scale, noise):
    """Log probability of noise, up to a constant; 0 where there is no measurement."""
    if kind == NONE:
        return 0.0
    return -abs(noise) / scale if kind == LAPLACE else -0.5 * (noise / scale) ** 2


@written_out
def update_scaled(messages, level, u):
    """Add a node's own measurement to the logarithms of its window, and make the largest of them 0."""
    node = level.nodes[u]
    top = -math.inf
    for x in range(node.width):
        at = node.start + x
        messages[at] += own_log(level.kind, level.scale, node.noisy - (node.lo + x) * level.spacing)
        top = max(top, messages[at])
    for x in range(node.start, node.start + node.width):
        messages[x] = max(messages[x] - top, LOWEST)


@compiled
def update_own(messages, level):
    """Messages of the deepest nodes: their own measurements."""
    for x in range(messages.shape[0]):
        messages[x] = 0.0
    for u in range(level.nodes.shape[0]):
        update_scaled(messages, level, u)


@compiled
def update_up(above, lo, spacing, below, lo_below, spacing_below):
    """A message (not logarithm) on the lattice of the children's sum, read on the node's own."""
    size = below.shape[0]
    if spacing >= spacing_below:
        ratio = spacing // spacing_below
        for x in range(above.shape[0]):
            at = (lo + x) * ratio - lo_below
            total = 0.0
            reach = ratio - 1 if lo + x > 0 else 0
            for step in range(-reach, reach + 1):
                if 0 <= at + step < size:
                    total += (ratio - abs(step)) * below[at + step]
            above[x] = total / (ratio * ratio) if reach > 0 else total / ratio
    else:
        ratio = spacing_below // spacing
        for x in range(above.shape[0]):
            at, part = (lo + x) // ratio - lo_below, (lo + x) % ratio / ratio
            total = (1.0 - part) * below[at] if 0 <= at < size else 0.0
            if part > 0.0 and 0 <= at + 1 < size:
                total += part * below[at + 1]
            above[x] = total


@compiled
def update_down(below, lo_below, spacing_below, above, lo, spacing):
    """Masses on the node's lattice, moved to that of its children's sum: the transpose of `update_up`."""
    size = below.shape[0]
    for x in range(size):
        below[x] = 0.0
    if spacing >= spacing_below:
        ratio = spacing // spacing_below
        for x in range(above.shape[0]):
            at = (lo + x) * ratio - lo_below
            reach = ratio - 1 if lo + x > 0 else 0
            each = above[x] / (ratio * ratio) if reach > 0 else above[x] / ratio
            for step in range(-reach, reach + 1):
                if 0 <= at + step < size:
                    below[at + step] += (ratio - abs(step)) * each
    else:
        ratio = spacing_below // spacing
        for x in range(above.shape[0]):
            at, part = (lo + x) // ratio - lo_below, (lo + x) % ratio / ratio
            if 0 <= at < size:
                below[at] += (1.0 - part) * above[x]
            if part > 0.0 and 0 <= at + 1 < size:
                below[at + 1] += part * above[x]


@written_out
def raised(messages, start, width):
    """Numbers of a window whose logarithms are given."""
    out = np.empty(width)
    for x in range(width):
        out[x] = math.exp(messages[start + x])
    return out


@written_out
def update_logs(messages, start, values):
    """Logarithms of the numbers of a window."""
    for x in range(values.shape[0]):
        messages[start + x] = math.log(values[x]) if values[x] > 0.0 else LOWEST


@written_out
def widest(nodes, below):
    """The widest window of a child whose parent's split has no table; at least 1."""
    most = 1
    for u in range(nodes.shape[0]):
        if nodes[u].two and nodes[u].table < 0:
            most = max(most, below[nodes[u].child].width, below[nodes[u].child + 1].width)
    return most


@written_out
def update_sum(total, m_u, m_v, mixed, at_u, at_v):
    """A message on the lattice of the children's sum; the law of the split begins at [at_u, at_v]."""
    for x in range(total.shape[0]):
        total[x] = 0.0
    for i in range(m_u.shape[0]):
        factor = m_u[i]
        for j in range(m_v.shape[0]):
            total[i + j] += factor * m_v[j] * mixed[at_u + i, at_v + j]


@compiled
def update_messages(messages, level, below, messages_below, concentrations, weights, tables):
    """Messages of all nodes of a depth, from those one depth further down; flat logarithms, the largest of each node 0."""
    most = widest(level.nodes, below.nodes)
    own = np.empty((2, most, most))
    for u in range(level.nodes.shape[0]):
        node = level.nodes[u]
        above = np.empty(node.width)
        left = below.nodes[node.child]
        total = raised(messages_below, left.start, left.width)
        lo = left.lo
        if node.two:
            right = below.nodes[node.child + 1]
            m_u, m_v = total, raised(messages_below, right.start, right.width)
            total = np.empty(left.width + right.width - 1)
            laws, at_u, at_v = own, 0, 0
            if node.table >= 0:
                laws, at_u, at_v = tables[node.table], left.lo, right.lo
            else:
                update_own_laws(own, left.lo, left.width, right.lo, right.width, node, below.spacing, concentrations, weights)
            update_sum(total, m_u, m_v, laws[0], at_u, at_v)
            lo += right.lo
        update_up(above, node.lo, level.spacing, total, lo, below.spacing)
        update_logs(messages, node.start, above)
        update_scaled(messages, level, u)


@written_out
def given_above(level, u, q_above):
    """What is known of a node's count but for what lies below it, largest value 1."""
    node = level.nodes[u]
    mass = np.empty(node.width)
    top = -math.inf
    for x in range(node.width):
        noise = node.noisy - (node.lo + x) * level.spacing
        mass[x] = q_above[node.start + x] + own_log(level.kind, level.scale, noise)
        top = max(top, mass[x])
    for x in range(node.width):
        mass[x] = math.exp(mass[x] - top)
    return mass


@written_out
def update_both(for_u, for_v, m_u, m_v, given, mixed, at_u, at_v):
    """What is known of each child from outside: from its sibling and from the sum."""
    for j in range(m_v.shape[0]):
        for_v[j] = 0.0
    for i in range(m_u.shape[0]):
        found = 0.0
        for j in range(m_v.shape[0]):
            value = mixed[at_u + i, at_v + j] * given[i + j]
            found += value * m_v[j]
            for_v[j] += value * m_u[i]
        for_u[i] = found


@written_out
def asked_for(m_u, m_v, given, law, at_u, at_v):
    """The posterior's mass under one component, up to a factor that all of them share."""
    found = 0.0
    for i in range(m_u.shape[0]):
        inner = 0.0
        for j in range(m_v.shape[0]):
            inner += law[at_u + i, at_v + j] * m_v[j] * given[i + j]
        found += m_u[i] * inner
    return found


@compiled
def update_outside(q, odds, level, below, messages_below, q_above, concentrations, weights, tables):
    """Laws from outside of all nodes below a depth, from those of its own nodes; flat logarithms.

    `odds` (node, component), where it has rows: the posterior probability of each component over its weight; 1 without a split.
    """
    most, n_components = widest(level.nodes, below.nodes), concentrations.shape[0]
    own = np.empty((2 if odds.shape[0] == 0 else n_components + 1, most, most))
    for u in range(level.nodes.shape[0]):
        node = level.nodes[u]
        mass = given_above(level, u, q_above)
        left = below.nodes[node.child]
        for_u = np.empty(left.width)
        if not node.two:
            update_down(for_u, left.lo, below.spacing, mass, node.lo, level.spacing)
            update_logs(q, left.start, for_u)
            for c in range(n_components):
                if odds.shape[0] > 0:
                    odds[u, c] = 1.0
            continue
        right = below.nodes[node.child + 1]
        m_u, m_v = raised(messages_below, left.start, left.width), raised(messages_below, right.start, right.width)
        given, for_v = np.empty(left.width + right.width - 1), np.empty(right.width)
        update_down(given, left.lo + right.lo, below.spacing, mass, node.lo, level.spacing)
        laws, at_u, at_v = own, 0, 0
        if node.table >= 0:
            laws, at_u, at_v = tables[node.table], left.lo, right.lo
        else:
            update_own_laws(own, left.lo, left.width, right.lo, right.width, node, below.spacing, concentrations, weights)
        update_both(for_u, for_v, m_u, m_v, given, laws[0], at_u, at_v)
        update_logs(q, left.start, for_u)
        update_logs(q, right.start, for_v)
        if odds.shape[0] == 0:
            continue
        whole = 0.0
        for c in range(n_components):
            odds[u, c] = asked_for(m_u, m_v, given, laws[c + 1], at_u, at_v) if weights[c] > 0.0 else 0.0
            whole += weights[c] * odds[u, c]
        for c in range(n_components):
            odds[u, c] = odds[u, c] / whole if whole > 0.0 else 1.0


@written_out
def update_posterior(out, node, messages, q):
    """Posterior masses of a window, the largest 1."""
    top = -math.inf
    for x in range(node.width):
        out[x] = messages[node.start + x] + q[node.start + x]
        top = max(top, out[x])
    for x in range(node.width):
        out[x] = math.exp(out[x] - top)


@compiled
def update_moments(means, deviations, low, high, level, messages, q):
    """Posterior mean and deviation of the count of every node of a depth, and its first and last that are not negligible."""
    for u in range(level.nodes.shape[0]):
        node = level.nodes[u]
        masses = np.empty(node.width)
        update_posterior(masses, node, messages, q)
        total, first, second = 0.0, 0.0, 0.0
        begin, end = node.width, 0
        for x in range(node.width):
            count = (node.lo + x) * level.spacing - node.usual
            total += masses[x]
            first += masses[x] * count
            second += masses[x] * count * count
            if masses[x] >= KEPT:
                begin, end = min(begin, x), x
        means[u] = node.usual + first / total
        deviations[u] = math.sqrt(max(second / total - (first / total) ** 2, 0.0))
        low[u] = (node.lo + begin) * level.spacing
        high[u] = (node.lo + end) * level.spacing
