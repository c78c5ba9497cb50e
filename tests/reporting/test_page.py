"""What a reader of the report learns: classes by name, raw units, differences, warnings."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import clustruct as cs
from clustruct.figures.numbers import score_text, shown, signed
from clustruct.reporting.differences import compared
from clustruct.reporting.wording import name_list, tidy
from clustruct.results.tables import plural
from tests.reporting.conftest import embedded
from tests.reporting.test_report import visible

pandas = pytest.importorskip("pandas")


def section(text, name):
    """The words of one section."""
    begin = text.index(f'id="{name}"')
    ends = [text.find(end, begin) for end in ("</section>", "</details>")]
    return visible(text[text.index(">", begin) + 1 : min(end for end in ends if end > 0)])


def warnings_of(text):
    return section(text, "warnings") if 'id="warnings"' in text else ""


# ---- Classes by name.


@pytest.fixture(scope="module")
def tumours():
    """Two classes, columns on scales of their own."""
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.normal(0, 1, (200, 4)) * [1, 400, 0.003, 5] + 7, columns=list("abcd"))
    score = ((X - X.mean()) / X.std()) @ [2.0, 2.0, -1.0, 0.0]
    y = np.where(score + rng.logistic(0, 1, 200) > 0, "malignant", "benign")
    return X, y


@pytest.fixture(scope="module")
def diagnosis(tumours):
    return make_pipeline(StandardScaler(), cs.FeatureClusterClassifier(3)).fit(*tumours)


def test_two_classes_are_named_where_weights_are(read, diagnosis, tumours):
    text = read(diagnosis, *tumours, test_size=0)
    groups = section(text, "groups")
    assert "weight (log odds of malignant)" in groups
    assert "A positive weight raises the odds of malignant" in groups
    assert "a negative one raises the odds of benign" in groups
    largest = diagnosis[-1].cluster_values_.max()
    assert f"odds of malignant × {shown(float(np.exp(largest)))}" in groups  # noqa: RUF001
    assert "weight: log odds of malignant per standard deviation" in section(text, "pictures")


def test_a_group_has_a_weight_for_every_named_class(read, rng):
    X = rng.standard_normal((150, 5))
    y = np.array(["oak", "ash", "elm"])[X[:, :3].argmax(axis=1)]
    model = cs.FeatureClusterClassifier(3).fit(X, y)
    text = read(model, X, y, test_size=0)
    cells = re.findall(r'data-class="(\w+)">([^<]*)<', text)
    assert [name for name, _ in cells] == ["ash", "elm", "oak"] * 3
    assert [value for _, value in cells] == [shown(w) for w in model.cluster_values_.ravel()]
    assert embedded(text)["columns"][2:5] == ["weight: ash", "weight: elm", "weight: oak"]
    assert "Weights for each class" in section(text, "pictures")
    assert "elm: " in text  # what a dot tells when pointed at


def test_many_classes_are_told_by_their_largest_weights(read, rng):
    X = rng.standard_normal((300, 11))
    y = np.array([f"kind {k}" for k in range(10)])[X[:, :10].argmax(axis=1)]
    text = read(cs.FeatureClusterClassifier(4).fit(X, y), X, y, test_size=0)
    strips = re.findall(r'class="strip">(.*?)</td>', text)
    assert len(strips) == 4
    assert all(strip.count("kind ") == 8 for strip in strips)
    assert embedded(text)["columns"] == ["feature", "group", "largest weight", "of"]


def test_a_score_that_is_no_log_odds_is_not_called_so(read, tumours):
    X, y = tumours
    model = make_pipeline(StandardScaler(), cs.FeatureClusterClassifier(2, loss="squared"))
    groups = section(read(model.fit(X, y), X, y, test_size=0), "groups")
    assert "raises the score of malignant" in groups
    assert "odds" not in groups


# ---- Raw units.


def test_features_are_listed_with_the_effect_of_a_raw_unit(read, diagnosis, tumours):
    X, y = tumours
    found = embedded(read(diagnosis, X, y, test_size=0))
    assert found["columns"] == ["feature", "group", "weight", "effect", "unit", "odds ratio"]
    units = {"a": ("per unit", 1), "b": ("per 1,000", 1000), "c": ("per 0.001", 0.001)}
    for name, _, weight, effect, unit, ratio in found["rows"]:
        text, step = units.get(name, ("per unit", 1))
        assert unit == text
        moved = X.assign(**{name: X[name] + step})
        change = diagnosis.decision_function(moved) - diagnosis.decision_function(X)
        assert effect == pytest.approx(change[0], rel=1e-3, abs=1e-5)
        assert ratio == pytest.approx(np.exp(effect), rel=1e-3)
        assert weight == pytest.approx(diagnosis[-1].coef_[0, list(X).index(name)], rel=1e-4)


def test_levels_are_compared_and_words_have_no_unit(read, rng):
    X = pandas.DataFrame(
        {"size": rng.normal(80, 20, 120), "heat": rng.choice(["gas", "oil", "wood"], 120)}
    )
    y = X["size"] / 20 + 3 * (X["heat"] == "gas") + rng.normal(0, 0.1, 120)
    steps = ColumnTransformer(
        [("a", StandardScaler(), ["size"]), ("b", OneHotEncoder(), ["heat"])],
        verbose_feature_names_out=False,
    )
    model = make_pipeline(steps, cs.FeatureClusterRegressor(3, alpha=1e-6)).fit(X, y)
    text = read(model, X, y, test_size=0)
    rows = {row[0]: row for row in embedded(text)["rows"]}
    assert rows["size"][4] == "per 10"
    assert rows["size"][3] == pytest.approx(0.5, abs=0.05)
    assert rows["heat_gas"][4] == "against the other levels"
    assert rows["heat_gas"][3] == pytest.approx(3.0, abs=0.1)
    assert "+3.01 against the other levels" in section(text, "groups")


@pytest.mark.parametrize(
    ("vectorizer", "words"),
    [(TfidfVectorizer(), "TF-IDF, which has no raw unit"), (CountVectorizer(), "per occurrence")],
)
def test_words_say_what_their_unit_is(read, vectorizer, words):
    texts = ["good film", "bad film", "good good book", "bad book"] * 10
    y = np.array([1.0, 0.0, 2.0, 0.0] * 10)
    model = make_pipeline(vectorizer, cs.FeatureClusterRegressor(2)).fit(texts, y)
    assert words in read(model, texts, y, test_size=0)


def test_plain_lists_are_samples_too(read, rng):
    X = rng.standard_normal((40, 3))
    model = cs.FeatureClusterRegressor(2).fit(X, X[:, 0])
    read(model, X.tolist(), X[:, 0].tolist())


def test_without_scaling_the_axis_says_unit_and_nothing_is_told_twice(read, features):
    text = read(*features, test_size=0)
    assert "weight: prediction per standard deviation" in text  # columns have deviation one
    assert embedded(text)["columns"] == ["feature", "group", "weight"]
    model, X, y = features
    model = cs.FeatureClusterRegressor(3).fit(5 * X, y)
    assert "weight: prediction per unit" in read(model, 5 * X, y, test_size=0)


# ---- How they differ.


@pytest.fixture(scope="module")
def houses():
    """Near town the size counts four times as much, and the gate can see the distance."""
    rng = np.random.default_rng(0)
    X = pandas.DataFrame({"size": rng.normal(80, 25, 400), "distance": rng.uniform(0, 10, 400)})
    near = X["distance"] < 5
    y = np.where(near, 400 + 4 * X["size"], 100 + X["size"]) + rng.normal(0, 5, 400)
    return X, y


def experts_of(houses, **options):
    model = cs.SampleClusterRegressor(2, random_state=0, **options)
    return make_pipeline(StandardScaler(), model).fit(*houses)


def test_experts_say_how_they_differ_and_whom_the_gate_sends(read, houses):
    text = read(experts_of(houses, gate=True), *houses, test_size=0)
    said = section(text, "differences")
    assert (
        "size raises the prediction 4 \N{MULTIPLICATION SIGN} as much (+98.9 against +24.6" in said
    )
    assert "here +39.7 per 10" in said  # four for each of the 25 that a deviation is
    assert "For the average sample the prediction is 717, with the others 178" in said
    assert re.search(r"The gate sends it \d\d% of the samples, those with small distance", said)
    assert re.search(r"The gate sends it \d\d% of the samples, those with large distance", said)
    for title in (
        "Weights of the experts",
        "Prediction for the average sample",
        "the gate looks at",
    ):
        assert title in said


def test_without_a_gate_it_says_that_nothing_chooses(read, houses):
    said = section(read(experts_of(houses), *houses, test_size=0), "differences")
    assert "There is no gate" in said
    assert "sends" not in said


def test_experts_for_classes_name_the_class(read):
    problem = cs.datasets.make_experts(
        160, 3, 2, n_outputs=3, noise=0.2, classification=True, random_state=0
    )
    y = np.array(["oak", "ash", "elm"])[problem.y]
    model = cs.SampleClusterClassifier(2, n_init=1, random_state=0).fit(problem.X, y)
    said = section(read(model, problem.X, y, test_size=0), "differences")
    assert re.search(r"x\d (raises|lowers) the odds of (oak|ash|elm)", said)
    assert re.search(r"For the average sample the log odds of (oak|ash|elm) are", said)


def test_groups_of_tasks_say_how_they_differ(read):
    X, y, tasks = cs.datasets.make_clustered_tasks(n_tasks=9, n_clusters=3, random_state=0).rows()
    model = cs.TaskClusterRegressor(3).fit(X, y, tasks=tasks)
    said = section(read(model, X, y, tasks=tasks, test_size=0), "differences")
    assert len(re.findall(r"Group \d", said)) == 3
    assert "Weights of the groups" in said
    assert said.count("For the average sample the prediction is") == 3


def test_one_expert_differs_from_nobody(read, houses):
    X, y = houses
    text = read(cs.SampleClusterRegressor(1, gate=True, random_state=0).fit(X, y), X, y)
    assert 'id="differences"' not in text
    assert "One expert: a single linear model" in visible(text)
    assert "1 experts" not in text
    assert "The gate does not help" not in text
    assert "in which the experts differ" not in text
    assert "1 groups" not in text


@pytest.mark.parametrize(
    ("mine", "others", "words"),
    [
        (3.1, 1.0, "raises it 3.1 × as much (+3.1 against +1)"),  # noqa: RUF001
        (-0.5, -1.0, "lowers it less, 0.5 × as much"),  # noqa: RUF001
        (0.01, -1.0, "hardly changes it"),
        (-1.0, 0.01, "lowers it, for the others hardly"),
        (1.0, -2.0, "raises it, for the others the reverse"),
        (1.0, 0.95, "raises it about as much"),
    ],
)
def test_weights_are_compared_in_words(mine, others, words):
    assert words in compared("price", mine, others, "it")


# ---- Nothing decorative.


def test_two_steps_are_no_curve(read, features):
    _, X, y = features
    many = cs.FeatureClusterRegressor(3, solver="pg", init="zeros", alpha=1e-4).fit(X, y)
    assert sum(step.number > 0 for step in many.trace_) >= 5
    assert "Convergence" in section(read(many, X, y, test_size=0), "details")
    few = cs.FeatureClusterRegressor(3).fit(X, y)
    assert sum(step.number > 0 for step in few.trace_) < 5
    assert "Convergence" not in read(few, X, y, test_size=0)


def test_what_the_solver_did_is_folded_away_at_the_end(read, features):
    model, X, y = features
    text = read(model, X, y)
    before, details = text.split('<details class="panel" id="details">')
    told = model.status_.message.split(":")[0] + ": "
    assert told in visible(details)
    assert told not in visible(before)
    assert "from the best possible" not in visible(before.split("<nav")[0])
    assert "not about how well new ones are predicted" in visible(details)
    assert "</details>\n</main>" in text


def test_there_is_one_objective(read, features):
    """Weights that were fitted anew have another one than the steps before."""
    _, X, y = features
    model = cs.FeatureClusterRegressorCV((3,), alphas=(1.0,), relax=(0.01,), cv=3).fit(X, y)
    assert model.objective_ != pytest.approx(dict(model.status_.objectives)["pg"], rel=1e-3)
    assert shown(model.objective_, 5) not in read(model, X, y, test_size=0)


def test_sections_are_in_the_order_in_which_they_matter(read, houses):
    text = read(experts_of(houses, gate=True), *houses)
    names = re.findall(r'<(?:section|details)[^>]* id="([\w-]+)"', text)
    wanted = ["how-well", "groups", "differences", "pictures", "members", "use", "details"]
    assert [name for name in names if name != "warnings"] == wanted


# ---- Warnings that matter.


def test_warns_of_columns_whose_large_weights_cancel(read, rng):
    """As in a table of flights: departure and planned departure, nearly the same."""
    planned = rng.uniform(5, 23, 400)
    late = rng.normal(0, 0.05, 400)
    X = pandas.DataFrame(
        {"dep_time": planned + late, "sched_dep_time": planned, "miles": rng.normal(1000, 300, 400)}
    )
    y = 15 * late + 0.2 * rng.standard_normal(400)
    model = make_pipeline(StandardScaler(), cs.FeatureClusterRegressor(3, alpha=1e-9)).fit(X, y)
    text = warnings_of(read(model, X, y, test_size=0))
    weights = dict(zip(X, model[-1].coef_, strict=True))
    for name in ("dep_time", "sched_dep_time"):
        assert f"{name} ({signed(weights[name], 4)})" in text
    assert re.search(r"have a correlation of (1|0\.99\d+), and their large weights nearly", text)
    assert "miles" not in text
    shared = make_pipeline(StandardScaler(), cs.FeatureClusterRegressor(2, alpha=0.1)).fit(X, y)
    assert "cancel" not in warnings_of(read(shared, X, y, test_size=0))


def test_a_third_column_that_matters_hides_no_cancelling(read, rng):
    """As in a table of flights: time in the air and distance, beside the delay at departure."""
    miles, late = rng.normal(1000, 500, 500), rng.normal(0, 40, 500)
    X = pandas.DataFrame({"air_time": miles / 8 + rng.normal(0, 8, 500), "distance": miles})
    X["dep_delay"] = late
    y = late + X["air_time"] - miles / 8 + rng.normal(0, 5, 500)
    model = make_pipeline(StandardScaler(), cs.FeatureClusterRegressor(3, alpha=1e-9)).fit(X, y)
    text = warnings_of(read(model, X, y, test_size=0))
    assert "their large weights nearly cancel" in text
    assert "dep_delay" not in text


def test_warns_of_three_columns_that_are_tied(read, rng):
    a, b = rng.normal(size=(2, 300))
    X = np.column_stack([a, b, a + b + 0.01 * rng.normal(size=300)])
    y = 100 * (X[:, 2] - a - b)
    text = warnings_of(read(cs.FeatureClusterRegressor(3, alpha=1e-9).fit(X, y), X, y, test_size=0))
    assert "are tied to each other" in text


def test_names_the_columns_on_other_scales(read):
    problem = cs.datasets.make_clustered_features(100, 6, 2, random_state=0)
    X = pandas.DataFrame(problem.X * [1, 1, 1, 0.5, 1000, 2000], columns=list("abcdef"))
    text = warnings_of(read(cs.FeatureClusterRegressor(2).fit(X, problem.y), X, problem.y))
    assert re.search(r"d has a standard deviation of 0\.[45]\d*, f of [12],\d\d\d", text)


def test_warns_of_a_column_that_was_filled(read, rng):
    X = pandas.DataFrame(rng.normal(size=(200, 2)), columns=["full", "depth"])
    y = X["full"].to_numpy() + rng.normal(0, 0.1, 200)
    X.loc[6:, "depth"] = np.nan
    for table in (X, X.to_numpy()):
        model = make_pipeline(SimpleImputer(), StandardScaler(), cs.FeatureClusterRegressor(2))
        text = warnings_of(read(model.fit(table, y), table, y, test_size=0))
        name = "depth" if table is X else "x1"
        assert f"{name} is missing in 97% of the rows and was filled there" in text
        assert "rests on the 6 rows that have it" in text
        assert "full" not in text


def test_warns_of_choices_at_the_end_of_their_grid(read, features):
    """Only where the score still improved towards the end."""
    _, X, y = features
    model = cs.FeatureClusterRegressorCV((3, 4), alphas=(10.0, 3.0, 1.0), cv=3).fit(X, y)
    text = warnings_of(read(model, X, y, test_size=0))
    assert "The smallest alpha that was tried, 1, was chosen and is clearly better than 3." in text
    wide = cs.FeatureClusterRegressorCV((3, 4), alphas=(1e-3, 1e-4, 1e-5), cv=3).fit(X, y)
    assert "alpha that was tried" not in warnings_of(read(wide, X, y, test_size=0))


def test_as_many_groups_as_features_are_no_end_of_a_grid(read, rng):
    X = rng.standard_normal((60, 3))
    y = X @ [1.0, 5.0, -7.0]
    model = cs.FeatureClusterRegressorCV((2, 3), alphas=(1e-4,), cv=3).fit(X, y)
    assert "largest number" not in warnings_of(read(model, X, y, test_size=0))


def test_warns_of_groups_that_rest_on_a_handful_of_rows(read, rng):
    X = pandas.DataFrame(
        {"a": rng.normal(size=150), "heat": ["coal"] * 4 + ["gas"] * 80 + ["oil"] * 66}
    )
    y = X["a"] + 50 * (X["heat"] == "coal") + rng.normal(0, 0.1, 150)
    steps = ColumnTransformer(
        [("a", StandardScaler(), ["a"]), ("b", OneHotEncoder(), ["heat"])],
        verbose_feature_names_out=False,
    )
    model = make_pipeline(steps, cs.FeatureClusterRegressor(3, alpha=1e-4)).fit(X, y)
    text = warnings_of(read(model, X, y, test_size=0))
    assert re.search(r"Group \d \(heat_coal\) rests on 4 rows", text)
    assert "heat_gas" not in text


def test_warns_of_an_expert_and_of_tasks_with_few_rows(read, rng):
    X = rng.standard_normal((100, 2))
    y = np.where(np.arange(100) < 8, 500 + X[:, 0] * 90, X[:, 1])
    model = cs.SampleClusterRegressor(2, random_state=0).fit(X, y)
    assert "Expert 1 rests on 8 samples" in warnings_of(read(model, X, y, test_size=0))
    tasks = np.where(np.arange(100) < 8, "small", "large")
    model = cs.TaskClusterRegressor(2, alpha_within=0.1, alpha_between=1e-6)
    text = read(model.fit(X, y, tasks=tasks), X, y, tasks=tasks, test_size=0)
    assert model.n_clusters_ == 2
    assert "rests on 8 rows" in warnings_of(text)


def test_equal_weight_is_never_called_equal_meaning():
    root = Path(__file__).parents[2]
    for page in [root / "README.md", *(root / "docs").glob("*.md")]:
        text = re.sub(r"\s+", " ", page.read_text(encoding="utf-8"))
        for claim in re.findall(r"[^.]*\bmean the same\b[^.]*", text):
            assert "not say" in claim, page


# ---- Numbers.


def test_what_is_zero_to_rounding_is_zero(read, rng):
    X = rng.standard_normal((100, 4))
    y = 3.0 * X[:, 0]
    text = read(cs.FeatureClusterRegressor(2, alpha=0.0).fit(X, y), X, y, test_size=0)
    assert not re.search(r"\d[eE]-1\d", visible(text))
    assert {row[2] for row in embedded(text)["rows"]} == {0.0, 3.0}
    assert tidy(np.array([3.0, -1.766e-14])).tolist() == [3.0, 0.0]


def test_a_score_that_is_zero_to_four_decimals_is_zero():
    assert score_text(-4.927e-07, "R²") == "0"
    assert score_text(0.98222, "R²") == "0.9822"
    assert score_text(4.92712e-07, "RMSE") == "4.927e-07"


def test_words_for_numbers_and_names():
    assert (signed(0.5), signed(-0.5), signed(0.0)) == ("+0.5", "-0.5", "0")
    assert (plural(1, "expert"), plural(1200, "expert")) == ("1 expert", "1,200 experts")
    assert name_list(["a"]) == "a"
    assert name_list(["a", "b", "c"]) == "a, b and c"
    assert name_list(list("abcdef"), 2) == "a, b and 4 more"


def test_groups_by_evidence_are_told_as_such(read):
    rng = np.random.default_rng(5)
    X, tasks = rng.standard_normal((300, 4)), np.repeat(np.arange(30), 10)
    weights = rng.choice([-1.0, 2.0], 30)[tasks, None]
    y = (X * weights).sum(axis=1) + rng.standard_normal(300)
    model = cs.TaskClusterRegressorCV((1, 2, 5), use_inputs=False, random_state=0)
    model.fit(X, y, tasks=tasks)
    assert model.cv_results_.by_evidence
    assert model.n_clusters_ == 2
    text = read(model, X, y, tasks=tasks, test_size=0)
    assert "Chosen: 2, by evidence." in text
