"""The number of groups of a mixture over tasks, by evidence.

Groups are added one by one as long as the evidence grows. The centroids are integrated out, so that
more of them cost what they should; shares and variances cost as in the criterion of Schwarz.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import lgamma

import numpy as np

from clustruct._interrupts import asked
from clustruct._progress import counting
from clustruct._typing import Floats, Labels
from clustruct.grouping.constraints import Clustered
from clustruct.losses.noise import UnitNoise
from clustruct.objectives.tasks.data import Models, SquaredData
from clustruct.objectives.tasks.evidence import Form, Quadratics, TaskLikelihood
from clustruct.solvers.driver import Budget, Run, drive
from clustruct.solvers.tasks.mixture import Guess, Mixed, TaskMixture, hard


@dataclass(frozen=True)
class CountingSettings:
    """Numbers of starts and steps."""

    # Steps after which the most likely start is chosen.
    short: int = 6
    # Random groups to start from, besides those by k-means.
    random: int = 1
    # Groups that are split in two to start from, the largest first; None for all of them.
    splits: int | None = None
    # Nats by which the evidence must grow for one more group: odds of 20 to 1. On planted problems
    # a true group adds 6 or more, and a false one up to 2.3.
    margin: float = 3.0
    # Numbers of groups that are tried beyond one that paid: two groups may not pay where three do.
    ahead: int = 2
    # Spreads that a start begins with, as a part of those with one group less.
    shrink: float = 0.5
    # Part of the tasks that a wide group starts with.
    far: float = 0.1


SETTINGS = CountingSettings()
Fitted = Run[Mixed]


@dataclass(frozen=True, eq=False)
class Counting:
    """Mixtures with one group, two groups and so on.

    inputs: evidence of the inputs of each task, none or one block.
    most: largest number of groups.
    n_starts: random starts for each number of groups; None for the default.
    guess: variances of one group to start from.
    margin: nats by which the evidence must grow for one more group.
    hints: groups to start from, where there are as many of them.
    """

    likelihood: TaskLikelihood
    inputs: tuple[Quadratics, ...]
    most: int
    budget: Budget
    seed: int
    n_starts: int | None = None
    guess: Guess | None = None
    margin: float = SETTINGS.margin
    hints: tuple[Labels, ...] = ()
    settings: CountingSettings = SETTINGS

    def runs(self) -> Iterator[Fitted]:
        """The fits with one group, two groups and so on, the last of which are no better."""
        n_tasks = self.likelihood.data.n_tasks
        hinted = max((int(labels.max()) + 1 for labels in self.hints), default=0)
        one = best = last = self._drive(np.ones((1, n_tasks)), self.guess)
        yield one
        if not any(block.centers.size for block in one.state.blocks):
            return  # such as inputs that are constant, which tell nothing
        for count in range(2, min(self.most, n_tasks) + 1):
            if asked():
                return
            last = self._best_start(count, one.state, last.state)
            yield last
            if self._pays(last, best):
                best = last
            elif count - best.state.n_groups >= self.settings.ahead and count > hinted:
                return

    def best(self) -> Fitted:
        """The number of groups with the largest evidence, each with its own spread if that pays.

        Every group has tasks for which it is the most likely one.
        """
        most, runs = min(self.most, self.likelihood.data.n_tasks), list[Fitted]()
        with counting("numbers of groups", most, at_most=True, measure="evidence") as count:
            for run in self.runs():
                runs.append(run)
                count.tick(max(self.evidence(each.state) for each in runs))
        run = self.untied(self.chosen(runs, self.most))
        while (used := np.unique(run.state.shares.argmax(axis=0))).size < run.state.n_groups:
            shares = run.state.shares[used]
            run = self._drive(shares / shares.sum(axis=0), run.state.guess, form=run.state.form)
        return run

    def chosen(self, runs: list[Fitted], most: int) -> Fitted:
        """The most of up to so many groups that pay, compared with fewer that do."""
        best, *others = runs
        for run in others:
            if run.state.n_groups <= most and self._pays(run, best):
                best = run
        return best

    def _pays(self, more: Fitted, fewer: Fitted) -> bool:
        """Whether more groups are as likely as it takes, and all of them have tasks."""
        used = np.unique(more.state.shares.argmax(axis=0)).size
        added = more.state.n_groups - fewer.state.n_groups
        gain = self.evidence(more.state) - self.evidence(fewer.state)
        return used == more.state.n_groups and gain > added * self.margin

    def of_inputs(self) -> "Counting":
        """The same for the inputs alone: a mixture of tasks without weights and labels."""
        count = self.likelihood.data.n_tasks
        none = np.zeros((count, 0))
        nothing = Models(np.arange(count), np.zeros(count), np.zeros((count, 0, 0)), none)
        data = SquaredData(nothing, fit_intercept=False)
        return replace(
            self, likelihood=TaskLikelihood(data, UnitNoise(1, 1.0), 1.0, none), guess=None
        )

    def untied(self, run: Fitted) -> Fitted:
        """The same groups with spreads of the form that is most likely."""
        if run.state.n_groups == 1:
            return run
        others = [
            self._drive(run.state.shares, run.state.guess, form=form)
            for form in (Form.SAME, Form.OWN)
            if form is not run.state.form
        ]
        best = max([run, *others], key=lambda run: self.evidence(run.state))
        return best if best is run else replace(best, trace=run.trace + best.trace)

    def evidence(self, state: Mixed) -> float:
        """``F`` less what shares and variances cost, plus the ways to number the groups."""
        count = state.n_groups
        if count == 1:
            return state.bound
        n_tasks = self.likelihood.data.n_tasks
        shapes = [block.centers.shape for block in state.blocks if block.free.size]
        numbers = count - 1 + len(shapes)  # proportions, and variances of the centroids
        numbers += sum(state.form.numbers(*shape) for shape in shapes)
        return state.bound - 0.5 * numbers * float(np.log(n_tasks)) + lgamma(count + 1)

    def solver(
        self,
        shares: Floats,
        guess: Guess | None,
        *,
        form: Form = Form.SAME,
        known: bool = False,
    ) -> TaskMixture:
        """The solver for given responsibilities to start from."""
        return TaskMixture(self.likelihood, shares, guess, self.inputs, form=form, known=known)

    def _drive(
        self,
        shares: Floats,
        guess: Guess | None,
        budget: Budget | None = None,
        form: Form = Form.SAME,
    ) -> Fitted:
        return drive(self.solver(shares, guess, form=form), budget or self.budget)

    def _best_start(self, count: int, one: Mixed, last: Mixed) -> Fitted:
        """The most likely of several short runs, continued."""
        short = replace(self.budget, max_iter=self.settings.short, quiet=True)
        largest = int(last.proportions.argmax())
        spreads = [
            replace(block, spread=SETTINGS.shrink * block.spread[largest % len(block.spread)][None])
            for block in last.blocks
        ]
        near = replace(last.guess, blocks=tuple(spreads))
        tries = [
            self._drive(hard(labels, count), near, short, last.form)
            for labels in self._labels(count, one, last)
        ]
        if last.n_groups > 1:
            tries.append(self._drive(_far(last), last.guess, short, Form.SCALED))
        state = max(tries, key=lambda run: self.evidence(run.state)).state
        return self._drive(state.shares, state.guess, form=state.form)

    def _labels(self, count: int, one: Mixed, last: Mixed) -> Iterator[Labels]:
        """Groups to start from: hints, k-means, groups split in two, and random ones."""
        yield from (labels for labels in self.hints if int(labels.max()) + 1 == count)
        for rows in _positions(one):
            yield Clustered(count).project(rows).labels
        if last.n_groups > 1:
            rows, before = _positions(last)[0], last.shares.argmax(axis=0)
            largest_first = np.argsort(-np.bincount(before, minlength=last.n_groups), kind="stable")
            for q in sorted(largest_first[: self.settings.splits]):
                mine = np.flatnonzero(before == q)
                if mine.size > 1:
                    labels = before.copy()
                    halves = Clustered(2).project(rows[mine]).labels
                    labels[mine[halves == 1]] = last.n_groups
                    yield labels
        n_tasks = one.shares.shape[1]
        for number in range(self.settings.random if self.n_starts is None else self.n_starts):
            key = np.random.SeedSequence(self.seed, spawn_key=(count, number))
            yield np.random.default_rng(key).permutation(np.arange(n_tasks) % count)


def _far(state: Mixed) -> Floats:
    """Responsibilities with one more group, of the tasks that call most for a wider spread.

    The derivative of a task's evidence by the logarithm of the scale of its spread is
    ``1/2 sum_j s_j (u_j^2 - H_jj)`` with the slopes ``u``, whose terms vary like ``s_j H_jj``.
    """
    slopes, sizes = np.zeros(state.shares.shape), np.zeros(state.shares.shape)
    for block, rows in zip(state.blocks, state.integrated, strict=True):
        bends, s = np.einsum("gtii->gti", rows.H), block.spread[:, None]
        slopes += (s * (np.square(rows.slopes(block.centers)) - bends)).sum(axis=2)
        sizes += np.square(s * bends).sum(axis=2)
    calls = (state.shares * slopes / np.sqrt(np.maximum(sizes, np.finfo(float).tiny))).sum(axis=0)
    count = max(1, round(SETTINGS.far * calls.size))
    far = np.zeros(calls.size)
    far[np.argsort(-calls, kind="stable")[:count]] = 1.0
    return np.vstack([state.shares * (1.0 - far), far])


def _positions(state: Mixed) -> tuple[Floats, ...]:
    """Tasks as rows for k-means: likeliest weights, the same in units of the spread, slopes."""
    weights, scaled, slopes = [], [], []
    for block, rows in zip(state.blocks, state.integrated, strict=True):
        mine = np.einsum("qt,qti->ti", state.shares, rows.weights(block.centers))
        slope = np.einsum("qt,qti->ti", state.shares, rows.slopes(block.centers))
        bends = np.einsum("gtii->i", rows.H) / rows.H.shape[0]
        weights.append(mine)
        scaled.append((mine - block.centers.mean(axis=0)) / np.sqrt(block.spread.mean(axis=0)))
        slopes.append(slope / np.sqrt(np.maximum(bends, np.finfo(float).tiny)))
    return tuple(np.hstack(parts) for parts in (weights, scaled, slopes))
