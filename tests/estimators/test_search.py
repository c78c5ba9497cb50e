"""Searches by cross-validation and BIC, held against fits by hand."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss, make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import clustruct as cs
from clustruct.design import as_design
from clustruct.estimators.features.grid import Grid
from clustruct.estimators.features.search import COSTLY, table_of
from clustruct.estimators.search.rules import Rule, check_scores
from clustruct.losses import SquaredLoss
from clustruct.objectives.linear import Response
from clustruct.objectives.quadratic import Moments, quadratic_objective, remaining_objective

GRID = {"n_clusters": (1, 2, 3), "alphas": (1e-1, 1e-3)}


class WithoutLikelihood(SquaredLoss):
    """A loss that is not known to be a likelihood."""

    has_likelihood = False


@pytest.fixture(scope="module")
def problem():
    return cs.datasets.make_clustered_features(120, 10, 3, random_state=0)


@pytest.fixture(scope="module")
def classes():
    return cs.datasets.make_clustered_features(
        150, 8, 2, low=-2, high=2, classification=True, random_state=1
    )


@parametrize_with_checks(
    [
        cs.FeatureClusterRegressorCV((1, 2), alphas=(1e-3, 1e-1), cv=3),
        cs.FeatureClusterClassifierCV((1, 2), alphas=(1e-2, 1e-1), relax=1.0, cv=2),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# ---- Scores are those of fits by hand.


def by_hand(model, X, y, folds, score, weights=None):
    """Scores of a plain estimator on each fold."""
    found = []
    for train, test in folds:
        w = None if weights is None else weights[train]
        fitted = clone(model).fit(X[train], y[train], sample_weight=w)
        found.append(score(fitted, X[test], y[test], None if weights is None else weights[test]))
    return found


def negative_mse(model, X, y, weights):
    return -np.average((model.predict(X) - y) ** 2, weights=weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_scores_are_those_of_the_plain_estimator(problem, weighted, fit_intercept):
    X, y = problem.X + 5.0, problem.y
    weights = np.random.default_rng(0).uniform(0.5, 2.0, y.size) if weighted else None
    common = {"solver": "pg", "fit_intercept": fit_intercept, "random_state": 0}
    model = cs.FeatureClusterRegressorCV(**GRID, cv=4, relax=1.0, **common)
    model.fit(X, y, sample_weight=weights)
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    for q, n_clusters in enumerate(GRID["n_clusters"]):
        for a, alpha in enumerate(GRID["alphas"]):
            plain = cs.FeatureClusterRegressor(n_clusters, alpha=alpha, **common)
            expected = by_hand(plain, X, y, folds, negative_mse, weights)
            np.testing.assert_allclose(model.cv_results_.fold_scores[q, a, 0], expected, rtol=1e-8)


@pytest.mark.parametrize("loss", ["huber", "squared"])
def test_scores_of_nonzero_limits_and_other_losses(problem, loss):
    common = {"solver": "pg", "loss": loss}
    model = cs.FeatureClusterRegressorCV(
        (2, 3), alphas=1e-2, n_nonzero=(4, None), cv=3, relax=1.0, **common
    ).fit(problem.X, problem.y)
    folds = list(KFold(3).split(problem.X))
    for k, n_nonzero in enumerate((4, None)):
        plain = cs.FeatureClusterRegressor(3, alpha=1e-2, n_nonzero=n_nonzero, **common)
        expected = by_hand(plain, problem.X, problem.y, folds, negative_mse)
        np.testing.assert_allclose(model.cv_results_.fold_scores[1, 0, k], expected, rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_scores_of_classes(classes, loss, n_classes):
    X, y = classes.X, np.array(["no", "yes"])[np.unique(classes.y, return_inverse=True)[1]]
    if n_classes == 3:
        y = np.where(X[:, 0] > 1.0, "maybe", y)
    common = {"solver": "greedy", "loss": loss}
    folds = [(np.arange(50, 150), np.arange(50)), (np.arange(100), np.arange(100, 150))]
    model = cs.FeatureClusterClassifierCV((2,), alphas=1e-2, cv=folds, relax=1.0, **common)
    model.fit(X, y)

    def score(model, X, y, weights):
        if loss == "squared":
            return model.score(X, y)
        return -log_loss(y, model.predict_proba(X), labels=model.classes_)

    plain = cs.FeatureClusterClassifier(2, alpha=1e-2, **common)
    expected = by_hand(plain, X, y, folds, score)
    np.testing.assert_allclose(model.cv_results_.fold_scores[0, 0, 0], expected, rtol=1e-4)


def test_relaxed_values_are_ridge_on_the_groups(problem):
    X, y = problem.X, problem.y
    alpha, relax = 0.3, 0.25
    model = cs.FeatureClusterRegressorCV((3,), alphas=alpha, relax=relax, solver="pg").fit(X, y)
    plain = cs.FeatureClusterRegressor(3, alpha=alpha, solver="pg").fit(X, y)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    sizes = np.sqrt(plain.cluster_sizes_)
    ridge = Ridge(alpha=relax * alpha * y.size).fit(plain.transform(X) / sizes, y)
    np.testing.assert_allclose(model.cluster_values_, ridge.coef_ / sizes, rtol=1e-8)
    assert model.best_params_ == {
        "n_clusters": 3,
        "alpha": alpha,
        "n_nonzero": None,
        "relax": relax,
    }
    residual = y - model.predict(X)
    objective = 0.5 * np.mean(residual**2) + 0.5 * relax * alpha * np.sum(model.coef_**2)
    assert model.objective_ == pytest.approx(objective)
    assert model.certificate_.lower_bound <= model.objective_


def test_final_fit_is_the_plain_one_where_nothing_is_relaxed(problem):
    model = cs.FeatureClusterRegressorCV(**GRID, relax=1.0, random_state=0)
    model.fit(problem.X, problem.y)
    chosen = {name: model.best_params_[name] for name in ("n_clusters", "alpha")}
    plain = cs.FeatureClusterRegressor(**chosen, random_state=0).fit(problem.X, problem.y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.objective_ == plain.objective_
    assert model.n_clusters_ == plain.n_clusters_ == 3


# ---- Gram matrices by subtraction.


def moments(X, y, weights, about):
    return Moments.of(as_design(X), y[:, None], weights, *about)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_gram_by_subtraction(make, fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 7)) + 3.0
    y, weights = rng.standard_normal(60), rng.uniform(0.5, 2.0, 60)
    about = (X.T @ weights / weights.sum(), np.array([y @ weights / weights.sum()]))
    if not fit_intercept:
        about = (np.zeros(7), np.zeros(1))
    part = np.arange(60) % 4 == 0
    whole = moments(make(X), y, weights, about)
    left_out = moments(make(X[part]), y[part], weights[part], about)
    penalties = np.full(7, 0.1)
    found = remaining_objective(whole, left_out, fit_intercept, penalties)
    shares = weights[~part] / weights[~part].sum()
    response = Response(y[~part][:, None], SquaredLoss(), 1, shares, fit_intercept)
    direct = quadratic_objective(as_design(make(X[~part])), response, penalties)
    for name in ("gram", "moment", "constant", "x_means", "y_means"):
        np.testing.assert_allclose(getattr(found, name), getattr(direct, name), rtol=1e-11)


@pytest.mark.parametrize("fault", ["outlier", "constant", "offset"])
def test_no_subtraction_where_digits_would_be_lost(fault):
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = X.sum(axis=1)
    if fault == "outlier":
        X[0, 1] = 1e6
    elif fault == "constant":
        X[5:, 1] = 0.0
    else:
        X[:, 1] += 1e8
    about = (X.mean(axis=0), np.array([y.mean()]))
    ones = np.ones(40)
    whole, part = moments(X, y, ones, about), moments(X[:5], y[:5], ones[:5], about)
    assert remaining_objective(whole, part, True, np.ones(3)) is None


def test_scores_survive_an_outlier(problem):
    X = problem.X.copy()
    X[0, 0] = 1e9
    model = cs.FeatureClusterRegressorCV((2,), alphas=1e-2, cv=3, relax=1.0, solver="pg")
    model.fit(X, problem.y)
    plain = cs.FeatureClusterRegressor(2, alpha=1e-2, solver="pg")
    folds = list(KFold(3).split(X))[:1]  # the outlier is held out
    expected = by_hand(plain, X, problem.y, folds, negative_mse)
    assert model.cv_results_.fold_scores[0, 0, 0, 0] == pytest.approx(expected[0], rel=1e-9)


# ---- The same bits, whoever does the work.


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_any_number_of_jobs_gives_the_same_bits(problem, make):
    X = make(problem.X)
    models = [
        cs.FeatureClusterRegressorCV(**GRID, cv=3, n_jobs=n_jobs, random_state=3).fit(X, problem.y)
        for n_jobs in (None, 2)
    ]
    one, two = models
    np.testing.assert_array_equal(one.cv_results_.fold_scores, two.cv_results_.fold_scores)
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_seeded_folds_are_shuffled(problem):
    def scores(random_state):
        model = cs.FeatureClusterRegressorCV(**GRID, random_state=random_state)
        return model.fit(problem.X, problem.y).cv_results_.fold_scores

    np.testing.assert_array_equal(scores(1), scores(1))
    assert not np.array_equal(scores(1), scores(2))
    assert not np.array_equal(scores(1), scores(None))


# ---- Rules and criteria.


def handmade(fold_scores, rule):
    """A choice from scores of shape (n_Q, n_alphas, n_k, n_folds)."""
    scores = np.asarray(fold_scores, dtype=float)
    shape = scores.shape
    grid = Grid((5, 2, 3)[: shape[0]], np.array([0.1, 1.0])[: shape[1]], (None, 4)[: shape[2]])
    return table_of(grid, (1.0,), "cv", "x", scores[..., None, :], Rule(rule, share=COSTLY))


def test_rules_on_a_handmade_table():
    # Means -1.0 for Q = 5 (standard error 0.1), -1.09 and -1.05 for Q = 2, -1.2 for Q = 3.
    table = np.empty((3, 2, 1, 2))
    table[0, :, 0] = [[-0.9, -1.1], [-1.4, -1.4]]
    table[1, :, 0] = [[-1.05, -1.05], [-1.09, -1.09]]
    table[2, :, 0] = [[-1.2, -1.2], [-1.2, -1.2]]
    best = handmade(table, "best")
    assert best.best_index == (0, 0, 0)
    assert best.standard_errors[0, 0, 0] == pytest.approx(0.1)
    assert handmade(table, "one_se").best_index == (1, 1, 0)  # Q = 2, the larger alpha
    chosen = [row for row in best.rows() if row["chosen"]]
    assert [(row["n_clusters"], row["alpha"]) for row in chosen] == [(5, 0.1)]
    assert pd.DataFrame(best.rows()).shape == (6, 10)


def test_the_rule_of_fewest_groups_compares_on_the_same_folds():
    """Folds differ much more than points do: the plain standard error cannot tell them apart."""
    level = np.array([-9.0, -1.0, -5.0, -2.0])
    table = np.empty((3, 2, 1, 4))
    table[0, :, 0] = [level, level - 0.5]  # Q = 5
    table[1, :, 0] = [level - 0.4, level - 0.5]  # Q = 2: clearly worse, by little
    table[2, :, 0] = [level - 0.3, level - [0.3, -0.1, 0.1, 0.0]]  # Q = 3: about as good
    assert handmade(table, "best").best_index == (0, 0, 0)
    assert handmade(table, "one_se").best_index == (1, 1, 0)
    chosen = handmade(table, "fewest")
    assert chosen.best_index == (2, 1, 0)  # the better alpha, though the other is larger
    assert chosen.rule == "fewest"


def test_nonzero_weights_count_where_they_are_fewer_than_groups():
    """Q = 5 with 4 nonzero weights has 4 of them."""
    table = np.zeros((1, 1, 2, 4))
    assert handmade(table, "fewest").best_index == (0, 0, 1)


def test_folds_that_hold_out_more_have_larger_errors():
    """The correction takes the folds as they are: here half of the samples are held out."""
    grid = Grid((1, 2), np.array([1.0]), (None,))
    scores = np.array([[-1.0, -0.7, -0.4, -0.1], [0.0] * 4])[:, None, None, None] - 100.0
    error = scores[0].std(ddof=1)

    def chosen(ratio):
        rule = Rule("fewest", share=COSTLY, ratio=ratio)
        return table_of(grid, (1.0,), "cv", "x", scores, rule).best_index[0]

    exact = (0.55 / error) ** 2 - 1 / 4
    assert (chosen(0.9 * exact), chosen(1.1 * exact)) == (1, 0)


def test_the_rule_of_fewest_groups_finds_the_planted_number():
    numbers = {"best": [], "fewest": []}
    for seed in range(5):
        problem = cs.datasets.make_clustered_features(
            300, 16, 3, low=-2, high=2, noise=2.0, random_state=seed
        )
        for rule, found in numbers.items():
            model = cs.FeatureClusterRegressorCV(
                (*range(1, 9), None), alphas=(1e-1, 1e-2), rule=rule, random_state=0
            ).fit(problem.X, problem.y)
            found.append(model.n_clusters_)
    assert max(numbers["fewest"]) <= 4
    assert sum(numbers["fewest"]) < sum(numbers["best"])


def test_without_groups_it_is_ridge():
    """None is a weight for every feature, and chosen where every grouping is clearly worse."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 9))
    y = X @ np.linspace(-3, 3, 9) + 0.1 * rng.standard_normal(200)
    model = cs.FeatureClusterRegressorCV((3, 4, None), alphas=(1e-2,), rule="fewest", cv=4)
    for blocks in (None, np.repeat([0, 1, 2], 3)):
        model.set_params(blocks=blocks).fit(X, y)
        assert model.best_params_["n_clusters"] is None
        assert (model.n_clusters_, model.relax_) == (9, 1.0)
        ridge = Ridge(alpha=1e-2 * 200).fit(X, y)
        np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-8)
        plain = cs.FeatureClusterRegressor(None, alpha=1e-2, blocks=blocks).fit(X, y)
        np.testing.assert_allclose(plain.coef_, ridge.coef_, rtol=1e-8)
        scores = by_hand(Ridge(alpha=1e-2 * 150), X, y, KFold(4).split(X), negative_mse)
        np.testing.assert_allclose(model.cv_results_.fold_scores[2, 0, 0], scores, rtol=1e-8)


