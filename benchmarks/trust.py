"""Does firmness tell right groups from wrong ones, and how firm are the groups of real data?

Planted problems have groups that are far apart, groups that neighbours are taken for, or none at
all. A feature is grouped wrongly if it is not in the group that has most of its planted mates.
Times are of the processor, one thread.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from threadpoolctl import threadpool_limits

import clustruct as cs
import tariffs
from clustruct.results.stability import FIRM
from report import Options, Table, Target

N_PROBLEMS, N_RESAMPLES, FEW = 40, 100, 20
# Standard error of a weight in units of the distance of neighbouring groups.
TERRAINS: dict[str, tuple[float, ...]] = {"firm": (0.05, 0.1), "borderline": (0.2, 0.3, 0.4)}
NONE = "none"
Record = dict[str, Any]


class Problem(NamedTuple):
    """A regression with planted groups; without groups all weights differ."""

    X: np.ndarray
    y: np.ndarray
    labels: np.ndarray
    n_clusters: int


def make(terrain: str, seed: int) -> Problem:
    """Groups of unequal size; some problems have correlated columns or heavy tails."""
    rng = np.random.default_rng([seed, [*TERRAINS, NONE].index(terrain)])
    n, d, q = int(rng.choice([150, 300, 600])), int(rng.choice([20, 50])), int(rng.choice([3, 5]))
    X = rng.standard_normal((n, d))
    if seed % 3 == 1:
        for j in range(1, d):
            X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    labels = rng.choice(q, size=d, p=rng.dirichlet(np.full(q, 5.0)))
    w = rng.normal(scale=q / 3.0, size=d) if terrain == NONE else labels.astype(float)
    noise = rng.standard_t(3, n) / np.sqrt(3.0) if seed % 4 == 2 else rng.standard_normal(n)
    spread = rng.choice(TERRAINS.get(terrain, TERRAINS["borderline"]))
    return Problem(X, X @ w + spread * np.sqrt(n) * noise, labels, q)


def wrongly_grouped(planted: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Which features lie outside of the group that is matched to their planted one."""
    counts = np.zeros((planted.max() + 1, found.max() + 1))
    np.add.at(counts, (planted, found), 1)
    rows, columns = linear_sum_assignment(-counts)
    name = np.full(counts.shape[1], -1)
    name[columns] = rows
    return np.asarray(name[found] != planted)


def measure(options: Options) -> list[Record]:
    """Planted problems, then tables that people know."""
    with threadpool_limits(1):
        records = [
            _planted(terrain, seed)
            for terrain in (*TERRAINS, NONE)
            for seed in range(4 if options.quick else N_PROBLEMS)
        ]
        records += [_real(case, options.quick) for case in _cases()]
    return records


def _planted(terrain: str, seed: int) -> Record:
    problem = make(terrain, seed)
    model = cs.FeatureClusterRegressor(problem.n_clusters).fit(problem.X, problem.y)
    start = time.process_time()
    found = cs.stability(model, problem.X, problem.y, n_resamples=N_RESAMPLES, random_state=seed)
    seconds = time.process_time() - start
    exists = terrain != NONE
    return {
        "terrain": terrain,
        "seed": seed,
        "seconds": seconds,
        "firmness": found.firmness.tolist(),
        "wrong": wrongly_grouped(problem.labels, model.labels_).tolist() if exists else None,
        "rand": _rand(problem, model.labels_) if exists else None,
        "consensus rand": _rand(problem, found.consensus_labels) if exists else None,
        "consensus": int(np.unique(found.consensus_labels).size),
        "groups": problem.n_clusters,
    }


def _rand(problem: Problem, labels: np.ndarray) -> float:
    return float(adjusted_rand_score(problem.labels, labels))


class Case(NamedTuple):
    """A table that people know, with a model of it."""

    name: str
    model: Any
    X: Any
    y: Any
    given: dict[str, Any] = {}  # noqa: RUF012  (what else `fit` takes)
    n_resamples: int = N_RESAMPLES


def _cases() -> Iterator[Case]:
    """Searches choose anew on each resample, so that they get fewer of them."""
    seed: dict[str, Any] = {"random_state": 0}
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = (X - X.mean()) / X.std()
    yield Case("diabetes, 3 groups", cs.FeatureClusterRegressor(3, **seed), X, y)
    yield Case("diabetes, search", cs.FeatureClusterRegressorCV(**seed), X, y, n_resamples=FEW)
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = (X - X.mean()) / X.std()
    model = cs.FeatureClusterClassifier(5, alpha=1e-3, **seed)
    yield Case("breast cancer, 5 groups", model, X, y)
    model = cs.FeatureClusterClassifierCV(**seed)
    yield Case("breast cancer, search", model, X, y, n_resamples=FEW)
    X, y = cs.datasets.fetch_movie_reviews(return_X_y=True)
    for q in (5, 15):
        model = cs.FeatureClusterRegressor(q, alpha=2e-4, **seed)
        yield Case(f"movie reviews, {q} groups", model, X, y, n_resamples=FEW)
    tone = cs.datasets.fetch_tone()
    yield Case("tone, 2 experts", cs.SampleClusterRegressor(2, **seed), tone.data, tone.target)
    for name, fetch, search in (
        ("School", cs.datasets.fetch_school, cs.TaskClusterRegressorCV),
        ("Landmine", cs.datasets.fetch_landmine, cs.TaskClusterClassifierCV),
    ):
        rows = fetch()
        given = {"tasks": rows.tasks}
        yield Case(f"{name}, search", search(**seed), rows.data, rows.target, given, FEW)
    if (Path(os.environ.get("CLUSTRUCT_DATA", "")) / tariffs.FILE).exists():
        yield _tariff()


