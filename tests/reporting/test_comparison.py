"""Comparisons on held-out samples: same rows, same folds, paired tests, sentences that follow."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import clustruct as cs
from clustruct.losses import SquaredLoss
from clustruct.reporting.comparing import rivals, samples
from clustruct.reporting.comparing.comparison import compare, hold_out
from clustruct.reporting.comparing.samples import Data, long, unfitted
from clustruct.reporting.comparing.scores import Entry, PairedTest, paired_test
from clustruct.reporting.pictures import confusion_of
from clustruct.reporting.verdict import verdict_on
from tests.losses.users import Poisson


def judged(model, X, y, *, test_size=0.25, seed=0, **data):
    """A comparison with some of the samples held out."""
    parts = hold_out(model, Data(X, y, **data), test_size, seed)
    return compare(model, *parts, seed=seed, refit=True)


def entry(losses, role="ours", weights=None):
    """An entry with these losses."""
    losses = np.asarray(losses, dtype=float)
    return Entry("a model", role, None, None, 10, losses=losses, weights=weights)


# ---- Paired tests.


def test_the_paired_test_is_the_t_test_of_the_differences(rng):
    one, other = rng.exponential(1.0, 80), rng.exponential(1.2, 80)
    found = paired_test(entry(one), entry(other))
    beyond = stats.ttest_rel(other, one + 0.01 * other.mean(), alternative="greater")
    assert other.mean() > one.mean()
    assert found.p_value == pytest.approx(2 * beyond.pvalue)
    assert found.gain == pytest.approx(1.0 - one.mean() / other.mean())
    assert "t-test" in found.in_words


def test_errors_are_compared_by_mcnemars_exact_test(rng):
    one, other = rng.random(60) < 0.2, rng.random(60) < 0.4
    found = paired_test(entry(one), entry(other))
    split = int((~one & other).sum()), int((one & ~other).sum())
    assert found.p_value == pytest.approx(stats.binomtest(split[0], sum(split)).pvalue)
    assert "McNemar" in found.in_words


@pytest.mark.parametrize(("p_value", "said"), [(0.009, False), (0.033, True), (0.2, False)])
def test_a_tie_that_others_would_call_significant_names_the_level(p_value, said):
    found = PairedTest(gain=0.1, p_value=p_value, name="paired t-test", negligible=0.0)
    assert ("above our level of 0.01" in found.in_words) == said


def test_weights_of_rows_equal_repetition_in_the_gain(rng):
    one, other = rng.exponential(1.0, 40), rng.exponential(1.0, 40)
    times = rng.integers(1, 4, 40)
    weighted = paired_test(entry(one, weights=times.astype(float)), entry(other, weights=times))
    repeated = paired_test(entry(np.repeat(one, times)), entry(np.repeat(other, times)))
    assert weighted.gain == pytest.approx(repeated.gain)
    assert weighted.p_value > repeated.p_value  # repeated rows are no further evidence


def test_equal_losses_tie_and_small_differences_are_negligible(rng):
    losses = rng.exponential(1.0, 50)
    assert paired_test(entry(losses), entry(losses)).tie
    close = paired_test(entry(losses), entry(1.005 * losses))
    assert stats.ttest_rel(losses, 1.005 * losses).pvalue < 1e-3
    assert close.tie
    far = paired_test(entry(losses), entry(1.2 * losses))
    assert far.better
    assert paired_test(entry(1.2 * losses), entry(losses)).worse


# ---- Rivals that are treated fairly.


class OneRidge:
    """A table on which the best model is one ridge regression, and a model that is one."""

    def __init__(self, seed, n, order):
        rng = np.random.default_rng(seed)
        self.X = rng.standard_normal((n, 5)) @ rng.standard_normal((5, 5))
        self.y = self.X @ rng.standard_normal(5) + rng.standard_t(4, n) + 3.0
        if order == "sorted":
            rows = np.argsort(self.y)
            self.X, self.y = self.X[rows], self.y[rows]
        self.model = cs.SampleClusterRegressor(1, alpha=1e-3, random_state=seed)


@pytest.fixture
def without_boosting(monkeypatch):
    """Gradient boosting takes longer than all else, and does not matter here."""
    monkeypatch.setattr(rivals, "MOST_BOOSTED", 0)


def tie_rate(order, n, seeds):
    """How often a model that is ridge is reported to tie with ridge."""
    ties = 0
    for seed in seeds:
        table = OneRidge(seed, n, order)
        found = judged(table.model, table.X, table.y, seed=seed)
        assert found.rival.n_train == found.n_train
        ties += found.against(found.rival).tie
    return ties


@pytest.mark.usefixtures("without_boosting")
@pytest.mark.parametrize("order", ["sorted", "random"])
def test_a_model_that_is_ridge_ties_with_ridge(order):
    assert tie_rate(order, 300, range(20)) >= 19


@pytest.mark.slow
@pytest.mark.usefixtures("without_boosting")
@pytest.mark.parametrize(("order", "n"), [("sorted", 300), ("random", 300), ("sorted", 26_000)])
def test_a_model_that_is_ridge_ties_with_ridge_in_95_of_100(order, n, monkeypatch):
    monkeypatch.setattr(samples, "MOST_ROWS", 30_000)
    assert tie_rate(order, n, range(1000, 1100)) >= 95


@pytest.mark.usefixtures("without_boosting")
def test_rivals_see_all_rows_that_the_model_saw():
    table = OneRidge(0, 30_000, "sorted")
    train, test = Data(table.X[::2], table.y[::2]), Data(table.X[1::2], table.y[1::2])
    found = compare(table.model.fit(train.X, train.y), train, test, seed=0)
    assert {one.n_train for one in found.entries} == {15_000}
    best = Ridge(1e-3 * 15_000).fit(train.X, train.y)
    assert found.rival.scores["R²"] == pytest.approx(
        r2_score(test.y, best.predict(test.X)), abs=1e-3
    )


@pytest.mark.usefixtures("without_boosting")
def test_nothing_is_claimed_where_a_rival_saw_fewer_rows(monkeypatch):
    monkeypatch.setattr(rivals, "MOST_WORK", 1e5)
    monkeypatch.setattr(samples, "MOST_ROWS", 250)
    table = OneRidge(0, 600, "random")
    train, test = Data(table.X[:400], table.y[:400]), Data(table.X[400:], table.y[400:])
    found = compare(table.model.fit(train.X, train.y), train, test, seed=0)
    assert found.rival is None
    told = verdict_on(table.model, found)
    assert "not compared with" in told.headline
    assert "saw 250 of 400 rows: no claim is made" in told.support[0]


def test_folds_are_those_of_the_model():
    data = Data(np.zeros((40, 1)), np.repeat([0, 1], 20))
    model = cs.FeatureClusterClassifierCV(cv=4, random_state=7)
    splitter = rivals._folds(model, data, 0).splitter
    expected = StratifiedKFold(4, shuffle=True, random_state=7)
    for mine, theirs in zip(splitter.split(*_xy(data)), expected.split(*_xy(data)), strict=True):
        np.testing.assert_array_equal(mine[1], theirs[1])
    plain = rivals._folds(cs.SampleClusterRegressor(2), Data(data.X, data.y * 1.0), 3).splitter
    assert isinstance(plain, KFold)
    assert (plain.shuffle, plain.random_state, plain.n_splits) == (True, 3, 5)


def _xy(data):
    return data.X, data.y


def test_rivals_are_not_handicapped_by_the_scale_of_the_columns(features):
    """The strength is chosen among some that suit the columns, finely enough."""
    _, X, y = features
    X = X.to_numpy()
    cv = KFold(5, shuffle=True, random_state=0)
    fine = RidgeCV(np.logspace(-3, 5, 200), scoring="neg_mean_squared_error", cv=cv).fit(X, y)
    for scale in (1e-4, 1.0, 1e4):
        fold = rivals._Fold(cv, 0)
        rival = rivals._linear(Data(X * scale, y), fold, loss=SquaredLoss())
        np.testing.assert_allclose(rival.predict(X * scale), fine.predict(X), rtol=0.05, atol=0.3)


@pytest.mark.usefixtures("without_boosting")
def test_rivals_see_the_weights_of_the_rows(rng):
    """Rows that follow another rule have no weight, for the model, its rivals and the scores."""
    X = rng.standard_normal((200, 3))
    truth = rng.random(200) < 0.6
    y = np.where(truth, X[:, 0], -5.0 * X[:, 0]) + rng.normal(0, 0.1, 200)
    weights = truth.astype(float)
    train, test = (Data(X[p], y[p], None, weights[p]) for p in (slice(100), slice(100, 200)))
    model = cs.FeatureClusterRegressor(2).fit(train.X, train.y, sample_weight=train.weights)
    found = compare(model, train, test, seed=0)
    assert found.rival.scores["R²"] > 0.95
    assert found.mine.scores["R²"] > 0.95


# ---- The model itself.


@pytest.mark.parametrize("link", ["identity", "log"])
def test_rivals_of_numbers_see_the_offset(link, rng):
    X = rng.standard_normal((300, 3))
    offset = X[:, 0] + rng.standard_normal(300)
    scores = X @ [0.5, 0.5, -0.5]
    if link == "identity":
        model, y = cs.FeatureClusterRegressor(2), scores + offset + 0.1 * rng.standard_normal(300)
        same, weights, back = y - offset, None, lambda p, o: p + o
    else:
        model = cs.FeatureClusterRegressor(2, loss=Poisson())
        y = rng.poisson(np.exp(scores + offset)).astype(float)
        same, weights, back = y / np.exp(offset), np.exp(offset), lambda p, o: p * np.exp(o)
    train, test = (Data(X[s], y[s], offset=offset[s]) for s in (slice(200), slice(200, 300)))
    model.fit(train.X, train.y, offset=train.offset)
    found = compare(model, train, test, seed=0)
    plain = Data(X[:200], same[:200], weights=None if weights is None else weights[:200])
    alone = list(rivals.fit_rivals(model, plain, replace(test, offset=None), 0))
    for entry, other in zip(found.entries, alone, strict=False):
        np.testing.assert_allclose(entry.predicted, back(other.predicted, test.offset))
        assert entry.fair
    np.testing.assert_allclose(found.mine.predicted, model.predict(test.X, test.offset))
    assert found.rival is not None


def test_rivals_of_classes_say_that_they_do_not_take_the_offset(rng):
    X, offset = rng.standard_normal((200, 3)), 3.0 * rng.standard_normal(200)
    y = X @ [1.0, 1.0, -1.0] + offset + rng.logistic(size=200) > 0
    model = cs.FeatureClusterClassifier(2).fit(X, y, offset=offset)
    found = judged(model, X, y, offset=offset)
    assert found.rival is None
    assert "The linear model does not take the offset" in verdict_on(model, found).support[0]
    tasks = np.repeat(["a", "b"], 100)
    model = cs.TaskClusterClassifier(2).fit(X, y, tasks=tasks, offset=offset)
    found = judged(model, X, y, tasks=tasks, offset=offset)
    if model.n_clusters_ > 1:  # the same model without groups takes the offset
        assert found.rival.name.startswith("Tasks about one common centre")


def test_reports_want_the_offset_that_the_fit_had(rng, tmp_path):
    X, offset = rng.standard_normal((60, 3)), rng.standard_normal(60)
    y = X.sum(axis=1) + offset
    page = tmp_path / "page.html"
    model = cs.SampleClusterRegressor(2, random_state=0).fit(X, y, offset=offset)
    cs.report(model, X, y, page, offset=offset)
    assert "offset=offset" in page.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"fitted with an offset, and offset is None. Give"):
        cs.report(model, X, y, page)
    with pytest.raises(ValueError, match=r"offset_test is None"):
        cs.report(model, X, y, page, offset=offset, X_test=X, y_test=y)
    with pytest.raises(ValueError, match=r"offset has shape \(59,\), but X has 60 samples"):
        cs.report(model, X, y, page, offset=offset[1:])
    with pytest.raises(ValueError, match="fitted without an offset, and offset is given"):
        cs.report(model.fit(X, y), X, y, page, offset=offset)


def test_the_model_is_judged_on_samples_it_has_not_seen(features):
    model, X, y = features
    found = judged(model, X, y)
    assert found.refitted
    assert (found.n_train, found.n_test) == (120, 40)
    assert found.metrics == ("R²", "RMSE")
    assert [one.role for one in found.entries] == ["constant", "linear", "boosting", "ours"]
    assert found.mine.scores["R²"] > 0.9


def test_given_samples_judge_the_model_as_it_is(read, features):
    _, X, y = features
    half = cs.FeatureClusterRegressor(3).fit(X[:80], y[:80])
    found = compare(half, Data(X[:80], y[:80]), Data(X[80:], y[80:]), seed=0)
    assert not found.refitted
    assert found.mine.scores["R²"] == pytest.approx(r2_score(y[80:], half.predict(X[80:])))
    text = read(half, X[:80], y[:80], X_test=X[80:], y_test=y[80:])
    assert "judged on 80 rows that were held out" in text


def test_a_search_is_repeated_without_the_held_out_samples(features):
    """What was chosen with the held-out samples in sight would flatter the model."""
    model, _, _ = features
    copy = unfitted(model)
    assert copy.n_clusters == model.n_clusters
    assert copy.alphas == model.alphas
    assert not hasattr(copy, "coef_")
    search = GridSearchCV(make_pipeline(cs.FeatureClusterRegressor(verbose=1)), {})
    assert unfitted(search).estimator[0].verbose == 0


def test_preprocessing_is_fitted_without_the_held_out_samples():
    problem = cs.datasets.make_clustered_features(80, 6, 2, random_state=0)
    seen = []

    class Spy(StandardScaler):
        def fit(self, X, y=None, sample_weight=None):
            seen.append(len(X))
            return super().fit(X, y, sample_weight)

    model = make_pipeline(Spy(), cs.FeatureClusterRegressor(2)).fit(problem.X, problem.y)
    seen.clear()
    assert judged(model, problem.X, problem.y).n_test == 20
    assert set(seen) == {60}


def test_best_predictions_are_the_nearest(samples):
    model, X, y = samples
    found = judged(model, X, y)
    (best,) = (one for one in found.entries if one.role == "oracle")
    assert best.scores["R²"] > 0.99 > found.mine.scores["R²"]
    assert found.rival.name == "One ridge regression for all samples"


def test_tasks_in_columns_become_rows():
    Y = np.array([[1.0, np.nan], [2.0, 3.0]])
    rows = long(Data(np.array([[7.0], [8.0]]), Y), np.array(["a", "b"]))
    assert rows.y.tolist() == [1.0, 2.0, 3.0]
    assert rows.X[:, 0].tolist() == [7.0, 8.0, 8.0]
    assert rows.tasks.tolist() == ["a", "a", "b"]


def test_tasks_are_held_against_all_that_have_no_groups():
    X, y, tasks = cs.datasets.make_clustered_tasks(n_tasks=10, random_state=0).rows()
    found = judged(cs.TaskClusterRegressor(2), X, y, tasks=tasks)
    linear = {one.name.split(",")[0] for one in found.entries if one.role == "linear"}
    assert linear == {
        "One ridge regression for all tasks",
        "A ridge regression for each task",
        "Tasks about one common centre",
    }


# ---- Classes.


def test_scores_of_classes_are_those_of_scikit_learn():
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["malignant", "benign"])[y]
    model = make_pipeline(StandardScaler(), cs.FeatureClusterClassifier(2, random_state=0))
    found = judged(model, X, names)
    parts = hold_out(model, Data(X, names), 0.25, 0)
    fitted = unfitted(model).fit(parts[0].X, parts[0].y)
    chances = fitted.predict_proba(parts[1].X)
    scores = found.mine.scores
    assert tuple(scores) == ("Accuracy", "AUC", "Log loss")
    assert scores["AUC"] == pytest.approx(roc_auc_score(parts[1].y, chances[:, 1]))
    assert scores["Log loss"] == pytest.approx(log_loss(parts[1].y, chances))
    confusion = confusion_of(found)
    assert found.classes.tolist() == ["benign", "malignant"]
    wrong = confusion[0][1] + confusion[1][0]
    assert wrong == found.mine.n_wrong == round((1 - scores["Accuracy"]) * found.n_test)


def test_models_without_probabilities_are_compared_by_errors():
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), cs.FeatureClusterClassifier(2, loss="squared"))
    found = judged(model, X, y)
    assert found.metrics == ("Accuracy",)
    assert "McNemar" in found.against(found.rival).name
    assert "wrong" in verdict_on(model.fit(X, y), found).support[0]


def test_tasks_of_classes_have_an_area_and_a_log_loss():
    X, y, tasks = cs.datasets.make_clustered_tasks(n_tasks=8, random_state=0).rows()
    found = judged(cs.TaskClusterClassifier(2), X, y > 0, tasks=tasks)
    assert all(tuple(one.scores) == ("Accuracy", "AUC", "Log loss") for one in found.entries)


# ---- Sentences.


def test_a_tie_with_fewer_numbers_leads():
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), cs.FeatureClusterClassifier(3, alpha=1e-2)).fit(X, y)
    told = verdict_on(model, judged(model, X, y))
    assert told.headline.startswith("As good as logistic regression, with 3 numbers instead of 30")
    assert " of 143 wrong" in told.support[0]
    assert not re.search(r"% (lower|higher)", told.headline + told.support[0])


def test_a_copy_with_other_groups_is_told(features):
    """The first line speaks of what was judged, not only of the model that is shown."""
    model, X, y = features
    found = replace(judged(model, X, y), n_groups=5)
    told = verdict_on(model, found)
    assert f"with {model.n_clusters_} to 5 numbers instead of 40" in told.headline
    assert (
        f"That copy has 5 groups, the model of this page {model.n_clusters_}." in told.support[-1]
    )


def test_nothing_is_called_nothing(rng):
    X, y = rng.standard_normal((300, 6)), rng.standard_normal(300)
    model = cs.FeatureClusterRegressor(3, alpha=1.0).fit(X, y)
    headline = verdict_on(model, judged(model, X, y)).headline
    assert headline == "No better than always saying the mean: nothing was found."


def test_too_few_groups_are_called_worse(rng):
    X = rng.standard_normal((300, 6))
    y = X @ np.arange(-3.0, 3.0) + 0.1 * rng.standard_normal(300)
    model = cs.FeatureClusterRegressor(2).fit(X, y)
    headline = verdict_on(model, judged(model, X, y)).headline
    assert headline == "Worse than ridge regression: 2 numbers cannot replace 6 here."


def test_no_groups_are_called_so(rng):
    X = rng.standard_normal((300, 6))
    y = X @ np.arange(-3.0, 3.0) + 0.1 * rng.standard_normal(300)
    model = cs.FeatureClusterRegressor(6, alpha=1e-4).fit(X, y)
    headline = verdict_on(model, judged(model, X, y)).headline
    assert headline.startswith("No groups: every feature has its own weight; as good as ridge")


def test_one_expert_is_called_enough():
    table = OneRidge(0, 400, "random")
    model = table.model.fit(table.X, table.y)
    headline = verdict_on(model, judged(model, table.X, table.y)).headline
    assert headline.startswith("One expert is enough")


def test_grouped_features_that_are_better_are_called_better():
    problem = cs.datasets.make_clustered_features(160, 60, 3, noise=8.0, random_state=0)
    model = cs.FeatureClusterRegressorCV((2, 3, 4), random_state=0).fit(problem.X, problem.y)
    headline = verdict_on(model, judged(model, problem.X, problem.y)).headline
    assert headline.startswith("Better than ridge regression, with")


def test_boosting_is_the_price_of_staying_linear(rng):
    X = rng.uniform(-2, 2, (600, 4))
    y = X[:, 0] ** 2 + X[:, 1] + 0.1 * rng.standard_normal(600)
    model = cs.FeatureClusterRegressor(2).fit(X, y)
    told = verdict_on(model, judged(model, X, y))
    assert any("price of staying linear" in sentence for sentence in told.support)
