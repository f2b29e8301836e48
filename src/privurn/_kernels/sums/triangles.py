"""Small dense algebra without library calls: a few rows, millions of times."""

import math

from numba.extending import register_jitable


@register_jitable
def length(v):
    """Euclidean length."""
    total = 0.0
    for each in v:
        total += each * each
    return math.sqrt(total)


@register_jitable
def update_cholesky(m, size):
    """Lower triangular factor in place; False where the matrix is not positive definite."""
    for i in range(size):
        for j in range(i + 1):
            value = m[i, j]
            for k in range(j):
                value -= m[i, k] * m[j, k]
            if i == j:
                if not value > 0.0:
                    return False
                m[i, i] = math.sqrt(value)
            else:
                m[i, j] = value / m[j, j]
    return True


@register_jitable
def update_forward(factor, size, v):
    """Solve factor x = v in place."""
    for i in range(size):
        value = v[i]
        for k in range(i):
            value -= factor[i, k] * v[k]
        v[i] = value / factor[i, i]


@register_jitable
def update_backward(factor, size, v):
    """Solve factor' x = v in place."""
    for i in range(size - 1, -1, -1):
        value = v[i]
        for k in range(i + 1, size):
            value -= factor[k, i] * v[k]
        v[i] = value / factor[i, i]


@register_jitable
def update_solution(m, size, v):
    """Solve m x = v in place by elimination, m is overwritten; returns log |det m|, -infinity where it is 0."""
    level = 0.0
    for i in range(size):
        best = i
        for k in range(i + 1, size):
            if abs(m[k, i]) > abs(m[best, i]):
                best = k
        if not abs(m[best, i]) > 0.0:
            return -math.inf
        for k in range(size):
            m[i, k], m[best, k] = m[best, k], m[i, k]
        v[i], v[best] = v[best], v[i]
        level += math.log(abs(m[i, i]))
        for k in range(i + 1, size):
            share = m[k, i] / m[i, i]
            for j in range(i, size):
                m[k, j] -= share * m[i, j]
            v[k] -= share * v[i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            v[i] -= m[i, k] * v[k]
        v[i] /= m[i, i]
    return level