def _tariff() -> Case:
    """The price is the one that folds choose; ridges and groups are found anew."""
    rows = tariffs.load()
    given = {"offset": np.log(rows.exposure)}
    form: dict[str, Any] = {
        "loss": "poisson",
        "factors": dict.fromkeys(tariffs.ORDINAL, "ordinal"),
        "random_state": 0,
    }
    search = cs.FeatureClusterRegressorCV(**form).fit(rows.X, rows.y, **given)
    price = search.best_params_["price"]
    model = cs.FeatureClusterRegressor(None, price=price, alpha="auto", **form)
    return Case("beMTPL97, tariff", model, rows.X, rows.y, given, FEW)


def _real(case: Case, quick: bool) -> Record:
    case.model.fit(case.X, case.y, **case.given)
    n_resamples = 4 if quick else case.n_resamples
    start = time.process_time()
    found = cs.stability(
        case.model, case.X, case.y, n_resamples=n_resamples, random_state=0, **case.given
    )
    seconds = time.process_time() - start
    return {
        "table": case.name,
        "resamples": n_resamples,
        "seconds": seconds,
        "groups": int(found.groups.size),
        "firm": int(found.firm.sum()),
        "items": int(found.firmness.size),
        "firm items": float(np.nanmean(found.firmness >= FIRM)),
        "firmness": float(np.nanmean(found.firmness)),
        "least": int(found.n_clusters.min()),
        "most": int(found.n_clusters.max()),
        "consensus": int(np.unique(found.consensus_labels).size),
        "words": found.in_words,
    }


# ---- What they say


def _pooled(records: list[Record]) -> float | None:
    """How well firmness tells wrongly grouped features, all problems together (AUC)."""
    if not records:
        return None
    wrong = np.concatenate([record["wrong"] for record in records])
    firmness = np.concatenate([record["firmness"] for record in records])
    return None if wrong.all() or not wrong.any() else float(roc_auc_score(wrong, -firmness))


def _told_apart(records: list[Record]) -> float | None:
    """How well the mean firmness tells problems with groups that are apart from those without."""
    mine = [record for record in records if record["terrain"] in ("firm", NONE)]
    if not mine:
        return None
    means = [np.mean(record["firmness"]) for record in mine]
    return float(roc_auc_score([record["terrain"] == "firm" for record in mine], means))


def table(records: list[Record]) -> Table:
    """A row for each kind of planted problem and each table."""
    rows = []
    planted = [record for record in records if "terrain" in record]
    for terrain in (*TERRAINS, NONE):
        mine = [record for record in planted if record["terrain"] == terrain]
        if not mine:
            continue
        right = np.mean([record["consensus"] == record["groups"] for record in mine])
        values = {
            key: "-" if terrain == NONE else f"{np.mean([record[key] for record in mine]):.2f}"
            for key in ("rand", "consensus rand")
        }
        auc = None if terrain == NONE else _pooled(mine)
        rows.append([
            f"planted, {terrain}",
            f"{np.median([record['seconds'] for record in mine]):.1f}",
            f"{np.mean(np.concatenate([record['firmness'] for record in mine])):.2f}",
            "-" if auc is None else f"AUC {auc:.3f}",
            f"Rand {values['rand']} / {values['consensus rand']}",
            "" if terrain == NONE else f"{100 * right:.0f} % right",
        ])  # fmt: skip
    for record in records:
        if "table" not in record:
            continue
        rows.append([
            record["table"],
            f"{record['seconds']:.1f}",
            f"{record['firmness']:.2f}",
            f"{record['firm']} of {record['groups']} firm",
            f"{100 * record['firm items']:.0f} % of {record['items']}",
            f"{record['least']} to {record['most']}, {record['consensus']} agreed",
        ])  # fmt: skip
    header = ["data", "s", "firmness", "groups", "items firm, or Rand model / consensus", "number"]
    notes = [f"{record['table']}: {record['words']}" for record in records if "table" in record]
    return Table(header, rows, notes)


def targets(records: list[Record]) -> list[Target]:
    """The promises, on planted problems."""
    planted = [record for record in records if "terrain" in record]
    with_groups = [record for record in planted if record["terrain"] != NONE]
    borderline = [record for record in planted if record["terrain"] == "borderline"]
    return [
        Target("trust: AUC for wrongly grouped features", _pooled(with_groups), 0.95, True),
        Target("trust: the same, borderline alone", _pooled(borderline), 0.95, True),
        Target("trust: AUC for groups against none", _told_apart(planted), 0.95, True),
    ]
