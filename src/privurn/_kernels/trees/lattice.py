"""Belief propagation over a tree of counts, on lattices: messages up from the cells, messages down from the root.

The message of a node is log P(what was measured in its subtree | its count), the law from outside is log P(count, what was
measured elsewhere or at the node itself). Each is held on a window of a lattice that its depth shares.

symbol      meaning
m, q        message from below (with the node's own measurement); law from outside (without it)
s           q times the expectation of the node's probability: what the posterior mean of p is made of
U, V        A times m of the left child, B times m of the right one, largest value 1
h           spacing of a lattice; where parent and child differ, a count between two points goes to one of them so that its
            mean stays (finer to coarser), and from a point to a triangle around it (coarser to finer); 0 stays 0
"""

import math
from typing import Any, NamedTuple

import numpy as np

from privurn._kernels._compile import compiled
from privurn._kernels.trees.components import BAND, component_at, update_band, update_inverse_whole, update_side

LOWEST = -700.0
NEGLIGIBLE = 1e-14

KEPT = 14.0
"""Counts with less than e^-14 of the largest posterior probability are left out of windows."""

NONE, LAPLACE, NORMAL = -1, 0, 1


class Level(NamedTuple):
    """The nodes of one depth: lattice `spacing`; first step, number of steps and place in the flat arrays of each window.

    `usual` and `upper`: what the node's count is about, and hardly above. `kind`, `scale`, `noisy`: its own measurement.
    `child`, `two`, `share`: as in Splits.
    """

    spacing: int
    lo: Any
    width: Any
    start: Any
    usual: Any
    upper: Any
    kind: int
    scale: float
    noisy: Any
    child: Any
    two: Any
    share: Any


@compiled
def own_log(level, u, count):
    """Log probability of a node's own noisy count, up to a constant; 0 where it has none."""
    if level.kind == NONE:
        return 0.0
    z = (level.noisy[u] - count) / level.scale
    return -abs(z) if level.kind == LAPLACE else -0.5 * z * z


@compiled
def update_own(messages, level):
    """Messages of the deepest nodes: their own measurements."""
    for u in range(level.lo.shape[0]):
        lo, start = level.lo[u], level.start[u]
        top = -math.inf
        for x in range(level.width[u]):
            messages[start + x] = own_log(level, u, (lo + x) * level.spacing)
            top = max(top, messages[start + x])
        for x in range(level.width[u]):
            messages[start + x] = max(messages[start + x] - top, LOWEST)


@compiled
def update_product(out, side, message):
    """The product of a side and a message; returns the range of what is not negligible."""
    size = out.shape[0]
    top = 0.0
    for x in range(size):
        out[x] = side[x] * message[x]
        top = max(top, out[x])
    first, last = 0, size
    while first < size and out[first] <= NEGLIGIBLE * top:
        first += 1
    while last > first and out[last - 1] <= NEGLIGIBLE * top:
        last -= 1
    return first, last


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
    below[:] = 0.0
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


@compiled
def update_with_band(total, weight, component, m_u, lo_u, m_v, lo_v):
    """Add a narrow component's part to a message on the lattice of the children's sum."""
    law = np.empty(m_u.shape[0])
    for x in range(total.shape[0]):
        whole = lo_u + lo_v + x
        begin, end = max(lo_u, whole - lo_v - m_v.shape[0] + 1), min(lo_u + m_u.shape[0], whole - lo_v + 1)
        begin, end = update_band(law, whole, begin, end, component)
        found = 0.0
        for i in range(begin, end):
            found += law[i - begin] * m_u[i - lo_u] * m_v[whole - i - lo_v]
        total[x] += weight * found


@compiled
def update_outside_with_band(for_left, for_right, s_left, s_right, weight, component, m_u, lo_u, m_v, lo_v, given, given_s):
    """Add a narrow component's part to the children's laws from outside; returns its part of the posterior's mass."""
    law = np.empty(m_u.shape[0])
    a, r, h = component.a, component.r, component.h
    mass = 0.0
    for x in range(given.shape[0]):
        if given[x] <= 0.0:
            continue
        whole = lo_u + lo_v + x
        begin, end = max(lo_u, whole - lo_v - m_v.shape[0] + 1), min(lo_u + m_u.shape[0], whole - lo_v + 1)
        begin, end = update_band(law, whole, begin, end, component)
        for i in range(begin, end):
            at_u, at_v = i - lo_u, whole - i - lo_v
            factor = weight * law[i - begin]
            theta = r if a == math.inf else (a * r + i * h) / (a + whole * h)
            for_left[at_u] += factor * m_v[at_v] * given[x]
            for_right[at_v] += factor * m_u[at_u] * given[x]
            s_left[at_u] += factor * m_v[at_v] * given_s[x] * theta
            s_right[at_v] += factor * m_u[at_u] * given_s[x] * (1.0 - theta)
            mass += factor * m_u[at_u] * m_v[at_v] * given[x]
    return mass


