"""A problem of clustered samples: what to solve, where to start, and on which samples to search."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.design import Design, Rows
from clustruct.losses import Noise
from clustruct.objectives.samples.objective import Panel, SampleObjective
from clustruct.solvers.driver import Budget, StartedProblem
from clustruct.solvers.experts.mixture import HEAT
from clustruct.solvers.experts.starts import Screening, draw_experts, views


@dataclass(frozen=True)
class ExpertSettings:
    """Limits and numbers of starts in the search for experts."""

    # With this many samples for each weight, any start may succeed: none is sought on few columns.
    plenty: int = 20
    # Up to this many features, starts are sought on a few of them.
    screened_features: int = 1000
    # Above this many entries of X, experts are found on `subset` samples, then refined on all.
    large: int = 4_000_000
    subset: int = 20_000
    # Alternating minimisation is tried on this many samples for each weight, and on no fewer than
    # the second number; only up to `cheap` products of entries and experts, since it takes more
    # starts the more experts there are, and finds less.
    thinned: tuple[int, int] = (60, 4000)
    cheap: int = 4_000_000
    # The same for starts of mixtures in which experts have noise of their own.
    robust_samples: tuple[int, int] = (40, 1000)
    # Directions for each expert in which mixtures start if samples are plenty.
    directions: int = 2
    # Least and largest number of starts: they stop once the best objective was reached twice.
    # Without cooling, poor solutions may be reached twice as well.
    cooled_starts: tuple[int, int] = (2, 16)
    # Beside elemental starts, which find what there is to find.
    starts_beside_elements: tuple[int, int] = (2, 4)
    # From experts that are found in turn, which outliers do not attract.
    robust_starts: tuple[int, int] = (2, 6)
    relevant_starts: tuple[int, int] = (2, 3)
    plain_starts: tuple[int, int] = (8, 20)
    # A start of expectation and maximisation gets this budget; the best one then all it needs.
    short_steps: int = 50
    short_tol: float = 1e-5
    # Two objectives are the same up to this: relative for losses, in nats for likelihoods.
    same: float = 1e-3
    # Difference of information criteria that counts as strong evidence.
    strong_evidence: float = 10.0
    # The same for noise of its own for each expert. Fifty samples with as much noise as signal and
    # one scale reach 23 by chance.
    evidence_of_noise: float = 30.0
    # Part of the pooled loss that is next to nothing.
    next_to_nothing: float = 1e-3
    # Precision of the relaxation: its groups are rounded anyway.
    relaxed_tol: float = 1e-2
    # The relevance prior needs features to choose from, a dense matrix of bounded size, and this
    # many samples for each feature.
    relevance_features: tuple[int, int] = (5, 1000)
    relevance_entries: int = 5_000_000
    relevance_samples: float = 4.0
    # A ridge up to this fraction of the features' mean variance hardly shrinks anything.
    weak_ridge: float = 0.1
    # Rows of ``W`` or ``P`` are formed up to this many entries.
    most_entries: int = 200_000_000
    # Lower bounds are computed up to this many entries and columns. Elsewhere than on the host
    # every pair of outputs takes a pass.
    certified_entries: int = 20_000_000
    certified_columns: int = 2000
    certified_outputs: int = 4


SETTINGS = ExpertSettings()


@dataclass(frozen=True, eq=False)
class SampleProblem(StartedProblem[SampleObjective]):
    """A problem of clustered samples (eq:cl-smp).

    total: weight of all samples together.
    hints: experts, as weights (Q, d, K) and intercepts (Q, K), to start from before all others.
    """

    total: float = field(kw_only=True)
    hints: tuple[tuple[Floats, Floats], ...] = ()
    settings: ExpertSettings = field(default_factory=lambda: SETTINGS)

    @cached_property
    def pooled(self) -> Panel:
        """One expert for all samples."""
        shares = self.objective.response.shares
        W, intercept = self.objective.fit_experts([shares], 1e-8)
        return self.objective.panel(W, intercept)

    @cached_property
    def noise(self) -> Noise:
        """The likelihood that belongs to the loss."""
        response = self.objective.response
        none = np.zeros((1, *self.objective.shape)), np.zeros((1, response.n_outputs))
        constant = float(response.shares @ self.objective.costs(*none)[:, 0])
        return response.loss.noise(response.n_outputs, constant)

    @property
    def has_plenty(self) -> bool:
        """Whether there are enough samples for each weight that any start may succeed."""
        n, d = self.objective.design.shape
        return n >= self.settings.plenty * self.n_clusters * (d + 1)

    @cached_property
    def screening(self) -> Screening | None:
        """The search for starts on a few columns; None for classes, or if samples are plenty."""
        return None if self.has_plenty else self._screening_of_all

    @cached_property
    def _screening_of_all(self) -> Screening | None:
        """The same, also if samples are plenty."""
        n, d = self.objective.design.shape
        if n > self.settings.subset:
            return self.subset()._screening_of_all
        loss = self.objective.response.loss
        # Screening takes targets for scores, which class codes and targets of other links are not.
        if d > self.settings.screened_features or loss.coded or not loss.has_identity_link:
            return None
        return Screening(self.objective, self.total)

    def start(
        self, number: int, drawn: Callable[[int], tuple[Floats, Floats]]
    ) -> tuple[Floats, Floats]:
        """The start of that number: a hint, or after these the first one drawn, and so on."""
        past = number - len(self.hints)
        return self.hints[number] if past < 0 else drawn(past)

    def experts(self, number: int) -> tuple[Floats, Floats]:
        """The random start of that number, the same for every solver."""
        return draw_experts(
            self.objective, self.pooled, self.noise, self.n_clusters, self.rng(number)
        )

    def view(self, number: int) -> tuple[str, int] | None:
        """The columns or directions to search that start on; None for a random start.

        With many features alternating minimisation and its kin cannot leave the groups that they
        start from; mixtures can, after a while.
        """
        looks = views(self.objective.shape[0], self.n_clusters, self.total)
        turn = number % (len(looks) + 1)
        return None if turn == len(looks) or self.screening is None else looks[turn]

    def sought_experts(self, number: int) -> tuple[Floats, Floats]:
        """The start of that number, found on a few columns; every few starts a random one."""
        view = self.view(number)
        if view is None or self.screening is None:
            return self.experts(number)
        if view[0] == "in turn":
            return self.robust_experts(number)
        return self.screening.experts(*view, self.n_clusters, self.rng(number))

    def robust_experts(self, number: int) -> tuple[Floats, Floats]:
        """The start of that number, experts found in turn; random where targets are no scores."""
        screening = self._screening_of_all
        if screening is None:
            return self.experts(number)
        if number not in self._in_turn:
            tilted, rng = min(number, 1), self.rng(number)
            self._in_turn[number] = screening.experts("in turn", tilted, self.n_clusters, rng)
        return self._in_turn[number]

    @cached_property
    def _in_turn(self) -> dict[int, tuple[Floats, Floats]]:
        """Experts found in turn so far, by the number of the start: several solvers take them."""
        return {}

    def mixture_start(self, number: int) -> tuple[tuple[Floats, Floats], float]:
        """The start of that number for a mixture, and the heat that it takes.

        Only a random start needs cooling. If samples are plenty and features many, two of three
        starts are those of a mixture in few directions, which is faster and succeeds more often.
        """
        if number < len(self.hints):
            return self.hints[number], 1.0
        number -= len(self.hints)
        n_directions = self.settings.directions * self.n_clusters
        narrow = self.has_plenty and 3 * n_directions < self.objective.shape[0]
        if narrow and number % 3 < 2 and self._screening_of_all is not None:
            rng = self.rng(number)
            return self._screening_of_all.mixed_experts(n_directions, self.n_clusters, rng), 1.0
        return self.sought_experts(number), HEAT if self.view(number) is None else 1.0

    @property
    def longer(self) -> Budget:
        """The budget of a mixture that is kept: its likelihood converges slowly."""
        return replace(self.budget, tol=max(self.budget.tol, self.settings.short_tol))

    @property
    def short(self) -> Budget:
        """The budget of a start that is compared before it has converged."""
        max_iter = min(self.budget.max_iter, self.settings.short_steps)
        return replace(self.quiet, max_iter=max_iter, tol=self.longer.tol)

    def subset(self, size: int | None = None) -> "SampleProblem":
        """The same problem on some of the samples, drawn by weight and brought to the host."""
        size = self.settings.subset if size is None else size
        objective = self.objective
        drawn = draw_rows(objective.design, objective.response.shares, self.seed, size)
        smaller = objective.subset(*drawn)
        return replace(self, objective=smaller, total=float(size))

    def with_common_noise(self) -> "SampleProblem":
        """The same problem, whatever the evidence for unequal noise.

        For a part of the samples: its experts are refined by alternating minimisation, which has
        one scale of noise.
        """
        return replace(self, settings=replace(self.settings, evidence_of_noise=np.inf))

    def thinned(self, limits: tuple[int, int]) -> "SampleProblem":
        """The same problem on few samples: so many for each weight, and no fewer than a number."""
        n, d = self.objective.design.shape
        for_each, least = limits
        size = max(least, for_each * self.n_clusters * (d + 1))
        return self.subset(size) if n >= 2 * size else self

    def at_hand(self) -> "SampleProblem":
        """The same problem on the host: on all samples with weight, or on a subset of many."""
        n = self.objective.design.shape[0]
        if n > self.settings.subset:
            return self.subset()
        everyone = self.objective.subset(np.arange(n))
        weighed = np.flatnonzero(everyone.response.shares > 0.0)
        return replace(self, objective=everyone if weighed.size == n else everyone.subset(weighed))


def draw_rows(
    design: Design, shares: Rows, seed: int, size: int | None = None
) -> tuple[Labels, Floats]:
    """Indices of rows drawn by weight, ascending, and how often each was drawn."""
    n_drawn = SETTINGS.subset if size is None else size
    positions = np.random.default_rng(np.random.SeedSequence(seed)).random(n_drawn)
    index, counts = np.unique(design.locate(shares, positions), return_counts=True)
    return index, counts.astype(np.float64)