def test_of_equal_points_the_simplest():
    assert handmade(np.zeros((3, 2, 2, 2)), "best").best_index == (1, 1, 1)


def test_scores_that_are_not_numbers_are_refused():
    with pytest.raises(ValueError, match="scoring='x' gave NaN on 1 of 2 points"):
        check_scores(np.array([[[[np.nan, 1.0]], [[0.0, 0.0]]]]), "x")


def test_bic_picks_the_planted_number_of_groups():
    problem = cs.datasets.make_clustered_features(400, 9, 3, noise=0.1, random_state=2)
    for criterion in ("bic", "ebic"):
        model = cs.FeatureClusterRegressorCV(range(1, 8), alphas=1e-4, criterion=criterion)
        model.fit(problem.X, problem.y)
        assert model.best_params_["n_clusters"] == 3
        assert model.cv_results_.fold_scores.shape == (7, 1, 1, 1)
    residual = problem.y - model.predict(problem.X)
    price = 4 * np.log(400) + 2 * (9 * np.log(3) - np.log(6))
    assert -model.best_score_ == pytest.approx(400 * np.log(np.mean(residual**2)) + price)


def test_extended_bic_among_many_features():
    problem = cs.datasets.make_clustered_features(150, 60, 4, random_state=0)
    model = cs.FeatureClusterRegressorCV(range(2, 9), alphas=(1e-3, 1e-2), criterion="ebic")
    assert model.fit(problem.X, problem.y).best_params_["n_clusters"] == 4


