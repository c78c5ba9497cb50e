"""Refits of fitted experts with other weights of their samples, and to given groups of these."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from clustruct._typing import Counts, Labels
from clustruct.design import load
from clustruct.estimators.intake import validate, weigh
from clustruct.estimators.offsets import attach_offset
from clustruct.solvers.experts.recipes import solve_again, solve_given


def refitted(
    model: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    parts: Sequence[Counts],
    offset: ArrayLike | None = None,
) -> Iterator[Any]:
    """Copies of a model, fitted for each part to its samples: it tells how often it has each.

    Fits start from the model's experts and from others that know nothing of these; a search keeps
    the number of experts that it has chosen. Copies have experts, objective and labels of
    all samples, and no certificate.
    """
    model = model._as_chosen()
    design, targets = validate(model, X, y, reset=False)
    given, hint, kept = attach_offset(design, offset), (model._W, model._b), model.status_.solver
    own = 1.0 if sample_weight is None else np.asarray(load(sample_weight), dtype=np.float64)
    for counts in parts:
        samples = weigh(design, targets, own * counts, given)
        problem = model._problem(samples.design, model._respond(samples), samples.total)
        problem = replace(problem, hints=(hint,), n_jobs=1, budget=problem.quiet)
        panel = solve_again(problem, model.solver, kept)
        refit = model._as_chosen()
        refit._W, refit._b, refit.n_clusters_ = panel.W, panel.intercept, panel.W.shape[0]
        refit.objective_ = panel.value
        labels = refit._labels_of_all(design, targets, given) if design.on_host else panel.labels
        refit.labels_ = design.hand_out(labels)
        yield refit


def regrouped(
    model: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    labels: Labels,
    offset: ArrayLike | None = None,
) -> Any:
    """A copy of a fitted model whose experts are the best ones for given groups of the samples.

    Samples keep their group, also where another expert would predict them better.
    """
    found, chosen = copy(model), model._as_chosen()
    design, targets = validate(found, X, y, reset=False)
    given = attach_offset(design, offset)
    samples = weigh(design, targets, sample_weight, given)
    kept = np.ones(labels.size, dtype=bool)
    if samples.design.shape[0] < labels.size:
        kept = np.asarray(load(sample_weight)) > 0.0
    used, mine = np.unique(labels[kept], return_inverse=True)
    chosen.n_clusters = used.size
    problem = chosen._problem(samples.design, found._respond(samples), samples.total)
    panel = found._set_experts(problem, solve_given(problem, samples.design.attach(mine)))
    if found._has_gate():
        found._set_gate(problem, panel)
    numbers = np.full(int(labels.max()) + 1, -1, dtype=np.intp)
    numbers[labels[kept]] = samples.design.gather(panel.labels)
    every = numbers[labels]
    if (every < 0).any():  # only samples without weight were in these groups
        every = np.where(every < 0, found._best_experts(design, targets, given), every)
    found.labels_ = design.hand_out(design.place(every))
    return found
