# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sorting of values together with their weights.

The exact one-dimensional kernels need sorted values but never the permutation that sorts them, so
the values are sorted directly (the weights travelling along) by a radix sort on their bit patterns.
It makes no indirect access, and beats a comparison ``argsort`` several times over.
"""

import math

import cython
import numpy as np

# Below this size the histograms cost more than NumPy's comparison sort does.
SMALL = 2048
# Arrays shorter than LONG are sorted by two digits of eleven bits, longer ones by three. They tell
# most values apart; an insertion sort settles the few that they do not.
DIGIT = 11
# Histograms of digits of eight bits are quicker for very short arrays.
SHORT_DIGIT = cython.declare(cython.int, 8)
SHORT = cython.declare(cython.Py_ssize_t, 3000)
LONG = cython.declare(cython.Py_ssize_t, 1 << 14)
NO_LOADS = np.empty(0)


def sort_values(values, weights=None):
    """Fresh arrays of the finite values in ascending order and of their weights (or None)."""
    n = values.shape[0]
    if not cython.compiled or n < SMALL:
        if weights is None:
            return np.sort(values), None
        order = np.argsort(values, kind="stable")
        return values[order], weights[order]
    loads = sorted_loads = spare_loads = NO_LOADS
    if weights is not None:
        loads, sorted_loads, spare_loads = weights, np.empty(n), np.empty(n)
    sorted_values, spare_bits = np.empty(n), np.empty(n, dtype=np.int64)
    radix_sort(
        values.view(np.int64), loads, sorted_values, sorted_values.view(np.int64), sorted_loads,
        spare_bits, spare_loads,
    )  # fmt: skip
    return sorted_values, (None if weights is None else sorted_loads)


def radix_sort(
    bits: cython.const[cython.longlong][::1],
    loads: cython.const[cython.double][::1],
    sorted_values: cython.double[::1],
    sorted_bits: cython.longlong[::1],
    sorted_loads: cython.double[::1],
    spare_bits: cython.longlong[::1],
    spare_loads: cython.double[::1],
):
    """Sort the bit patterns of doubles with their loads, if there are any.

    ``sorted_values`` and ``sorted_bits`` share their memory; the spare arrays, at least as long as
    the others, are work space.
    """
    counts: cython.longlong[::1] = np.empty(2 << DIGIT, dtype=np.int64)
    with cython.nogil:
        sort_bits(
            bits, loads, sorted_values, sorted_bits, sorted_loads, spare_bits, spare_loads, counts
        )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def sort_bits(
    bits: cython.const[cython.longlong][::1],
    loads: cython.const[cython.double][::1],
    sorted_values: cython.double[::1],
    sorted_bits: cython.longlong[::1],
    sorted_loads: cython.double[::1],
    spare_bits: cython.longlong[::1],
    spare_loads: cython.double[::1],
    counts: cython.longlong[::1],
) -> cython.void:
    """``radix_sort`` for kernels that have released the GIL; ``counts`` is work space as well."""
    n: cython.Py_ssize_t = bits.shape[0]
    bit: cython.int
    digit: cython.int = SHORT_DIGIT if n < SHORT else DIGIT
    _frame_keys(bits, counts)
    unused: cython.longlong = counts[0]
    lowest: cython.ulonglong = counts[1]
    n_bits: cython.longlong = counts[2]
    spare_bits = spare_bits[:n]
    spare_loads = spare_loads[: loads.shape[0]]
    counts = counts[: 2 << digit]
    if n < LONG:
        bit = max(0, n_bits - 2 * digit)
        _sort_by_two_digits(
            bits, loads, spare_bits, spare_loads, sorted_bits, sorted_loads, counts, unused,
            lowest, digit, bit,
        )  # fmt: skip
        bit += 2 * digit
    else:
        bit = max(0, n_bits - 3 * digit)
        _count(bits, counts, unused, lowest, digit, bit)
        _scatter(bits, loads, sorted_bits, sorted_loads, counts[: 1 << digit], unused, lowest, bit)
        bit += digit
    while True:
        while bit < n_bits:
            _sort_by_two_digits(
                sorted_bits, sorted_loads, spare_bits, spare_loads, sorted_bits, sorted_loads,
                counts, unused, lowest, digit, bit,
            )  # fmt: skip
            bit += 2 * digit
        if _insertion_sort(sorted_values, sorted_loads):
            break
        # The leading digits say too little: start again from the last one.
        bit = 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _frame_keys(
    bits: cython.const[cython.longlong][::1], frame: cython.longlong[::1]
) -> cython.void:
    """Write how keys are made of doubles, and how many bits they have, to three numbers.

    The bit pattern of a double, its sign apart, is an integer that grows with the double, and most
    of these integers belong to numbers far smaller than any at hand. They are left out, so that few
    leading bits tell much. What remains of the integer, with the sign of the double and counted
    from the lowest one, is its key.
    """
    n_bits: cython.int = 0
    signs: cython.longlong = 0
    size: cython.ulonglong
    largest: cython.ulonglong = 0
    unused: cython.ulonglong = 0
    unused -= 1
    for i in range(bits.shape[0]):
        sign = bits[i] >> 63  # 0 or -1
        signs |= sign
        size = bits[i] ^ (sign << 63)
        largest = size if size > largest else largest
        # Of zero this makes the largest integer, which does not count.
        size -= 1
        unused = size if size < unused else unused
    # The next 2^52 sizes below the least one, a halving, keep it apart from zero.
    halving: cython.ulonglong = 1
    halving <<= 52
    unused = unused - halving if largest > 0 and unused > halving else 0
    largest -= unused
    frame[0] = unused
    frame[1] = signs * cython.cast(cython.longlong, largest)
    if signs < 0:
        n_bits += 1
    while largest > 0:
        largest >>= 1
        n_bits += 1
    frame[2] = n_bits


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _key(
    bits: cython.longlong, unused: cython.longlong, lowest: cython.ulonglong
) -> cython.ulonglong:
    """Integer that grows with the double of these bits, see ``_frame_keys``."""
    sign: cython.longlong = bits >> 63
    size: cython.longlong = bits ^ (sign << 63)
    size = size - unused if size > 0 else 0
    return cython.cast(cython.ulonglong, (size ^ sign) - sign) - lowest


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sort_by_two_digits(
    bits: cython.const[cython.longlong][::1],
    loads: cython.const[cython.double][::1],
    spare_bits: cython.longlong[::1],
    spare_loads: cython.double[::1],
    sorted_bits: cython.longlong[::1],
    sorted_loads: cython.double[::1],
    counts: cython.longlong[::1],
    unused: cython.longlong,
    lowest: cython.ulonglong,
    digit: cython.int,
    first_bit: cython.int,
) -> cython.void:
    """Stable passes over two digits of the keys, by way of the spare arrays."""
    size: cython.Py_ssize_t = counts.shape[0] // 2
    _count(bits, counts, unused, lowest, digit, first_bit)
    _scatter(bits, loads, spare_bits, spare_loads, counts[:size], unused, lowest, first_bit)
    _scatter(
        spare_bits, spare_loads, sorted_bits, sorted_loads, counts[size:], unused, lowest,
        first_bit + digit,
    )  # fmt: skip


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count(
    bits: cython.const[cython.longlong][::1],
    counts: cython.longlong[::1],
    unused: cython.longlong,
    lowest: cython.ulonglong,
    digit: cython.int,
    first_bit: cython.int,
) -> cython.void:
    """Count how often each value of two digits occurs, one in either half of the counts."""
    size: cython.ulonglong = counts.shape[0] // 2
    mask: cython.ulonglong = size - 1
    counts[:] = 0
    for i in range(bits.shape[0]):
        key = _key(bits[i], unused, lowest) >> first_bit
        counts[key & mask] += 1
        counts[size + ((key >> digit) & mask)] += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scatter(
    bits: cython.const[cython.longlong][::1],
    loads: cython.const[cython.double][::1],
    new_bits: cython.longlong[::1],
    new_loads: cython.double[::1],
    counts: cython.longlong[::1],
    unused: cython.longlong,
    lowest: cython.ulonglong,
    first_bit: cython.int,
) -> cython.void:
    """One stable pass: put everything where the counts of its digit say."""
    value: cython.Py_ssize_t
    place: cython.longlong = 0
    mask: cython.ulonglong = counts.shape[0] - 1
    for value in range(counts.shape[0]):
        count = counts[value]
        counts[value] = place
        place += count
    if loads.shape[0] == 0:
        for i in range(bits.shape[0]):
            value = (_key(bits[i], unused, lowest) >> first_bit) & mask
            place = counts[value]
            counts[value] = place + 1
            new_bits[place] = bits[i]
    else:
        for i in range(bits.shape[0]):
            value = (_key(bits[i], unused, lowest) >> first_bit) & mask
            place = counts[value]
            counts[value] = place + 1
            new_bits[place] = bits[i]
            new_loads[place] = loads[i]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _insertion_sort(values: cython.double[::1], loads: cython.double[::1]) -> cython.bint:
    """Finish nearly sorted values; False, with all still there, if that takes too many moves."""
    loaded: cython.bint = loads.shape[0] > 0
    moves_left: cython.Py_ssize_t = 2 * values.shape[0]
    load: cython.double = 0.0
    for i in range(1, values.shape[0]):
        value = values[i]
        if values[i - 1] <= value:
            continue
        if loaded:
            load = loads[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            if loaded:
                loads[j] = loads[j - 1]
            j -= 1
        values[j] = value
        if loaded:
            loads[j] = load
        moves_left -= i - j
        if moves_left < 0:
            return False
    return True


def sort_uncompiled(bits, loads, sorted_values, sorted_bits, sorted_loads, *work_space):
    """``sort_bits`` for uncompiled kernels: Python's integers do not overflow as keys should."""
    values = bits.view(np.float64)
    order = np.argsort(values, kind="stable")
    sorted_values[:] = values[order]
    sorted_loads[:] = loads[order] if loads.shape[0] else loads