def test_bic_of_classes(classes):
    model = cs.FeatureClusterClassifierCV((1, 2, 3), alphas=1e-2, criterion="bic")
    model.fit(classes.X, classes.y)
    losses = log_loss(classes.y, model.predict_proba(classes.X))
    expected = 2 * 150 * losses + (model.n_clusters_ + 1) * np.log(150)
    assert -model.best_score_ == pytest.approx(expected, rel=1e-6)


# ---- Weights.


def test_weight_zero_is_removal_before_the_folds_are_made(problem):
    weights = np.tile([0.0, 1.0, 2.0], 40)
    kept = weights > 0
    model = cs.FeatureClusterRegressorCV(**GRID, random_state=0)
    weighted = clone(model).fit(problem.X, problem.y, sample_weight=weights)
    removed = model.fit(problem.X[kept], problem.y[kept], sample_weight=weights[kept])
    np.testing.assert_array_equal(weighted.cv_results_.fold_scores, removed.cv_results_.fold_scores)
    np.testing.assert_array_equal(weighted.coef_, removed.coef_)


@pytest.mark.parametrize("listed", [False, True])
def test_folds_of_all_samples_leave_out_those_of_weight_zero(problem, listed):
    weights = np.where(np.arange(120) < 15, 0.0, 1.0)
    numbers = np.arange(120) % 3
    cv = PredefinedSplit(numbers)
    if listed:
        cv = list(cv.split())
    model = cs.FeatureClusterRegressorCV(**GRID, cv=cv)
    weighted = clone(model).fit(problem.X, problem.y, sample_weight=weights)
    model.set_params(cv=PredefinedSplit(numbers[15:])).fit(problem.X[15:], problem.y[15:])
    np.testing.assert_allclose(
        weighted.cv_results_.fold_scores, model.cv_results_.fold_scores, rtol=1e-12
    )


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_integer_weights_are_repetition_if_copies_stay_together(problem, classes, class_weight):
    searches = [(cs.FeatureClusterRegressorCV(**GRID, cv=GroupKFold(3)), problem)]
    searches += [
        (
            cs.FeatureClusterClassifierCV(**GRID, cv=GroupKFold(3), class_weight=class_weight),
            classes,
        )
    ]
    for model, data in searches:
        n = data.y.size
        weights = np.random.default_rng(0).integers(1, 4, n)
        ids = np.arange(n) % 9
        repeated = np.repeat(np.arange(n), weights)
        one = clone(model).fit(data.X, data.y, sample_weight=weights, groups=ids)
        # Folds are balanced by the number of rows, so that they are given here as they were.
        folds = list(GroupKFold(3).split(data.X, groups=ids))
        copies = [tuple(np.flatnonzero(np.isin(repeated, part)) for part in f) for f in folds]
        two = model.set_params(cv=copies).fit(data.X[repeated], data.y[repeated])
        np.testing.assert_allclose(
            one.cv_results_.fold_scores, two.cv_results_.fold_scores, rtol=1e-5
        )
        np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-5)


