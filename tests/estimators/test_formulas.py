"""Formulas in Python and SQL are executed and compared with `predict`."""

import math
import sqlite3
from functools import cache

import numpy as np
import pandas as pd
import pytest

import clustruct as cs
from clustruct.losses import SquaredLoss

N = 400
HOSTILE = ["it's", 'say "yes"', "back\\slash", "{0} %s", "Größe ☃", "a\nb", "'); DROP TABLE x; --"]
TOWN, AGE = 'to"wn; --', "a'ge {}"
FACTORS = {
    AGE: cs.Factor("ordinal", bins=(25, 40, 65)),
    "doors": "nominal",
    "hour": cs.Factor("cyclic", bins=4),
    "all": cs.Factor(bins=2),
}
ORDERED = [AGE, "hour", "all"]
CASES = {
    "squared": (cs.FeatureClusterRegressor, {}),
    "poisson": (cs.FeatureClusterRegressor, {"loss": "poisson"}),
    "gamma": (cs.FeatureClusterRegressor, {"loss": "gamma"}),
    "logistic": (cs.FeatureClusterClassifier, {}),
    "squared classes": (cs.FeatureClusterClassifier, {"loss": "squared"}),
}
SEVERAL = {
    "outputs": (cs.FeatureClusterRegressor, {"loss": "poisson"}),
    "multinomial": (cs.FeatureClusterClassifier, {}),
    "classes": (cs.FeatureClusterClassifier, {"loss": "squared"}),
}


