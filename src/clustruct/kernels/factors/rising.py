"""Segments of levels whose means ascend, each with a least exposure.

A segment ``[i, j)`` with the mean ``m(i, j)`` may follow ``[h, i)`` if ``m(h, i) <= m(i, j)``:

    G(i, j) = C(i, j) + price + min over h with m(h, i) <= m(i, j) of G(h, i) .

Non-decreasing values that are best for given segments are the means of the segments, or some of
them are equal; then the segments joined are as good, and hold more. So segments with ascending
means are all that have to be looked at. With the segments that end at ``i`` sorted by their means,
the minimum is a running one: ``O(n^2 log n)`` operations for a price or for one more group, and
``O(n^2)`` memory.
"""

import numpy as np


class RisingSegments:
    """Best segments for 1, 2, ..., ``n_layers`` groups, or for any number if ``unlimited``.

    Values ``x``, weights ``w`` and exposures ``e`` of the levels are in their order. A segment
    needs an exposure of ``enough`` and a weight, unless it is the whole.
    """

    def __init__(self, x, w, e, enough, n_layers, price, unlimited):
        n = len(x)
        sums = [np.concatenate([[0.0], np.cumsum(s)]) for s in (w, w * x, w * x * x, e)]
        weight, first, second, exposure = (s - s[:, None] for s in sums)
        bad = np.tri(n + 1, dtype=bool) | (weight <= 0.0) | (exposure < enough)
        bad[0, n] = False
        self.price = price
        self.mean = np.divide(first, weight, out=np.zeros_like(first), where=~bad)
        self.cost = np.where(bad, np.inf, second - first * self.mean)
        # ``G`` and the start of the segment before, for one segment at first.
        total, source = np.full_like(self.cost, np.inf), np.zeros(bad.shape, dtype=np.int32)
        total[0] = self.cost[0]
        self.layers = [(total, source)]
        if unlimited:
            self._extend(total, price, total, source)
        for _ in range(n_layers - 1):
            self.layers.append((np.full_like(total, np.inf), np.zeros_like(source)))
            self._extend(self.layers[-2][0], 0.0, *self.layers[-1])
        self.costs = np.array([total[:, -1].min() for total, _ in self.layers])

    def _extend(self, before, price, total, source):
        """Write ``G`` of all segments but the first from ``before``, which may be the same."""
        for i in range(1, len(self.cost) - 1):
            order = np.argsort(self.mean[:i, i], kind="stable")
            least = np.minimum.accumulate(before[order, i])
            new = np.concatenate([[True], least[1:] < least[:-1]])
            choice = order[np.maximum.accumulate(np.where(new, np.arange(i), 0))]
            at = np.searchsorted(self.mean[order, i], self.mean[i, i + 1 :], side="right") - 1
            least = np.where(at >= 0, least[at], np.inf)
            total[i, i + 1 :] = least + self.cost[i, i + 1 :] + price
            source[i, i + 1 :] = choice[at]

    def starts(self):
        """Where the best segments start, as many as the price makes best."""
        row = int(np.argmin(self.costs + self.price * np.arange(len(self.layers))))
        j = len(self.cost) - 1
        i = int(np.argmin(self.layers[row][0][:, j]))
        starts = [i]
        while i > 0:
            i, j = int(self.layers[row][1][i, j]), i
            starts.append(i)
            row = max(row - 1, 0)
        return starts[::-1]