# ---- Scorers.


def test_named_and_custom_scorers(problem):
    folds = list(KFold(3).split(problem.X))
    plain = cs.FeatureClusterRegressor(2, alpha=1e-2, solver="pg")
    weights = np.linspace(0.5, 2.0, 120)

    def expected(fitted, X, y, w):
        return -mean_absolute_error(y, fitted.predict(X), sample_weight=w)

    def own(fitted, X, y):
        return -mean_absolute_error(y, fitted.predict(X))

    for scoring, known in (
        ("neg_mean_absolute_error", weights),
        (make_scorer(mean_absolute_error, greater_is_better=False), weights),
        (own, None),
    ):
        model = cs.FeatureClusterRegressorCV(
            (2,), alphas=1e-2, cv=3, relax=1.0, solver="pg", scoring=scoring
        ).fit(problem.X, problem.y, sample_weight=weights)
        scores = [
            expected(
                clone(plain).fit(problem.X[a], problem.y[a], sample_weight=weights[a]),
                problem.X[b],
                problem.y[b],
                None if known is None else known[b],
            )
            for a, b in folds
        ]
        np.testing.assert_allclose(model.cv_results_.fold_scores[0, 0, 0], scores, rtol=1e-8)


def test_scorer_by_name_equals_the_fast_score(classes):
    def scores(scoring):
        model = cs.FeatureClusterClassifierCV((2,), alphas=1e-2, cv=3, scoring=scoring)
        return model.fit(classes.X, classes.y).cv_results_.fold_scores

    slow = make_scorer(log_loss, greater_is_better=False, response_method="predict_proba")
    np.testing.assert_allclose(scores(None), scores(slow), rtol=1e-10)


