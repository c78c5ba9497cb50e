# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Logistic regression with few weights: Newton's method with dense second derivatives.

Row ``i`` has the scores ``a_i = D (U x_i + b)`` of all classes but the first, whose score is zero.
``U`` has ``M`` rows, one less than there are classes, and the *differences* ``D`` (``M x M``) tell
in which coordinates the ridge is round. With ``p_i`` the probabilities of these classes and ``e_i``
the indicator of the row's own, the objective

    sum_i s_i (log(1 + sum_k exp a_ik) - a_i,own) + 1/2 sum_j ridge_j |U_j|^2

has the gradient ``D' sum_i s_i (p_i - e_i) x_i'`` and the second derivative
``D' (sum_i s_i (diag p_i - p_i p_i') (x) x_i x_i') D``, to which the ridge is added. Sums over rows
are made before the product with ``D``. The intercept ``b`` is the weight of a column of ones,
without ridge.

**Steps.** A factor of the second derivative serves as long as each step with it shrinks the
squared Newton decrement ``g'H^-1 g`` by `FAST`; then it is computed anew. Steps that do not lower
the objective are repeated with a new factor, then shortened.

**Several ridges** are fitted one after the other, each from the solution before: the derivatives
of the loss are known there, so that only the ridge's part of them changes.

**Several weightings** of the rows, as mixtures have them, are followed by a few steps each. The
factor of an earlier weighting serves as long as steps gain what it promises.

