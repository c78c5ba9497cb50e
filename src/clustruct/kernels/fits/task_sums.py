# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Scores and second-order sums of tasks with few columns, for all tasks in one call.

Entries are sorted by task: those of task ``t`` are ``bounds[t]`` to ``bounds[t + 1]``, and they
belong to rows ``firsts[t]``, ``firsts[t] + 1`` and so on. Tasks may share rows.
"""

import cython

# Rows whose products are added together.
TOGETHER = cython.declare(cython.Py_ssize_t, 4)


def task_scores(
    rows: cython.const[cython.double][:, ::1],
    firsts: cython.const[cython.Py_ssize_t][::1],
    bounds: cython.const[cython.Py_ssize_t][::1],
    weights: cython.const[cython.double][:, ::1],
    scores: cython.double[::1],
):
    """Scores ``x_i' w_t`` of all entries, for the weights (K, width) of the tasks."""
    width = rows.shape[1]
    with cython.nogil:
        for t in range(firsts.shape[0]):
            shift = firsts[t] - bounds[t]
            for entry in range(bounds[t], bounds[t + 1]):
                # Two sums, as one addition has to wait for the other.
                even: cython.double = 0.0
                odd: cython.double = 0.0
                for half in range(width // 2):
                    even += rows[entry + shift, 2 * half] * weights[t, 2 * half]
                    odd += rows[entry + shift, 2 * half + 1] * weights[t, 2 * half + 1]
                if width % 2:
                    even += rows[entry + shift, width - 1] * weights[t, width - 1]
                scores[entry] = even + odd


def task_sums(
    rows: cython.const[cython.double][:, ::1],
    firsts: cython.const[cython.Py_ssize_t][::1],
    bounds: cython.const[cython.Py_ssize_t][::1],
    bends: cython.const[cython.double][::1],
    slopes: cython.const[cython.double][::1],
    grams: cython.double[:, :, ::1],
    crossed: cython.double[:, ::1],
):
    """Sums ``b_i x_i x_i'`` in `grams` and ``g_i x_i`` in `crossed`, for each task.

    Shapes: grams (K, width, width), crossed (K, width).
    """
    width = rows.shape[1]
    with cython.nogil:
        for t in range(firsts.shape[0]):
            for j in range(width):
                crossed[t, j] = 0.0
                for k in range(width):
                    grams[t, j, k] = 0.0
            shift = firsts[t] - bounds[t]
            entry: cython.Py_ssize_t = bounds[t]
            while entry + TOGETHER <= bounds[t + 1]:
                i = entry + shift
                for j in range(width):
                    a = bends[entry] * rows[i, j]
                    b = bends[entry + 1] * rows[i + 1, j]
                    c = bends[entry + 2] * rows[i + 2, j]
                    d = bends[entry + 3] * rows[i + 3, j]
                    crossed[t, j] += (
                        slopes[entry] * rows[i, j]
                        + slopes[entry + 1] * rows[i + 1, j]
                        + slopes[entry + 2] * rows[i + 2, j]
                        + slopes[entry + 3] * rows[i + 3, j]
                    )
                    for k in range(j + 1):
                        grams[t, j, k] += (
                            a * rows[i, k]
                            + b * rows[i + 1, k]
                            + c * rows[i + 2, k]
                            + d * rows[i + 3, k]
                        )
                entry += TOGETHER
            for last in range(entry, bounds[t + 1]):
                for j in range(width):
                    a = bends[last] * rows[last + shift, j]
                    crossed[t, j] += slopes[last] * rows[last + shift, j]
                    for k in range(j + 1):
                        grams[t, j, k] += a * rows[last + shift, k]
            for j in range(width):
                for k in range(j):
                    grams[t, k, j] = grams[t, j, k]