# ---- Friends in scikit-learn.


def test_frames_keep_their_names(problem):
    frame = pd.DataFrame(problem.X, columns=[f"word{j}" for j in range(10)])
    model = cs.FeatureClusterRegressorCV(**GRID, scoring="r2").fit(frame, pd.Series(problem.y))
    assert sorted(name for group in model.clusters() for name in group.features) == sorted(frame)
    assert model.set_output(transform="pandas").transform(frame).shape == (120, 3)
    plain = model.to_sklearn()
    np.testing.assert_allclose(plain.predict(frame), model.predict(frame))


def test_clone_pickle_and_nesting(problem):
    model = cs.FeatureClusterRegressorCV(**GRID, cv=3)
    pipeline = make_pipeline(StandardScaler(), clone(model))
    outer = GridSearchCV(
        pipeline, {"featureclusterregressorcv__rule": ["best", "one_se"]}, cv=2
    ).fit(problem.X, problem.y)
    assert outer.best_score_ > 0.9
    model.fit(problem.X, problem.y)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict(problem.X), model.predict(problem.X))
    np.testing.assert_array_equal(copied.cv_results_.fold_scores, model.cv_results_.fold_scores)


def test_metadata_routing(problem):
    weights = np.linspace(0.0, 2.0, 120)
    direct = cs.FeatureClusterRegressorCV(**GRID, cv=3)
    direct.fit(problem.X, problem.y, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        model = cs.FeatureClusterRegressorCV(**GRID, cv=3).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(model).fit(problem.X, problem.y, sample_weight=weights)
    np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)