@compiled
def update_messages(messages, level, below, messages_below, concentrations, weights):
    """Messages of all nodes of a depth, from those one depth further down; flat logarithms, the largest of each node 0."""
    n_components = concentrations.shape[0]
    for u in range(level.lo.shape[0]):
        lo, width, start = level.lo[u], level.width[u], level.start[u]
        above = np.empty(width)
        left = level.child[u]
        if not level.two[u]:
            taken = messages_below[below.start[left] : below.start[left] + below.width[left]]
            update_up(above, lo, level.spacing, np.exp(taken), below.lo[left], below.spacing)
        else:
            right = left + 1
            lo_sum, size = below.lo[left] + below.lo[right], below.width[left] + below.width[right] - 1
            total, conv, inverse = np.zeros(size), np.empty(size), np.empty(size)
            side_u, side_v = np.empty(below.width[left]), np.empty(below.width[right])
            both_u, both_v = np.empty(below.width[left]), np.empty(below.width[right])
            m_u = np.exp(messages_below[below.start[left] : below.start[left] + below.width[left]])
            m_v = np.exp(messages_below[below.start[right] : below.start[right] + below.width[right]])
            for c in range(n_components):
                if weights[c] == 0.0:
                    continue
                component = component_at(concentrations[c], level.share[u], below.spacing, level.upper[u], lo_sum + 0.5 * size)
                if component.form == BAND:
                    update_with_band(total, weights[c], component, m_u, below.lo[left], m_v, below.lo[right])
                    continue
                scale = update_side(side_u, below.lo[left], component, True)
                scale += update_side(side_v, below.lo[right], component, False)
                scale = weights[c] * math.exp(scale - update_inverse_whole(inverse, lo_sum, component))
                from_u, to_u = update_product(both_u, side_u, m_u)
                from_v, to_v = update_product(both_v, side_v, m_v)
                conv[:] = 0.0
                for i in range(from_u, to_u):
                    factor = both_u[i]
                    for j in range(from_v, to_v):
                        conv[i + j] += factor * both_v[j]
                for i in range(from_u + from_v, to_u + to_v - 1):
                    total[i] += conv[i] * (scale * inverse[i])
            update_up(above, lo, level.spacing, total, lo_sum, below.spacing)
        top = -math.inf
        for x in range(width):
            value = (math.log(above[x]) if above[x] > 0.0 else LOWEST) + own_log(level, u, (lo + x) * level.spacing)
            messages[start + x] = value
            top = max(top, value)
        for x in range(width):
            messages[start + x] = max(messages[start + x] - top, LOWEST)