def policies(seed=0):
    """Rows with text, numbers, booleans, missing values, and bins of all kinds."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            TOWN: rng.choice(np.array([*HOSTILE, None], dtype=object), N),
            AGE: np.where(rng.random(N) < 0.1, np.nan, rng.integers(18, 90, N)),
            "doors": rng.integers(2, 6, N),
            "hour": rng.integers(0, 24, N).astype(float),
            "all": np.nan,
            "fleet": rng.random(N) < 0.4,
            "sex": pd.array(rng.choice(np.array(["f", "m", None], dtype=object), N), "string"),
            "power": rng.uniform(0.0, 2.0, N),
            'kW "net"': rng.integers(0, 3, N),
        }
    )


def targets(case, frame, rng):
    score = 0.6 * frame["power"] + 0.7 * (frame[TOWN] == "it's") - 0.5 * (frame[AGE] > 50)
    score = (score + 0.8 * frame["fleet"] + 0.2 * frame["doors"] - 1.0).to_numpy()
    noisy = score + rng.standard_normal(N)
    if case in ("logistic", "squared classes"):
        return np.where(noisy > 0.5, "'yes'", '"no"\n')
    if case in ("multinomial", "classes"):
        return np.digitize(noisy, [0.0, 1.0])
    counts = rng.poisson(np.exp(score)).astype(float)
    if case == "outputs":
        return np.column_stack([counts, counts[::-1]])
    return counts + 0.5 if case == "gamma" else counts


@cache
def fitted(case):
    """A model of a case with an offset, and other rows, some of them with unknown levels."""
    kind, parameters = (CASES | SEVERAL)[case]
    frame, rng = policies(), np.random.default_rng(1)
    target = targets(case, frame, rng)
    factors, solver = FACTORS, "auto"
    if case in SEVERAL:  # orders and bins are for one output
        frame, factors, solver = frame.drop(columns=ORDERED), {"doors": "nominal"}, "greedy"
    model = kind(22, alpha=1e-3, factors=factors, solver=solver, **parameters)
    offset = rng.uniform(-1.0, 0.0, N) if case in CASES else None
    model.fit(frame, target, offset=offset)
    new = policies(seed=2)
    new.loc[:20, TOWN] = "island"
    new.loc[10:30, "doors"] = 9
    new.loc[5:15, "hour"] = np.nan
    new.loc[:7, "all"] = 1.0
    new.loc[40:60, AGE] = 25.0  # an edge
    return model, new[list(frame)], rng.uniform(-1.0, 0.0, N)


def expected(model, frame, offset=None):
    """What formulas are of, by the model."""
    if hasattr(model, "classes_"):
        if not hasattr(model, "predict_proba"):
            return model.decision_function(frame, offset)
        probabilities = model.predict_proba(frame, offset)
        return probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities
    return model.predict(frame, offset)


def by_python(model):
    """The function of the formula, which may use nothing but `math`."""
    space = {}
    exec(compile(model.to_python(), "formula", "exec"), space)
    imported = {name for name, value in space.items() if type(value) is type(math)}
    assert imported <= {"math"}
    return space["predict"]


def by_sql(statement, frame, table, **columns):
    """The last columns of the rows that a statement selects."""
    frame = frame.assign(**columns)
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    names = ", ".join('"' + str(name).replace('"', '""') + '"' for name in frame)
    quoted = '"' + table.replace('"', '""') + '"'
    with sqlite3.connect(":memory:") as base:
        base.create_function("exp", 1, math.exp)  # not in all builds of SQLite
        base.execute(f"CREATE TABLE {quoted} ({names})")
        base.executemany(f"INSERT INTO {quoted} VALUES ({','.join('?' * frame.shape[1])})", rows)
        cursor = base.execute(statement)
        found = np.array([row[frame.shape[1] :] for row in cursor], dtype=float)
    return found, [entry[0] for entry in cursor.description][frame.shape[1] :]


@pytest.mark.parametrize("case", [*CASES, *SEVERAL])
def test_python_gives_the_predictions(case):
    model, frame, offset = fitted(case)
    predict = by_python(model)
    rows = frame.to_dict("records")
    found = [predict(row) for row in rows]
    if case in ("multinomial", "classes"):
        assert list(found[0]) == model.classes_.tolist()
        found = [list(row.values()) for row in found]
    np.testing.assert_allclose(found, expected(model, frame), rtol=1e-12, atol=1e-12)
    if case in CASES:
        found = [predict(row, offset=o) for row, o in zip(rows, offset.tolist(), strict=True)]
        np.testing.assert_allclose(found, expected(model, frame, offset), rtol=1e-12, atol=1e-12)
    else:
        with pytest.raises(TypeError, match="offset"):
            predict(rows[0], offset=0.0)


@pytest.mark.parametrize("case", [*CASES, "outputs", "classes"])
def test_sql_gives_the_predictions(case):
    model, frame, offset = fitted(case)
    table = "pol'ic\"ies"
    found, names = by_sql(model.to_sql(table, name='a "guess"'), frame, table)
    wanted = expected(model, frame).reshape(N, -1)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    if case in CASES:
        assert names == ['a "guess"']
        statement = model.to_sql(table, offset="off set")
        found, _ = by_sql(statement, frame, table, **{"off set": offset})
        wanted = expected(model, frame, offset).reshape(N, -1)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    else:
        parts = model.classes_ if case == "classes" else range(2)
        assert names == [f'a "guess"_{each}' for each in parts]


def test_sql_takes_the_exposure():
    model, frame, offset = fitted("poisson")
    statement = model.to_sql("t", exposure="expo")
    found, _ = by_sql(statement, frame, "t", expo=np.exp(offset))
    np.testing.assert_allclose(found[:, 0], model.predict(frame, offset), rtol=1e-12)
    for other, arguments in [(model, {"offset": "o"}), (fitted("squared")[0], {})]:
        with pytest.raises(ValueError, match="Give offset alone"):
            other.to_sql("t", exposure="expo", **arguments)


def test_levels_that_share_an_effect_are_listed_together():
    frame = pd.DataFrame({"region": list("abcdefgh") * 20, "dull": ["x", "y"] * 80})
    y = frame["region"].isin(list("aceg")).to_numpy(float)
    model = cs.FeatureClusterRegressor({"region": 2, "dull": 1}).fit(frame, y)
    assert "'a', 'c', 'e', 'g'" in model.to_python()
    assert "IN ('b', 'd', 'f', 'h')" in model.to_sql("t")
    assert "dull" not in model.to_python() + model.to_sql("t")  # one group: nothing to tell apart


def test_long_lists_are_wrapped_and_missing_values_are_known():
    frame = pd.DataFrame({"post code": [f"no. {q:03d}" for q in range(200)] * 2})
    frame.loc[:3, "post code"] = None
    model = cs.FeatureClusterRegressor(3).fit(frame, np.arange(400) % 3 + 0.0)
    text, statement = model.to_python(), model.to_sql("t")
    assert max(map(len, (text + statement).splitlines())) <= 120
    predict, missing = by_python(model), model.predict(frame)[0]
    for value in (None, np.nan, pd.NA, pd.NaT):
        assert predict({"post code": value}) == pytest.approx(missing, rel=1e-12)
    found, _ = by_sql(statement, frame, "t")
    np.testing.assert_allclose(found[:, 0], model.predict(frame), rtol=1e-12)


@pytest.mark.parametrize("case", ["squared", "sparse", "logistic", "no names"])
def test_plain_features_have_formulas_too(case):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 120)).round(3)
    y = X @ np.repeat([1.0, -0.5, 0.0], 40) + 0.1 * rng.standard_normal(300)
    frame = pd.DataFrame(X, columns=[f'column "{j}"' for j in range(120)])
    if case == "no names":
        frame.columns = [f"x{j}" for j in range(120)]
    n_nonzero = 80 if case == "sparse" else None
    kind = cs.FeatureClusterClassifier if case == "logistic" else cs.FeatureClusterRegressor
    model = kind(3, n_nonzero=n_nonzero, solver="greedy")
    model.fit(X if case == "no names" else frame, y > 0.0 if case == "logistic" else y)
    samples = X if case == "no names" else frame
    predict = by_python(model)
    assert "known" not in model.to_python()
    found = [predict(row) for row in frame.to_dict("records")]
    np.testing.assert_allclose(found, expected(model, samples), rtol=1e-11, atol=1e-12)
    found, _ = by_sql(model.to_sql("t"), frame, "t")
    np.testing.assert_allclose(found[:, 0], expected(model, samples), rtol=1e-11, atol=1e-12)


def test_far_scores_do_not_overflow():
    X = np.array([[-1.0], [1.0]] * 20)
    model = cs.FeatureClusterClassifier(1).fit(X, X[:, 0] > 0)
    predict = by_python(model)
    assert predict({"x0": -1e6}) == 0.0
    assert predict({"x0": 1e6}) == 1.0


# ---- What has no formula


class OwnLink(SquaredLoss):
    """The squared loss of a score whose prediction is its cube."""

    quadratic = False

    def predictions(self, scores):
        return scores**3


def test_what_cannot_be_written_is_refused():
    frame, y = (
        pd.DataFrame({"when": pd.date_range("2020", periods=3).tolist() * 10}),
        np.arange(30.0),
    )
    model = cs.FeatureClusterRegressor(2).fit(frame.astype("category"), y)
    with pytest.raises(ValueError, match=r"type Timestamp.*Convert the column to text"):
        model.to_python()
    model = cs.FeatureClusterRegressor(2).fit(pd.DataFrame({"a": ["x\0", "y"] * 15}), y)
    by_python(model)
    with pytest.raises(ValueError, match="null character"):
        model.to_sql("t")
    with pytest.raises(ValueError, match="null character"):
        model.to_sql("\0")
    with pytest.raises(ValueError, match=r"classes\. Use to_python"):
        fitted("multinomial")[0].to_sql("t")
    model = cs.FeatureClusterRegressor(2, loss=OwnLink()).fit(np.eye(30)[:, :3], y)
    with pytest.raises(ValueError, match="neither the identity nor the logarithm"):
        model.to_python()
    several = cs.FeatureClusterRegressor(2).fit(np.eye(30)[:, :3], np.eye(30)[:, :2], offset=y)
    with pytest.raises(ValueError, match="Fit a model for each output"):
        several.to_python()
