"""Clusterings as arrays of labels 0, 1, ...: how often two rows are together, and greedy search for a central clustering.

    D, n        clusterings drawn, rows
    c           the candidate, K clusters of sizes s_k
    c_d         the d-th drawn clustering
    t_dkl       rows that are in cluster k of c and in cluster l of c_d

Both losses of a candidate against c_d are sum_k f(s_k) + sum_l f(t_d.l) - 2 sum_kl f(t_dkl), with f(x) = x^2 (Binder, every
ordered pair of rows that one has together and the other apart) or f(x) = x log x (n times the variation of information).
"""

import numpy as np

from privurn._kernels._compile import compiled


@compiled
def update_together(together, labels):
    """Add to together[i, j], i <= j, the number of clusterings (rows of labels) in which i and j are in one cluster."""
    n_draws, n = labels.shape
    for d in range(n_draws):
        own = labels[d]
        for i in range(n):
            label = own[i]
            row = together[i]
            for j in range(i, n):
                row[j] += own[j] == label


@compiled
def update_terms(terms, logarithmic):
    """terms[x] = f(x)."""
    for x in range(len(terms)):
        terms[x] = (x * np.log(x) if x > 0 else 0.0) if logarithmic else float(x) * x


@compiled
def expected_loss(candidate, labels, terms, n_clusters, n_labels):
    """Mean of the loss over the drawn clusterings."""
    n_draws, n = labels.shape
    sizes = np.zeros(n_clusters, np.int64)
    for i in range(n):
        sizes[candidate[i]] += 1
    own = 0.0
    for k in range(n_clusters):
        own += terms[sizes[k]]
    total = 0.0
    for d in range(n_draws):
        table = np.zeros((n_clusters, n_labels), np.int64)
        for i in range(n):
            table[candidate[i], labels[d, i]] += 1
        for label in range(n_labels):
            size = 0
            for k in range(n_clusters):
                size += table[k, label]
                total -= 2.0 * terms[table[k, label]]
            total += terms[size]
    return own + total / n_draws


@compiled
def update_candidate(candidate, labels, terms, most_clusters, n_labels, order):
    """Move one row after the other to the cluster (or a new one) that lowers the mean loss most; returns how many moved."""
    n_draws, n = labels.shape
    sizes = np.zeros(most_clusters, np.int64)
    table = np.zeros((most_clusters, n_draws, n_labels), np.int32)
    for i in range(n):
        k = candidate[i]
        sizes[k] += 1
        for d in range(n_draws):
            table[k, d, labels[d, i]] += 1
    moved = 0
    for place in range(n):
        i = order[place]
        old = candidate[i]
        sizes[old] -= 1
        for d in range(n_draws):
            table[old, d, labels[d, i]] -= 1
        best, least, empty_seen = old, np.inf, False
        for k in range(most_clusters):
            if sizes[k] == 0:
                if empty_seen:  # all empty clusters are alike
                    continue
                empty_seen = True
            change = terms[sizes[k] + 1] - terms[sizes[k]]
            shared = 0.0
            for d in range(n_draws):
                both = table[k, d, labels[d, i]]
                shared += terms[both + 1] - terms[both]
            change -= 2.0 * shared / n_draws
            if change < least - 1e-9 or (k == old and change <= least + 1e-9):
                best, least = k, change
        moved += best != old
        candidate[i] = best
        sizes[best] += 1
        for d in range(n_draws):
            table[best, d, labels[d, i]] += 1
    return moved
