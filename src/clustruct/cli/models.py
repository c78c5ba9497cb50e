"""Which model the options of the command line mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct.cli.messages import BadUsage
from clustruct.estimators.columns.factors import Factor

# Groups to try besides one for each block: fewer large numbers, which differ less from each other.
MORE_GROUPS = (0, 1, 2, 3, 4, 5, 7, 9, 11, 14)
MOST_EXPERTS, MOST_TASK_GROUPS = 8, 6
N_FOLDS = 5


@dataclass(frozen=True)
class Settings:
    """Options of the command line about the model; None leaves a choice to the search."""

    use: str = "features"  # "features", "samples" or "tasks"
    clusters: Sequence[int] | None = None  # numbers of groups to try
    nonzero: int | None = None  # most features with a weight; 0 for no limit
    alpha: float | None = None
    loss: str | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)  # of the loss
    seed: int = 0
    # Whether the best mean score is chosen, instead of the fewest groups about as good
    best: bool = False
    price: float | str | None = None  # of a group of levels, or "auto"

    @property
    def rule(self) -> str:
        """The rule by which a search chooses."""
        return "best" if self.best else "fewest"


def choose_model(
    settings: Settings,
    kind: str,
    shape: tuple[int, int],
    y: NDArray[Any],
    blocks: NDArray[Any] | None,
    n_tasks: int | None = None,
    factors: Mapping[str, Factor] | None = None,
) -> Any:
    """Choose the model, not fitted, for a matrix of some `shape` and its targets.

    For features, `blocks` is the block of each column in which weights are shared, and `factors`
    are the columns of a frame whose levels share weights.
    """
    common = _common(settings)
    if factors:
        return _of_factors(settings, kind, y, factors, common)
    if settings.use == "features":
        return _of_features(settings, kind, shape[1], y, blocks, common)
    if settings.nonzero:
        raise BadUsage(f"--nonzero goes with --features only, not with --{settings.use}.")
    if settings.use == "samples":
        if settings.best:
            raise BadUsage(
                "--best goes with --features and --tasks, not with --samples: the number of "
                "experts is the one with the best BIC. Leave it out."
            )
        return _of_samples(settings, kind, y, common)
    return _of_tasks(settings, kind, n_tasks or 1, y, common)


def _common(settings: Settings) -> dict[str, Any]:
    """Parameters of all models."""
    loss = {} if settings.loss is None else {"loss": settings.loss, **settings.parameters}
    return {"random_state": settings.seed, **loss}


def plain_model(
    settings: Settings, kind: str, factors: Mapping[str, Factor], n_clusters: int, alpha: float
) -> Any:
    """A model of factors without a search."""
    model, common = _load("features", kind, False), _common(settings)
    return model(n_clusters, alpha=alpha, categorical_features=None, factors=factors, **common)


def _load(use: str, kind: str, search: bool) -> Any:
    """The class of a model."""
    module = "search_models" if search else "models"
    name = f"{use[:-1].title()}Cluster{'Regressor' if kind == 'regression' else 'Classifier'}"
    found = import_module(f"clustruct.estimators.{use}.{module}")
    return getattr(found, f"{name}CV" if search else name)


def _of_features(
    settings: Settings,
    kind: str,
    n_features: int,
    y: NDArray[Any],
    blocks: NDArray[Any] | None,
    common: dict[str, Any],
) -> Any:
    if settings.nonzero:
        blocks = None  # there is no exact projection for both
    least = 1 if blocks is None else len(set(blocks))
    counts: list[int | None]
    if settings.clusters is None:
        counts = _numbers_of_groups(n_features, blocks)
    else:
        counts = [q for q in settings.clusters if q >= least]
        if not counts:
            raise BadUsage(
                f"--clusters {max(settings.clusters)} is too few: the columns are in {least} "
                "blocks (the numbers, and each category or text), which share no weights. Give at "
                f"least {least}, or --nonzero, which does without blocks."
            )
    common["blocks"] = None if blocks is None else blocks.astype(str)
    nonzero: Any = settings.nonzero or None
    if len(counts) == 1 and settings.alpha is not None and settings.nonzero is not None:
        model = _load("features", kind, False)
        return model(counts[0], alpha=settings.alpha, n_nonzero=nonzero, **common)
    if settings.nonzero is None and blocks is None and settings.clusters is None:
        # All features or a quarter of them; all where there are few.
        nonzero = None if n_features < 12 else (None, n_features // 4)
    alphas = "auto" if settings.alpha is None else (settings.alpha,)
    model = _load("features", kind, True)
    common.update(cv=_n_folds(kind, y), rule=settings.rule)
    return model(tuple(counts), alphas=alphas, n_nonzero=nonzero, **common)


def _of_factors(
    settings: Settings,
    kind: str,
    y: NDArray[Any],
    factors: Mapping[str, Factor],
    common: dict[str, Any],
) -> Any:
    """A price for each group, or numbers of groups in all factors together."""
    counts, price, alpha = settings.clusters, settings.price, settings.alpha
    if counts is not None and price is not None:
        raise BadUsage("--clusters and --price both say how many groups there are. Give one.")
    if counts is not None and max(counts) < len(factors):
        raise BadUsage(
            f"--clusters {max(counts)} is too few: each of the {len(factors)} factors has a group "
            f"at least. Give {len(factors)} or more."
        )
    if alpha is not None and counts is not None and len(counts) == 1:
        return plain_model(settings, kind, factors, counts[0], alpha)
    common.update(categorical_features=None, factors=factors)
    if alpha is not None and isinstance(price, float):
        return _load("features", kind, False)(alpha=alpha, price=price, **common)
    common.update(cv=_n_folds(kind, y), rule=settings.rule)
    alphas = "auto" if alpha is None else (alpha,)
    model = _load("features", kind, True)
    if counts is not None:
        return model(tuple(counts), prices=None, alphas=alphas, **common)
    return model(prices="auto" if price is None else price, alphas=alphas, **common)


def _numbers_of_groups(n_features: int, blocks: NDArray[Any] | None) -> list[int | None]:
    """Numbers of groups to choose from; the last, None, is a weight for every feature.

    With more groups than half the features there is hardly a grouping, so that no more are tried;
    a block may have two groups however small it is, as a category of two levels needs both.
    """
    sizes = [n_features] if blocks is None else np.unique(blocks, return_counts=True)[1].tolist()
    most = sum(max(min(2, size), (size + 1) // 2) for size in sizes)
    numbers = [len(sizes) + more for more in MORE_GROUPS]
    grouped = [count for count in numbers if count <= most and count < n_features]
    return [*grouped, None] if grouped else [n_features]


def _of_samples(settings: Settings, kind: str, y: NDArray[Any], common: dict[str, Any]) -> Any:
    most = MOST_EXPERTS if kind == "regression" else min(MOST_EXPERTS, np.unique(y).size - 1)
    counts = list(range(1, most + 1)) if settings.clusters is None else list(settings.clusters)
    if kind == "classification" and min(counts) > most:
        raise BadUsage(
            f"--clusters {min(counts)}: with {most + 1} classes there can be {most} experts at "
            "most, as more could predict every class. Give fewer."
        )
    if min(counts) > y.size:
        raise BadUsage(
            f"--clusters {min(counts)} is more than the {y.size} rows to fit to. Give fewer."
        )
    if settings.alpha is not None:
        common["alpha"] = settings.alpha
    search = len(counts) > 1
    tried = tuple(counts) if search else counts[0]
    return _load("samples", kind, search)(tried, gate=True, **common)


def _of_tasks(
    settings: Settings, kind: str, n_tasks: int, y: NDArray[Any], common: dict[str, Any]
) -> Any:
    model = _load("tasks", kind, True)
    most = min(MOST_TASK_GROUPS, n_tasks)
    counts = range(1, most + 1) if settings.clusters is None else settings.clusters
    return model(tuple(counts), cv=_n_folds(kind, y), rule=settings.rule, **common)


def _n_folds(kind: str, y: NDArray[Any]) -> int:
    """Five, or fewer where a class or the table has fewer rows."""
    most = y.size if kind == "regression" else np.unique(y, return_counts=True)[1].min()
    return int(max(2, min(N_FOLDS, most)))
