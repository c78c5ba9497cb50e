# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Boundaries of a partition moved to the midpoints of its centres, by Newton's method.

In an optimum each boundary lies halfway between the centres on its sides. Moving the boundaries to
those midpoints, as Lloyd's algorithm does, takes a number of steps like the square of the number of
groups, because a shift of many boundaries at once dies out slowly. A step of Newton's method solves
for all of them together. Where the weights have the density ``r`` about a boundary ``b``, the
centre ``c`` of a group of weight ``w`` moves by ``r |b - c| / w`` times as far as the boundary
does, so that the system has three diagonals.
"""

import cython

# Steps at most; each has to lower the cost.
N_STEPS = cython.declare(cython.int, 10)
# The density is that of so large a part of the smaller group on either side of a boundary.
NEARBY = cython.declare(cython.Py_ssize_t, 4)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def polish(
    values: cython.double[::1],
    origin: cython.double,
    mass: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
    path: cython.longlong[::1],
    found: cython.longlong[::1],
    n_groups: cython.Py_ssize_t,
    spare: cython.double[::1],
) -> cython.double:
    """Lower the cost of a partition, given by its boundaries with both ends, and return it.

    ``found``, as long as ``path``, and ``spare``, six times as long, are work space.
    """
    cost: cython.double = partition_cost(mass, first, second, path, n_groups)
    for _ in range(N_STEPS):
        if not _step(values, origin, mass, first, path, found, n_groups, spare):
            break
        new = partition_cost(mass, first, second, found, n_groups)
        if new >= cost:
            break
        cost = new
        path[: n_groups + 1] = found[: n_groups + 1]
    return cost


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def partition_cost(
    mass: cython.double[::1],
    first: cython.double[::1],
    second: cython.double[::1],
    path: cython.longlong[::1],
    n_groups: cython.Py_ssize_t,
) -> cython.double:
    """Sum of squares of a partition in plain double precision."""
    total: cython.double = 0.0
    for group in range(n_groups):
        i = path[group]
        j = path[group + 1]
        s = first[j] - first[i]
        total += second[j] - second[i] - s * (s / (mass[j] - mass[i]))
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _step(
    values: cython.double[::1],
    origin: cython.double,
    mass: cython.double[::1],
    first: cython.double[::1],
    path: cython.longlong[::1],
    found: cython.longlong[::1],
    n_groups: cython.Py_ssize_t,
    spare: cython.double[::1],
) -> cython.bint:
    """Write the boundaries after one step to ``found``; False if some groups would be empty."""
    n: cython.Py_ssize_t = values.shape[0]
    stride: cython.Py_ssize_t = n_groups + 1
    centers: cython.double[::1] = spare[:stride]
    edges: cython.double[::1] = spare[stride : 2 * stride]
    density: cython.double[::1] = spare[2 * stride : 3 * stride]
    upper: cython.double[::1] = spare[3 * stride : 4 * stride]
    shift: cython.double[::1] = spare[4 * stride : 5 * stride]
    weight: cython.double[::1] = spare[5 * stride : 6 * stride]
    group: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    for group in range(n_groups):
        low = path[group]
        high = path[group + 1]
        weight[group] = mass[high] - mass[low]
        centers[group] = (first[high] - first[low]) / weight[group]
    for group in range(1, n_groups):
        low = path[group]
        reach = min(low - path[group - 1], path[group + 1] - low) // NEARBY + 1
        high = min(low + reach, n - 1)
        low = max(low - reach, 0)
        density[group] = (mass[high] - mass[low]) / (values[high] - values[low])
        edges[group] = 0.5 * (values[path[group] - 1] + values[path[group]]) - origin
    # Elimination forwards, substitution backwards.
    upper[0] = 0.0
    shift[0] = 0.0
    for group in range(1, n_groups):
        left = 0.5 * (edges[group] - centers[group - 1]) / weight[group - 1]
        right = 0.5 * (centers[group] - edges[group]) / weight[group]
        pivot = 1.0 - density[group] * (left + right)
        misfit = 0.5 * (centers[group - 1] + centers[group]) - edges[group]
        if group > 1:
            below = 0.5 * density[group - 1] * (centers[group - 1] - edges[group - 1])
            below /= weight[group - 1]
            pivot -= below * upper[group - 1]
            misfit += below * shift[group - 1]
        upper[group] = 0.0
        if group < n_groups - 1:
            upper[group] = 0.5 * density[group + 1] * (edges[group + 1] - centers[group])
            upper[group] /= weight[group]
        if not pivot > 0.0:
            return False
        upper[group] /= pivot
        shift[group] = misfit / pivot
    found[0] = 0
    found[n_groups] = n
    for group in range(n_groups - 1, 0, -1):
        if group < n_groups - 1:
            shift[group] += upper[group] * shift[group + 1]
        target = edges[group] + shift[group] + origin
        low = path[group - 1]
        high = path[group + 1]
        while low < high:
            middle = (low + high) // 2
            if values[middle] < target:
                low = middle + 1
            else:
                high = middle
        found[group] = low
    for group in range(n_groups):
        if found[group] >= found[group + 1]:
            return False
    return True