(All of it is one class in one module: steps, passes over the rows and the factor share their
buffers, and calls between modules are several times slower.)
"""

import cython
import numpy as np

if cython.compiled:
    from cython.cimports.libc.math import exp, log, log1p
else:
    from math import exp, log, log1p

# A step with an old factor is fast if it shrinks the squared decrement by this.
FAST = cython.declare(cython.double, 0.01)
# Part of the decrease that the slope promises which a step has to gain.
SUFFICIENT = cython.declare(cython.double, 1e-4)
# A factor of another weighting serves on if the gain is about half the squared decrement.
LEAST_KEPT = cython.declare(cython.double, 0.35)
MOST_KEPT = cython.declare(cython.double, 0.7)
# Where the losses of all rows are wanted, as in mixtures, the shares change next. After a step
# there are others only if the squared decrement is above this part of the loss without weights.
ENOUGH = cython.declare(cython.double, 1e-4)
# Gains above this part of the objective are known to some digits.
VISIBLE = cython.declare(cython.double, 1e-10)
# Decrements below this part of the objective are hidden by rounding: gradients are compared.
ROUNDING = cython.declare(cython.double, 1e-12)
# Weights that differ by less count as equal.
SAME = cython.declare(cython.double, 1e-14)
MAX_HALVINGS = cython.declare(cython.Py_ssize_t, 30)
# Rows whose products are added to the second derivative together.
TOGETHER = cython.declare(cython.Py_ssize_t, 4)


@cython.cclass
class ClassNewton:
    """The loss of some rows, with room for its derivatives, which serve the fits that follow.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, q)
    codes : ndarray of intp, shape (n,)
        Class of each row, 0 to M.
    shares : ndarray of float64, shape (n,)
        Weights of the rows, which sum to one.
    differences : ndarray of float64, shape (M, M)
    has_intercept : bool
    """

    rows: cython.const[cython.double][:, ::1]
    codes: cython.const[cython.Py_ssize_t][::1]
    shares: cython.const[cython.double][::1]
    differences: cython.const[cython.double][:, ::1]
    ridge: cython.const[cython.double][::1]
    # Without an intercept its weight is held at zero.
    width: cython.Py_ssize_t
    n_free: cython.Py_ssize_t
    size: cython.Py_ssize_t
    n_pairs: cython.Py_ssize_t
    fresh: cython.bint
    formed: cython.bint
    factored: cython.bint
    has_intercept: cython.bint
    value: cython.double
    loss: cython.double
    entropy: cython.double
    # By the weights: gradient of the loss (M, q + 1), moves, trial weights, those of the last
    # fit; by class: weights and gradient.
    gradient: cython.double[:, ::1]
    move: cython.double[::1]
    classes: cython.double[:, ::1]
    by_class: cython.double[:, ::1]
    trial: cython.double[:, ::1]
    last: cython.double[:, ::1]
    last_slopes: cython.double[:, ::1]
    has_last: cython.bint
    trial_gradient: cython.double[:, ::1]
    trial_slopes: cython.double[:, ::1]
    # Probabilities of all classes but the first, at the weights and at those of a trial.
    chances: cython.double[:, ::1]
    trial_chances: cython.double[:, ::1]
    slopes: cython.double[:, ::1]
    totals: cython.double[::1]
    # Losses of all rows, and whether these are wanted.
    losses: cython.double[::1]
    trial_losses: cython.double[::1]
    complete: cython.bint
    # Second derivative of the loss: for each pair of classes one triangle of pairs of columns; with
    # one side in the coordinates of the weights; then with both.
    bends: cython.double[:, ::1]
    bent: cython.double[:, ::1]
    factor: cython.double[:, ::1]
    # Of some rows: products of columns, second derivatives by the scores.
    products: cython.double[:, ::1]
    curved: cython.double[:, ::1]

    def __init__(
        self,
        rows: cython.const[cython.double][:, ::1],
        codes: cython.const[cython.Py_ssize_t][::1],
        shares: cython.const[cython.double][::1],
        differences: cython.const[cython.double][:, ::1],
        has_intercept: cython.bint,
    ):
        self.rows = rows
        self.codes = codes
        self.shares = shares
        self.differences = differences
        self.has_intercept = has_intercept
        n = rows.shape[0]
        self.width = rows.shape[1] + 1
        self.n_free = differences.shape[0]
        self.size = self.n_free * self.width
        self.n_pairs = self.n_free * (self.n_free + 1) // 2
        n_products = self.width * (self.width + 1) // 2
        self.gradient = np.zeros((self.n_free, self.width))
        self.move = np.zeros(self.size)
        self.trial = np.zeros((self.n_free, self.width))
        self.last = np.zeros((self.n_free, self.width))
        self.has_last = False
        self.trial_gradient = np.zeros((self.n_free, self.width))
        self.trial_slopes = np.zeros((n, self.n_free))
        self.bends = np.zeros((self.n_pairs, n_products))
        self.factor = np.zeros((self.size, self.size))
        self.chances = np.zeros((n, self.n_free))
        self.trial_chances = np.zeros((n, self.n_free))
        self.classes = np.zeros((self.n_free, self.width))
        self.by_class = np.zeros((self.n_free, self.width))
        self.bent = np.zeros((self.n_free * self.n_free, n_products))
        self.products = np.zeros((TOGETHER, n_products))
        self.curved = np.zeros((self.n_pairs, TOGETHER))
        self.formed = False
        self.fresh = False
        self.factored = False
        self.slopes = np.zeros((0, self.n_free))
        self.totals = np.zeros(self.n_free + 1)
        self.losses = np.zeros(0)
        self.trial_losses = np.zeros(0)
        self.complete = False
        self.entropy = self._entropy()

    def minimise(
        self,
        ridges: cython.const[cython.double][:, ::1],
        weights: cython.double[:, :, ::1],
        slopes: cython.double[:, :, ::1],
        tol: cython.double,
        max_steps: cython.Py_ssize_t,
    ):
        """Fit the weights of all ridges.

        Parameters
        ----------
        ridges : ndarray of float64, shape (F, q)
            Positive.
        weights : ndarray of float64, shape (F, M, q + 1)
            The solutions, intercepts last; the first holds the start.
        slopes : ndarray of float64, shape (F, n, M)
            Derivatives of the loss by ``a_i`` at the solutions, times the shares.
        tol : float
            Fits end when the squared decrement is below ``tol^2`` times the loss without weights.
        max_steps : int

        Returns
        -------
        values : ndarray of float64, shape (F,)
            The objectives; NaN from the first fit on that did not converge.
        """
        values_array = np.full(ridges.shape[0], np.nan)
        values: cython.double[::1] = values_array
        with cython.nogil:
            for f in range(ridges.shape[0]):
                if f > 0:
                    weights[f] = weights[f - 1]
                    slopes[f] = slopes[f - 1]
                if not self._minimise(ridges[f], weights[f], slopes[f], f == 0, tol, max_steps):
                    break
                values[f] = self.value
        return values_array

    def improve(
        self,
        shares: cython.const[cython.double][::1],
        ridge: cython.const[cython.double][::1],
        weights: cython.double[:, ::1],
        tol: cython.double,
        max_steps: cython.Py_ssize_t,
        losses: cython.double[::1],
    ):
        """Take a few steps for another weighting of the rows, each of which lowers the objective.

        Parameters
        ----------
        shares : ndarray of float64, shape (n,)
            Not negative, with the sum one.
        ridge : ndarray of float64, shape (q,)
            Positive, the same in all calls.
        weights : ndarray of float64, shape (M, q + 1)
            Where to begin, and then the last step.
        tol : float
            As in `minimise`.
        max_steps : int
        losses : ndarray of float64, shape (n,) or (0,)
            Losses of all rows at the last step, also of those without a share, if there is room.
            Then steps end once enough is gained, and a call that goes on from there needs no
            probabilities.

        Returns
        -------
        converged : bool
        """
        converged: cython.bint = False
        n = self.rows.shape[0]
        if self.slopes.shape[0] == 0:
            self.slopes = np.zeros((n, self.n_free))
        complete: cython.bint = losses.shape[0] == n
        if complete and self.losses.shape[0] == 0:
            self.losses = np.zeros(n)
            self.trial_losses = np.zeros(n)
        with cython.nogil:
            self.shares = shares
            self.ridge = ridge
            self.entropy = self._entropy()
            self.has_last = self.has_last and complete
            self.complete = complete
            if self._is_last(weights):
                self._reweigh()
            else:
                self._begin(weights, self.slopes)
            self.value = self.loss + self._ridge_of(weights)
            if not self.formed:
                self._form()
                self.factored = False
            if not self.factored:
                self.factored = self._decompose()
            if self.factored:
                converged = self._descend(weights, self.slopes, tol, max_steps, True)
            if complete:
                self.last[:, :] = weights
                losses[:] = self.losses
            self.has_last = complete
            self.complete = False
        return bool(converged)

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _reweigh(self) -> cython.void:
        """Loss and gradient for other shares, by the losses and probabilities of the rows."""
        n_columns = self.width - 1
        self.by_class[:, :] = 0.0
        self.loss = 0.0
        for i in range(self.rows.shape[0]):
            share = self.shares[i]
            if share != 0.0:
                self.loss += share * self.losses[i]
                own = self.codes[i] - 1
                for k in range(self.n_free):
                    slope = share * (self.chances[i, k] - 1.0 if k == own else self.chances[i, k])
                    for j in range(n_columns):
                        self.by_class[k, j] += slope * self.rows[i, j]
                    self.by_class[k, n_columns] += slope
        self._turn_gradient(self.gradient)

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _entropy(self) -> cython.double:
        """Mean loss without weights: that of the shares of the classes."""
        totals = self.totals
        totals[:] = 0.0
        for i in range(self.rows.shape[0]):
            totals[self.codes[i]] += self.shares[i]
        entropy: cython.double = 0.0
        for k in range(totals.shape[0]):
            if totals[k] > 0.0:
                entropy -= totals[k] * log(totals[k])
        return entropy

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _begin(self, weights: cython.double[:, ::1], slopes: cython.double[:, ::1]) -> cython.void:
        """Loss and derivatives at the weights, or without weights if these are better."""
        self.loss = self._pass(weights, slopes, self.chances, self.gradient)
        if not self.loss + self._ridge_of(weights) <= log(1.0 + self.n_free):
            # Worse than no weights: far from there, second derivatives may vanish.
            weights[:, :] = 0.0
            self.loss = self._pass(weights, slopes, self.chances, self.gradient)
            self.formed = False
        self.losses, self.trial_losses = self.trial_losses, self.losses

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _minimise(
        self,
        ridge: cython.const[cython.double][::1],
        weights: cython.double[:, ::1],
        slopes: cython.double[:, ::1],
        first: cython.bint,
        tol: cython.double,
        max_steps: cython.Py_ssize_t,
    ) -> cython.bint:
        """Newton's method from given weights; whether it converged."""
        self.ridge = ridge
        if first and self._is_last(weights):
            # Derivatives are known there from the fit before.
            weights[:, :] = self.last
            slopes[:, :] = self.last_slopes
        elif first:
            self.formed = self.formed and self.has_last
            self.has_last = False
            self._begin(weights, slopes)
        self.value = self.loss + self._ridge_of(weights)
        if not self.formed:
            self._form()
        if not self._decompose():
            return False
        if not self._descend(weights, slopes, tol, max_steps, False):
            return False
        self.last[:, :] = weights
        self.last_slopes = slopes
        self.has_last = True
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _descend(
        self,
        weights: cython.double[:, ::1],
        slopes: cython.double[:, ::1],
        tol: cython.double,
        max_steps: cython.Py_ssize_t,
        watched: cython.bint,
    ) -> cython.bint:
        """Steps from weights whose derivatives and factor are known; whether they converged.

        watched: whether a factor that does not promise what steps gain is computed anew next time.
        """
        goal: cython.double = tol * tol * self.entropy
        before: cython.double = -1.0
        accepted: cython.bint
        for step in range(max_steps):
            decrement = self._solve(weights)
            if not decrement >= 0.0:
                return False
            if decrement <= goal:
                return True
            if self.complete and step > 0 and decrement <= ENOUGH * self.entropy:
                return False
            if not self.fresh and before >= 0.0 and decrement > FAST * before:
                decrement = self._solve_anew(weights)
                if not decrement >= 0.0:
                    return False
            before = decrement
            value = self.value
            accepted = self._step(weights, slopes, decrement)
            if watched and decrement > VISIBLE * value:
                gain = value - self.value
                self.formed = LEAST_KEPT * decrement <= gain <= MOST_KEPT * decrement
            if not accepted and not self.fresh:
                decrement = self._solve_anew(weights)
                if not decrement >= 0.0:
                    return False
                before = decrement
                accepted = self._step(weights, slopes, decrement)
            if not accepted:
                # Nothing is left to gain but rounding.
                return decrement <= ROUNDING * self.value
        return False

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _solve_anew(self, weights: cython.double[:, ::1]) -> cython.double:
        """The decrement with second derivatives at the weights; negative if they have no factor."""
        self._form()
        self.factored = self._decompose()
        return self._solve(weights) if self.factored else -1.0

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _is_last(self, weights: cython.double[:, ::1]) -> cython.bint:
        """Whether weights are those of the last fit, up to rounding."""
        if not self.has_last:
            return False
        for m in range(self.n_free):
            for j in range(self.width):
                size = self.last[m, j] if self.last[m, j] > 0.0 else -self.last[m, j]
                away = weights[m, j] - self.last[m, j]
                if away > SAME * (1.0 + size) or -away > SAME * (1.0 + size):
                    return False
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _step(
        self,
        weights: cython.double[:, ::1],
        slopes: cython.double[:, ::1],
        decrement: cython.double,
    ) -> cython.bint:
        """Go along the move as far as the objective falls enough; whether it does anywhere."""
        length: cython.double = 1.0
        hidden: cython.bint = decrement <= ROUNDING * self.value
        better: cython.bint
        for _ in range(MAX_HALVINGS if self.fresh else 1):
            for m in range(self.n_free):
                for j in range(self.width):
                    self.trial[m, j] = weights[m, j] + length * self.move[m * self.width + j]
            loss = self._pass(
                self.trial, self.trial_slopes, self.trial_chances, self.trial_gradient
            )
            value = loss + self._ridge_of(self.trial)
            if hidden:
                better = self._sq_gradient(self.trial, self.trial_gradient) < self._sq_gradient(
                    weights, self.gradient
                )
            else:
                better = value < self.value - SUFFICIENT * length * decrement
            if better:
                self.loss = loss
                self.value = value
                weights[:, :] = self.trial
                slopes[:, :] = self.trial_slopes
                self.chances, self.trial_chances = self.trial_chances, self.chances
                self.losses, self.trial_losses = self.trial_losses, self.losses
                self.gradient[:, :] = self.trial_gradient
                self.fresh = False
                return True
            if hidden:
                return False
            length *= 0.5
        return False

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _ridge_of(self, weights: cython.double[:, ::1]) -> cython.double:
        """The penalty of weights."""
        total: cython.double = 0.0
        for m in range(self.n_free):
            for j in range(self.width - 1):
                total += self.ridge[j] * weights[m, j] * weights[m, j]
        return 0.5 * total

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _sq_gradient(
        self, weights: cython.double[:, ::1], gradient: cython.double[:, ::1]
    ) -> cython.double:
        """Squared length of the gradient with the ridge."""
        total: cython.double = 0.0
        for m in range(self.n_free):
            for j in range(self.width):
                slope = self._slope(weights, gradient, m, j)
                total += slope * slope
        return total

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.inline
    @cython.nogil
    def _slope(
        self,
        weights: cython.double[:, ::1],
        gradient: cython.double[:, ::1],
        m: cython.Py_ssize_t,
        j: cython.Py_ssize_t,
    ) -> cython.double:
        """An entry of the gradient, with that of the ridge."""
        if j < self.width - 1:
            return gradient[m, j] + self.ridge[j] * weights[m, j]
        return gradient[m, j] if self.has_intercept else 0.0

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _pass(
        self,
        weights: cython.double[:, ::1],
        slopes: cython.double[:, ::1],
        chances: cython.double[:, ::1],
        gradient: cython.double[:, ::1],
    ) -> cython.double:
        """Mean loss at some weights, its slopes and probabilities by row, and its gradient."""
        n_columns = self.width - 1
        n_free = self.n_free
        self.classes[:, :] = 0.0
        for k in range(n_free):
            for m in range(n_free):
                for j in range(self.width):
                    self.classes[k, j] += self.differences[k, m] * weights[m, j]
        self.by_class[:, :] = 0.0
        total: cython.double = 0.0
        for i in range(self.rows.shape[0]):
            share = self.shares[i]
            if share == 0.0 and not self.complete:
                for k in range(n_free):
                    slopes[i, k] = 0.0
                continue
            top: cython.double = 0.0
            for k in range(n_free):
                # Two sums, as one addition has to wait for the other.
                even: cython.double = self.classes[k, n_columns]
                odd: cython.double = 0.0
                for half in range(n_columns // 2):
                    even += self.classes[k, 2 * half] * self.rows[i, 2 * half]
                    odd += self.classes[k, 2 * half + 1] * self.rows[i, 2 * half + 1]
                if n_columns % 2:
                    even += self.classes[k, n_columns - 1] * self.rows[i, n_columns - 1]
                score = even + odd
                chances[i, k] = score
                if score > top:
                    top = score
            loss = self._loss(i, top, slopes, chances)
            total += share * loss
            if self.complete:
                self.trial_losses[i] = loss
            for k in range(n_free):
                slopes[i, k] *= share
                slope = slopes[i, k]
                for j in range(n_columns):
                    self.by_class[k, j] += slope * self.rows[i, j]
                self.by_class[k, n_columns] += slope
        self._turn_gradient(gradient)
        return total

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _turn_gradient(self, gradient: cython.double[:, ::1]) -> cython.void:
        """The gradient by the weights, from that by the classes."""
        gradient[:, :] = 0.0
        for m in range(self.n_free):
            for k in range(self.n_free):
                for j in range(self.width):
                    gradient[m, j] += self.differences[k, m] * self.by_class[k, j]

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    @cython.nogil
    def _loss(
        self,
        i: cython.Py_ssize_t,
        top: cython.double,
        slopes: cython.double[:, ::1],
        chances: cython.double[:, ::1],
    ) -> cython.double:
        """Loss of a row and its slopes, from scores that become probabilities."""
        own = self.codes[i] - 1
        ahead: cython.double = top
        if own >= 0:
            ahead -= chances[i, own]
        # The largest power is one: the others are summed by themselves, and keep their digits.
        first: cython.double = exp(-top) if top > 0.0 else 1.0
        others: cython.double = first if top > 0.0 else 0.0
        largest: cython.Py_ssize_t = -1
        for k in range(self.n_free):
            if largest < 0 and top > 0.0 and chances[i, k] == top:
                largest = k
                chances[i, k] = 1.0
            else:
                chances[i, k] = exp(chances[i, k] - top)
                others += chances[i, k]
        scale = 1.0 / (1.0 + others)
        wrong: cython.double = 0.0
        for k in range(self.n_free):
            chances[i, k] *= scale
            slopes[i, k] = chances[i, k]
            if k != own:
                wrong += chances[i, k]
        if own >= 0:
            # The own class has the slope p - 1, minus the probability of all others.
            slopes[i, own] = -(wrong + first * scale)
        return log1p(others) + ahead

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _form(self) -> cython.void:
        """The second derivative of the loss at the weights of the last pass."""
        self.bends[:, :] = 0.0
        t: cython.Py_ssize_t = 0
        for i in range(self.rows.shape[0]):
            if self.shares[i] != 0.0:
                self._curve(i, t)
                t += 1
                if t == TOGETHER:
                    self._add()
                    t = 0
        if t > 0:
            for left in range(t, TOGETHER):
                for pair in range(self.n_pairs):
                    self.curved[pair, left] = 0.0
            self._add()
        self._turn()
        self.formed = True
        self.fresh = True

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _add(self) -> cython.void:
        """Add the products of some rows to the second derivative."""
        for pair in range(self.n_pairs):
            a = self.curved[pair, 0]
            b = self.curved[pair, 1]
            c = self.curved[pair, 2]
            d = self.curved[pair, 3]
            for j in range(self.bends.shape[1]):
                self.bends[pair, j] += (
                    a * self.products[0, j]
                    + b * self.products[1, j]
                    + c * self.products[2, j]
                    + d * self.products[3, j]
                )

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _curve(self, i: cython.Py_ssize_t, t: cython.Py_ssize_t) -> cython.void:
        """Second derivative of a row by its scores, and the products of its columns."""
        n_columns = self.width - 1
        share = self.shares[i]
        pair: cython.Py_ssize_t = 0
        for k in range(self.n_free):
            chance = self.chances[i, k]
            for other in range(k):
                self.curved[pair, t] = -share * chance * self.chances[i, other]
                pair += 1
            self.curved[pair, t] = share * chance * (1.0 - chance)
            pair += 1
        place: cython.Py_ssize_t = 0
        for j in range(n_columns):
            x = self.rows[i, j]
            for other in range(j + 1):
                self.products[t, place + other] = x * self.rows[i, other]
            place += j + 1
        for other in range(n_columns):
            self.products[t, place + other] = self.rows[i, other]
        self.products[t, place + n_columns] = 1.0

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _turn(self) -> cython.void:
        """``D' bends D``, in place of the second derivative by the classes."""
        n_free = self.n_free
        n_products = self.bends.shape[1]
        self.bent[:, :] = 0.0
        for m in range(n_free):
            for k in range(n_free):
                for other in range(n_free):
                    low = k if k < other else other
                    high = k + other - low
                    pair = high * (high + 1) // 2 + low
                    part = self.differences[k, m]
                    for j in range(n_products):
                        self.bent[m * n_free + other, j] += part * self.bends[pair, j]
        self.bends[:, :] = 0.0
        pair = 0
        for m in range(n_free):
            for other in range(m + 1):
                for k in range(n_free):
                    part = self.differences[k, other]
                    for j in range(n_products):
                        self.bends[pair, j] += part * self.bent[m * n_free + k, j]
                pair += 1

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _decompose(self) -> cython.bint:
        """Cholesky's factor of the second derivative with the ridge; whether there is one."""
        width = self.width
        size = self.size
        pair: cython.Py_ssize_t = 0
        for m in range(self.n_free):
            for other in range(m + 1):
                place: cython.Py_ssize_t = 0
                for j in range(width):
                    for k in range(j + 1):
                        bend = self.bends[pair, place]
                        # The part on and above the diagonal of the symmetric matrix.
                        self.factor[other * width + j, m * width + k] = bend
                        self.factor[other * width + k, m * width + j] = bend
                        place += 1
                pair += 1
        for m in range(self.n_free):
            for j in range(width - 1):
                self.factor[m * width + j, m * width + j] += self.ridge[j]
            if not self.has_intercept:
                last = m * width + width - 1
                for k in range(size):
                    if k < last:
                        self.factor[k, last] = 0.0
                    else:
                        self.factor[last, k] = 0.0
                self.factor[last, last] = 1.0
        for i in range(size):
            pivot = self.factor[i, i]
            if not pivot > 0.0:
                return False
            root = pivot**0.5
            for k in range(i, size):
                self.factor[i, k] /= root
            for j in range(i + 1, size):
                entry = self.factor[i, j]
                if entry != 0.0:
                    for k in range(j, size):
                        self.factor[j, k] -= entry * self.factor[i, k]
        return True

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _solve(self, weights: cython.double[:, ::1]) -> cython.double:
        """The Newton step by the factor, and the squared decrement."""
        width = self.width
        size = self.size
        for m in range(self.n_free):
            for j in range(width):
                self.move[m * width + j] = -self._slope(weights, self.gradient, m, j)
        decrement: cython.double = 0.0
        for i in range(size):
            self.move[i] /= self.factor[i, i]
            entry = self.move[i]
            decrement += entry * entry
            for k in range(i + 1, size):
                self.move[k] -= entry * self.factor[i, k]
        for back in range(size):
            i = size - 1 - back
            total: cython.double = self.move[i]
            for k in range(i + 1, size):
                total -= self.factor[i, k] * self.move[k]
            self.move[i] = total / self.factor[i, i]
        return decrement