@compiled
def update_outside(q, s, odds, level, below, messages_below, q_above, s_above, concentrations, weights):
    """Laws from outside of all nodes below a depth, from those of its own nodes; flat logarithms, `s` relative to `q`.

    `odds` (node, component): the posterior probability of each component over its weight; 1 where there is no split.
    """
    n_components = concentrations.shape[0]
    for u in range(level.lo.shape[0]):
        lo, width, start = level.lo[u], level.width[u], level.start[u]
        mass, weighted = np.empty(width), np.empty(width)
        top = -math.inf
        for x in range(width):
            mass[x] = q_above[start + x] + own_log(level, u, (lo + x) * level.spacing)
            top = max(top, mass[x])
        for x in range(width):
            mass[x] = math.exp(mass[x] - top)
            weighted[x] = mass[x] * s_above[start + x]
        left = level.child[u]
        if not level.two[u]:
            size, at = below.width[left], below.start[left]
            given, given_s = np.empty(size), np.empty(size)
            update_down(given, below.lo[left], below.spacing, mass, lo, level.spacing)
            update_down(given_s, below.lo[left], below.spacing, weighted, lo, level.spacing)
            for x in range(size):
                q[at + x] = math.log(given[x]) if given[x] > 0.0 else LOWEST
                s[at + x] = given_s[x] / given[x] if given[x] > 0.0 else 0.0
            odds[u, :] = 1.0
            continue
        right = left + 1
        h = below.spacing
        lo_left, lo_right = below.lo[left], below.lo[right]
        lo_sum, size = lo_left + lo_right, below.width[left] + below.width[right] - 1
        given, given_s = np.empty(size), np.empty(size)
        update_down(given, lo_sum, h, mass, lo, level.spacing)
        update_down(given_s, lo_sum, h, weighted, lo, level.spacing)
        inverse = np.empty(size)
        side_u, side_v = np.empty(below.width[left]), np.empty(below.width[right])
        both_u, both_v = np.empty(below.width[left]), np.empty(below.width[right])
        m_left, m_right = below.start[left], below.start[right]
        m_u = np.exp(messages_below[m_left : m_left + below.width[left]])
        m_v = np.exp(messages_below[m_right : m_right + below.width[right]])
        for_left, for_right = np.zeros(below.width[left]), np.zeros(below.width[right])
        s_left, s_right = np.zeros(below.width[left]), np.zeros(below.width[right])
        corr, corr_s = np.empty(size), np.empty(size)
        scaled, scaled_s = np.empty(size), np.empty(size)
        whole_mass = 0.0
        for c in range(n_components):
            if weights[c] == 0.0:
                continue
            a, r = concentrations[c], level.share[u]
            component = component_at(a, r, h, level.upper[u], lo_sum + 0.5 * size)
            if component.form == BAND:
                found = update_outside_with_band(
                    for_left, for_right, s_left, s_right, weights[c], component, m_u, lo_left, m_v, lo_right, given, given_s
                )
                odds[u, c] = found
                whole_mass += found
                continue
            scale = update_side(side_u, lo_left, component, True) + update_side(side_v, lo_right, component, False)
            scale = weights[c] * math.exp(scale - update_inverse_whole(inverse, lo_sum, component))
            from_u, to_u = update_product(both_u, side_u, m_u)
            from_v, to_v = update_product(both_v, side_v, m_v)
            for i in range(from_u + from_v, to_u + to_v - 1):
                factor = scale * inverse[i]
                scaled[i] = given[i] * factor
                scaled_s[i] = given_s[i] * (factor if a == math.inf else factor / (a + (lo_sum + i) * h))
            found = 0.0
            n_u, n_v = to_u - from_u, to_v - from_v
            corr[:n_u] = 0.0
            corr_s[:n_u] = 0.0
            for j in range(from_v, to_v):
                factor = both_v[j]
                for i in range(n_u):
                    corr[i] += factor * scaled[from_u + i + j]
                    corr_s[i] += factor * scaled_s[from_u + i + j]
            for i in range(n_u):
                x = from_u + i
                for_left[x] += side_u[x] * corr[i]
                s_left[x] += side_u[x] * corr_s[i] * (r if a == math.inf else a * r + (lo_left + x) * h)
                found += both_u[x] * corr[i]
            corr[:n_v] = 0.0
            corr_s[:n_v] = 0.0
            for i in range(from_u, to_u):
                factor = both_u[i]
                for j in range(n_v):
                    corr[j] += factor * scaled[from_v + i + j]
                    corr_s[j] += factor * scaled_s[from_v + i + j]
            for j in range(n_v):
                x = from_v + j
                for_right[x] += side_v[x] * corr[j]
                s_right[x] += side_v[x] * corr_s[j] * (1.0 - r if a == math.inf else a * (1.0 - r) + (lo_right + x) * h)
            odds[u, c] = found
            whole_mass += found
        for c in range(n_components):
            if not whole_mass > 0.0:
                odds[u, c] = 1.0
            elif weights[c] > 0.0:
                odds[u, c] /= whole_mass * weights[c]
        for x in range(for_left.shape[0]):
            q[m_left + x] = math.log(for_left[x]) if for_left[x] > 0.0 else LOWEST
            s[m_left + x] = s_left[x] / for_left[x] if for_left[x] > 0.0 else 0.0
        for x in range(for_right.shape[0]):
            q[m_right + x] = math.log(for_right[x]) if for_right[x] > 0.0 else LOWEST
            s[m_right + x] = s_right[x] / for_right[x] if for_right[x] > 0.0 else 0.0


@compiled
def update_moments(means, deviations, shares, level, messages, q, s):
    """Posterior mean and deviation of the count of every node of a depth, and posterior mean of its probability."""
    for u in range(level.lo.shape[0]):
        lo, width, start = level.lo[u], level.width[u], level.start[u]
        top = -math.inf
        for x in range(width):
            top = max(top, messages[start + x] + q[start + x])
        total, first, second, probability = 0.0, 0.0, 0.0, 0.0
        for x in range(width):
            mass = math.exp(messages[start + x] + q[start + x] - top)
            count = (lo + x) * level.spacing - level.usual[u]
            total += mass
            first += mass * count
            second += mass * count * count
            probability += mass * s[start + x]
        means[u] = level.usual[u] + first / total
        deviations[u] = math.sqrt(max(second / total - (first / total) ** 2, 0.0))
        shares[u] = probability / total


@compiled
def update_ends(low, high, level, messages, q):
    """The first and the last count of each node that is not negligible in the posterior."""
    for u in range(level.lo.shape[0]):
        start, size = level.start[u], level.width[u]
        top = -math.inf
        for x in range(size):
            top = max(top, messages[start + x] + q[start + x])
        first, last = 0, size - 1
        while messages[start + first] + q[start + first] < top - KEPT:
            first += 1
        while messages[start + last] + q[start + last] < top - KEPT:
            last -= 1
        low[u] = (level.lo[u] + first) * level.spacing
        high[u] = (level.lo[u] + last) * level.spacing