def test_several_outputs(problem):
    Y = np.stack([problem.y, -2 * problem.y], axis=1)
    model = cs.FeatureClusterRegressorCV((3,), alphas=(1e-2, 1e-3), cv=3).fit(problem.X, Y)
    assert model.coef_.shape == (2, 10)
    assert model.score(problem.X, Y) > 0.99


def test_blocks(problem):
    blocks = np.repeat(["a", "b"], 5)
    counts = ({"a": 1, "b": 2}, {"a": 3, "b": 3})
    model = cs.FeatureClusterRegressorCV(counts, alphas=1e-3, cv=3, blocks=blocks)
    assert model.fit(problem.X, problem.y).best_params_["n_clusters"] == counts[1]


def test_more_groups_than_features_are_ridge(problem):
    model = cs.FeatureClusterRegressorCV((10, 11, 12), alphas=1e-2, relax=1.0, cv=3)
    model.fit(problem.X, problem.y)
    assert model.best_params_["n_clusters"] == 10  # all alike: the simplest
    ridge = Ridge(alpha=1e-2 * 120).fit(problem.X, problem.y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-6)


# ---- Words for users.


def test_progress_goes_to_standard_error(problem, capsys):
    cs.FeatureClusterRegressorCV(**GRID, cv=3, verbose=1).fit(problem.X, problem.y)
    out, err = capsys.readouterr()
    assert " 0  objective" not in out  # steps are for verbose=2
    assert err.startswith("clustruct: 3 of 3 folds, best score -")
    assert err.endswith(" s)\n")


