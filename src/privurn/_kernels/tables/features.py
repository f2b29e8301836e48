"""Sums of a number for each cell of some marginals over records, and sums of records over those cells: gather and scatter."""

from privurn._kernels._compile import compiled


@compiled
def update_gathered(index, coefficients, out):
    """out[p, i]: the sum over s of coefficients[p, index[s, i]]."""
    for p in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[p, i] = 0.0
        for s in range(index.shape[0]):
            for i in range(out.shape[1]):
                out[p, i] += coefficients[p, index[s, i]]


@compiled
def update_scattered(index, numbers, out):
    """out[p, f]: the sum of numbers[p, i] over all s and i with index[s, i] = f."""
    for p in range(out.shape[0]):
        for f in range(out.shape[1]):
            out[p, f] = 0.0
        for s in range(index.shape[0]):
            for i in range(numbers.shape[1]):
                out[p, index[s, i]] += numbers[p, i]