def scale_and_merge(
    values: cython.double[::1],
    weights: cython.double[::1],
    factor: cython.double,
    factor_too: cython.double,
):
    """Distinct ones of sorted values times two factors, with the sums of their weights.

    Also returns where each distinct value occurs first. Empty weights stand for weights of one.
    Sums and places are None when all values are distinct.
    """
    n: cython.Py_ssize_t = values.shape[0]
    distinct = np.empty(n)
    n_distinct: cython.Py_ssize_t = scale_distinct(values, factor, factor_too, distinct)
    if n_distinct == n:
        return distinct, None, None
    sums, starts = np.empty(n_distinct), np.empty(n_distinct, dtype=np.int64)
    merge_weights(values, weights, factor, factor_too, distinct, sums, starts)
    return distinct[:n_distinct].copy(), sums, starts


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def scale_distinct(
    values: cython.double[::1],
    factor: cython.double,
    factor_too: cython.double,
    distinct: cython.double[::1],
) -> cython.Py_ssize_t:
    """Write the distinct ones of sorted values times two factors; return how many they are."""
    last: cython.Py_ssize_t = 0
    before = values[0] * factor * factor_too
    distinct[0] = before
    for i in range(1, values.shape[0]):
        value = values[i] * factor * factor_too
        last += value != before
        distinct[last] = value
        before = value
    return last + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def merge_weights(
    values: cython.double[::1],
    weights: cython.double[::1],
    factor: cython.double,
    factor_too: cython.double,
    distinct: cython.double[::1],
    sums: cython.double[::1],
    starts: cython.longlong[::1],
) -> cython.void:
    """Write the weight of each distinct value and where it occurs first."""
    weighted: cython.bint = weights.shape[0] > 0
    last: cython.Py_ssize_t = 0
    starts[0] = 0
    sums[0] = 0.0
    for i in range(values.shape[0]):
        if values[i] * factor * factor_too != distinct[last]:
            last += 1
            starts[last] = i
            sums[last] = 0.0
        sums[last] += weights[i] if weighted else 1.0


def scale_factors(largest):
    """Two factors that take numbers up to ``largest`` in size below 1, and the exponent taken off.

    Powers of two; in two steps, because the power itself may be out of range.
    """
    exponent = math.frexp(largest)[1]
    half = exponent // 2
    return math.ldexp(1.0, -half), math.ldexp(1.0, half - exponent), exponent


def scale_down(array, largest):
    """The array over the power of two just above ``largest``, and the exponent of that power."""
    factor, factor_too, exponent = scale_factors(largest)
    scaled = array * factor
    scaled *= factor_too
    return scaled, exponent