def test_a_search_ends_with_what_was_done_and_proved(problem, capsys):
    model = cs.FeatureClusterRegressorCV(**GRID, cv=3, verbose=1).fit(problem.X, problem.y)
    told = capsys.readouterr().out
    assert told == f"{model.status_.message}\n{model.certificate_.in_words}\n"


def test_fits_of_an_information_criterion_are_counted(problem, capsys):
    model = cs.FeatureClusterRegressorCV(**GRID, criterion="bic", verbose=1)
    found = model.fit(problem.X, problem.y).cv_results_
    total = found.fold_scores.size
    assert capsys.readouterr().err.startswith(f"clustruct: {total} of {total} fits, best score ")


def test_one_warning_for_all_fits_that_did_not_converge(problem):
    model = cs.FeatureClusterRegressorCV(
        (3,), alphas=1e-9, solver="pg", max_iter=1, tol=0, init="zeros", cv=2
    )
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(problem.X, problem.y)
    search, final = [str(warning.message) for warning in caught]
    assert search.startswith("2 of 2 fits on the grid were stopped by max_iter=1")
    assert final.startswith("Solver 'pg' stopped after max_iter=1 steps")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": (1e-3, -1.0)}, "alphas holds -1.0"),
        ({"alphas": "many"}, "'alphas' parameter"),
        ({"n_clusters": 0}, "'n_clusters' parameter"),
        ({"n_clusters": (2, 0)}, "n_clusters holds 0"),
        ({"n_clusters": ()}, "n_clusters is empty"),
        ({"n_nonzero": (3, -1)}, "n_nonzero holds -1"),
        ({"relax": (1.0, 2.0)}, r"relax holds 2\.0"),
        ({"relax": ()}, "relax is empty"),
        ({"cv": 121}, "cv=121 folds cannot be made of n_samples=120"),
        ({"cv": 1}, "'cv' parameter"),
        ({"cv": [(np.arange(3), np.arange(0))]}, "1 lack samples"),
        ({"criterion": "bic", "rule": "one_se"}, "criterion='bic' does not go with rule='one_se'"),
        ({"criterion": "bic", "rule": "fewest"}, "criterion='bic' does not go with rule='fewest'"),
        ({"criterion": "bic", "loss": WithoutLikelihood()}, "needs a likelihood"),
        ({"scoring": "nonsense"}, "nonsense"),
    ],
)
def test_bad_parameters_are_refused(problem, parameters, message):
    model = cs.FeatureClusterRegressorCV(**{**GRID, **parameters})
    with pytest.raises(ValueError, match=message):
        model.fit(problem.X, problem.y)


def test_bad_groups_are_refused(problem):
    with pytest.raises(ValueError, match=r"groups has shape \(3,\), but X has 120 samples"):
        cs.FeatureClusterRegressorCV(**GRID).fit(problem.X, problem.y, groups=[1, 2, 3])


def test_a_fold_without_a_class_is_refused(classes):
    y = np.zeros(150)
    y[:20] = 1.0
    model = cs.FeatureClusterClassifierCV(**GRID, cv=KFold(3))
    with pytest.raises(ValueError, match=r"Fold 0 of cv has no sample of class .*1\.0"):
        model.fit(classes.X, y)
