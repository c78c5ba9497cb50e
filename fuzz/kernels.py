"""Projections and kernels against exact arithmetic and independent routes.

A few numbers are compared with the optimum in integers of any length (`exact`); more of them with
other routes to the same answer, and with what a change of order or of scale must leave alone.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import clustruct as cs
from fuzz import exact, plain_kernels
from fuzz.cases import Fault, Random, Recipe, Target
from fuzz.messages import is_useless
from fuzz.shrinking import with_entry, without_parts
from fuzz.values import FORMS, draw_form, draw_values, draw_weights

SMALL = 9
# Promised (docs/kernels.md): the excess over the least cost is at most so much of that cost,
# of the cost of one group, and for more than so many values of n W R^2.
OF_LEAST, OF_ONE_GROUP, OF_REACH = Fraction(1, 10**13), Fraction(1, 10**16), Fraction(1, 10**30)
FEW_DISTINCT = 32
# Costs below this share of W R^2, and values below this one of the largest, may underflow.
LOST, VANISHING = Fraction(1, 10**270), Fraction(2) ** -1000
# Of `segment_1d`, times n, of the weight times the largest squared distance from the mean.
SEGMENTS_RESOLVED = Fraction(2, 10**15)
DIGITS = 1e-12
# Below the smallest normal number, doubles have fewer digits.
LEAST, LARGEST = Fraction(2) ** -1022, Fraction(np.finfo(float).max)


class Subject(NamedTuple):
    """A function with its share of cases."""

    share: float
    draw: Callable[[Random], Recipe]
    check: Callable[[Recipe], str]


# ---- k-means of numbers


def _draw_kmeans(rng: Random) -> Recipe:
    n = int(rng.integers(1, SMALL + 1))
    return {
        "x": draw_values(rng, n),
        "w": draw_weights(rng, n),
        "n_clusters": int(rng.integers(1, n + 2)),
        "form": draw_form(rng),
    }


def _check_kmeans(recipe: Recipe) -> str:
    x, w, n_clusters = recipe["x"], recipe["w"], recipe["n_clusters"]
    found = cs.kmeans_1d(_formed(x, recipe["form"]), n_clusters, sample_weight=w)
    labels = found.labels.tolist()
    _check_groups(x, w, labels, found.centers.tolist(), found.sizes.tolist(), n_clusters)
    sequence = _ascending(x, w)
    least = sequence.fraction(exact.least_costs(sequence, min(n_clusters, sequence.n))[-1])
    cost = exact.cost_of_labels(x, w, labels)
    _check_optimal("kmeans_1d", cost, least, _promised(sequence, least))
    _check_number("kmeans_1d: inertia", found.inertia, cost, LOST * _reach(sequence))
    return "exact"


def _promised(sequence: exact.Sequenced, least: Fraction) -> Fraction:
    """The excess over the least cost that is allowed."""
    if len(set(sequence.x)) <= FEW_DISTINCT:
        return OF_LEAST * least + OF_ONE_GROUP * sequence.fraction(sequence.cost(0, sequence.n))
    return OF_LEAST * least + OF_REACH * sequence.n * _reach(sequence)


def _reach(sequence: exact.Sequenced) -> Fraction:
    """The sum of the weights times the largest square."""
    largest = max(map(abs, sequence.x)) ** 2
    mass = sequence.moments[0][-1]
    return largest * mass * exact.two_to(2 * sequence.exponent + sequence.w_exponent)


def _ascending(x: list[float], w: list[float] | None) -> exact.Sequenced:
    """The values of positive weight in their order."""
    if w is None:
        return exact.Sequenced(sorted(x), None)
    pairs = sorted((a, b) for a, b in zip(x, w, strict=True) if b > 0.0)
    return exact.Sequenced([a for a, _ in pairs], [b for _, b in pairs])


def _check_groups(
    x: list[float],
    w: list[float] | None,
    labels: list[int],
    centers: list[float],
    sizes: list[int],
    most: int,
) -> None:
    """Labels, centres and sizes agree; groups are intervals, and centres their means."""
    if len(centers) > most or sorted(set(labels)) != list(range(len(centers))):
        raise Fault("kmeans_1d: labels and centres differ in number", f"{labels} {centers}")
    if np.bincount(labels).tolist() != sizes:
        raise Fault("kmeans_1d: sizes are not those of the labels", f"{labels} {sizes}")
    order = sorted(range(len(x)), key=lambda i: (x[i], labels[i]))
    pairs = list(itertools.pairwise(order))
    if any(labels[i] > labels[j] or (x[i] == x[j] and labels[i] != labels[j]) for i, j in pairs):
        raise Fault("kmeans_1d: groups are no intervals", f"{x} {labels}")
    vanishing = VANISHING * Fraction(max(map(abs, x)))
    for q, center in enumerate(centers):
        rows = [i for i, label in enumerate(labels) if label == q and (w is None or w[i] > 0.0)]
        mine = None if w is None else [w[i] for i in rows]
        _check_mean([x[i] for i in rows], mine, center, vanishing)


def _check_mean(x: list[float], w: list[float] | None, center: float, vanishing: Fraction) -> None:
    """A centre is the mean, to one unit in the last place."""
    sequence = exact.Sequenced(x, w)
    mean = sequence.mean(0, sequence.n)
    allowed = Fraction(math.ulp(float(mean))) + vanishing
    # Weights of equal values are added first, and vanishing ones are equal.
    if w is not None and len({value if abs(value) > vanishing else 0.0 for value in x}) < len(x):
        allowed += 4 * Fraction(2) ** -53 * (Fraction(max(x)) - Fraction(min(x)))
    if not math.isfinite(center) or abs(Fraction(center) - mean) > allowed:
        raise Fault("a centre is not the mean of its group", f"{center!r} for {x} {w}")


def _check_optimal(name: str, cost: Fraction, least: Fraction, noise: Fraction) -> None:
    if cost - least > noise:
        share = _as_float((cost - least) / least) if least else math.inf
        raise Fault(f"{name}: the groups are not the best", f"excess of {share:.3g} of the optimum")


def _as_float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _check_number(what: str, number: float, right: Fraction, noise: Fraction) -> None:
    """A number is right to twelve digits or to the noise, or infinite where it must be."""
    allowed = Fraction(DIGITS) * right + noise + LEAST
    if math.isnan(number) or (math.isinf(number) and right + allowed < LARGEST):
        raise Fault(f"{what} is not finite", f"{number!r}, not {_as_float(right)!r}")
    if math.isfinite(number) and abs(Fraction(number) - right) > allowed:
        raise Fault(f"{what} is not that of its labels", f"{number!r}, not {_as_float(right)!r}")


def _formed(x: list[float], form: str) -> Any:
    return FORMS[form](np.array(x))


# ---- Sparse and clustered


def _draw_projection(rng: Random) -> Recipe:
    recipe = _draw_kmeans(rng)
    n = len(recipe["x"])
    recipe["n_nonzero"] = None if rng.random() < 0.2 else int(rng.integers(0, n + 2))
    if rng.random() < 0.7:
        recipe["w"] = None
    if recipe["n_nonzero"] is not None and rng.random() < 0.1:
        recipe["n_clusters"] = None
    return recipe


def _check_projection(recipe: Recipe) -> str:
    x, w = recipe["x"], recipe["w"]
    n_clusters, n_nonzero = recipe["n_clusters"], recipe["n_nonzero"]
    found = cs.project_clustered(
        _formed(x, recipe["form"]), n_clusters, n_nonzero=n_nonzero, sample_weight=w
    )
    labels, point = found.labels.tolist(), found.point.tolist()
    padded = [*found.centers.tolist(), 0.0]
    if point != [padded[label] for label in labels]:
        raise Fault("project_clustered: the point is not that of its labels")
    nonzero = sum(label >= 0 for label in labels)
    if n_nonzero is not None and nonzero > n_nonzero:
        raise Fault("project_clustered: too many entries are not zero", f"{nonzero}")
    if n_clusters is not None and len(padded) - 1 > n_clusters:
        raise Fault("project_clustered: too many values", f"{padded}")
    apart = _distance(x, w, point)
    sequence = _ascending(x, w)
    _check_number("project_clustered: distance", found.sq_distance, apart, LOST * _reach(sequence))
    cost = exact.cost_of_labels(x, w, labels, zero=-1)
    counted = w is None or len({weight for weight in w if weight > 0.0}) <= 1
    least = _least_distance(x, w, n_clusters, n_nonzero, equal=counted)
    noise = _promised_sparse(sequence, least)
    if found.exact:
        _check_optimal("project_clustered", cost, least, noise)
    elif cost < least - noise:
        raise Fault("project_clustered: better than the best")
    return "exact" if found.exact else "heuristic"


def _promised_sparse(sequence: exact.Sequenced, least: Fraction) -> Fraction:
    return OF_LEAST * (least + sequence.fraction(sequence.cost(0, sequence.n)))


def _distance(x: list[float], w: list[float] | None, point: list[float]) -> Fraction:
    """``sum w (x - p)^2``."""
    weights = [1.0] * len(x) if w is None else w
    rows = zip(x, point, weights, strict=True)
    return sum(((Fraction(a) - Fraction(b)) ** 2 * Fraction(c) for a, b, c in rows), Fraction(0))


def _least_distance(
    x: list[float],
    w: list[float] | None,
    n_clusters: int | None,
    n_nonzero: int | None,
    equal: bool,
) -> Fraction:
    """The least squared distance; a lower bound of it where weights differ and entries are few."""
    sequence = _ascending(x, w)
    most = min(sequence.n, sequence.n if n_clusters is None else n_clusters)
    if n_nonzero is None:
        return sequence.fraction(exact.least_costs(sequence, most)[-1])
    kept = min(n_nonzero, sequence.n)
    if equal:
        return sequence.fraction(exact.least_sparse_cost(sequence, most, kept))
    if n_clusters is None:
        weights = [1.0] * len(x) if w is None else w
        squares = [Fraction(a) ** 2 * Fraction(b) for a, b in zip(x, weights, strict=True)]
        return sum(sorted(squares)[: len(x) - n_nonzero] if n_nonzero < len(x) else [], Fraction(0))
    return sequence.fraction(exact.least_sparse_cost(sequence, most, sequence.n))


# ---- Segments of a sequence


def _draw_segments(rng: Random) -> Recipe:
    n = int(rng.integers(1, 8))
    x, w = draw_values(rng, n), draw_weights(rng, n)
    priced = rng.random() < 0.5
    recipe: Recipe = {
        "x": x,
        "w": w,
        "kind": str(rng.choice(["ordinal", "monotone", "cyclic"])),
        "decreasing": bool(rng.random() < 0.3),
        "n_segments": None if priced and rng.random() < 0.7 else int(rng.integers(1, n + 2)),
        "price": None,
        "min_weight": 0.0,
        "form": draw_form(rng),
    }
    if priced:
        with np.errstate(all="ignore"):
            mass = 1.0 if w is None else max(w)
            scale = float(np.square(np.ptp(x)) * mass)
        price = scale * 10.0 ** rng.uniform(-6.0, 1.0)
        recipe["price"] = price if math.isfinite(price) else 1.0
    if rng.random() < 0.3:
        # Whole numbers, so that sums of weights are exact and reach it or do not.
        recipe["w"] = [float(weight) for weight in rng.integers(0, 4, n) + (rng.random() < 0.7)]
        recipe["w"][0] += 1.0
        recipe["min_weight"] = float(rng.integers(0, 6))
    return recipe


def _check_segments(recipe: Recipe) -> str:
    x, w, price = recipe["x"], recipe["w"], recipe["price"]
    found = cs.segment_1d(
        _formed(x, recipe["form"]),
        recipe["n_segments"],
        price=price,
        kind=recipe["kind"],
        decreasing=recipe["decreasing"],
        sample_weight=w,
        min_weight=recipe["min_weight"],
    )
    labels, centers = found.labels.tolist(), found.centers.tolist()
    if np.bincount(labels, minlength=len(centers)).tolist() != found.sizes.tolist():
        raise Fault("segment_1d: sizes are not those of the labels")
    if not np.isfinite(centers).all():
        raise Fault("segment_1d: a centre is not finite", f"{centers}")
    circle, monotone = recipe["kind"] == "cyclic", recipe["kind"] == "monotone"
    changes = sum(a != b for a, b in itertools.pairwise(labels))
    whole = max(labels) + 1
    if changes + 1 - (circle and whole > 1 and labels[0] == labels[-1]) != whole:
        raise Fault("segment_1d: groups are no segments", f"{labels}")
    sign = 0 if not monotone else -1 if recipe["decreasing"] else 1
    if any(sign * (b - a) < 0.0 for a, b in itertools.pairwise(centers)):
        raise Fault("segment_1d: centres are out of order", f"{centers}")
    sequence = exact.Sequenced(x, w)
    line = sequence.doubled() if circle else sequence
    cuts = (exact.cuts_of_a_circle if circle else exact.cuts_of_a_line)(sequence.n)
    most = sequence.n if recipe["n_segments"] is None else recipe["n_segments"]
    # The objective has half the sum of squares.
    toll = sequence.integer(2 * Fraction(price or 0.0))
    least = exact.best_cut(line, cuts, most, toll, Fraction(recipe["min_weight"]), sign)
    cost = exact.cost_of_labels(x, w, labels)
    mean = sequence.mean(0, sequence.n)
    farthest = max(abs(Fraction(value) - mean) for value in x)
    mass = Fraction(sequence.moments[0][-1]) * exact.two_to(sequence.w_exponent)
    # Centres are rounded, the inertia is about them, and segments whose centres round to one number
    # are one segment.
    unit = Fraction(math.ulp(max(map(abs, x))))
    noise = mass * (SEGMENTS_RESOLVED * sequence.n * farthest**2 + sequence.n * unit**2)
    total = cost + (whole - 1) * 2 * Fraction(price or 0.0)
    _check_optimal("segment_1d", total, sequence.fraction(least), noise)
    _check_number("segment_1d: inertia", found.inertia, cost, noise)
    return "exact"


# ---- Larger inputs, by independent routes


def _draw_routes(rng: Random) -> Recipe:
    n = int(rng.integers(10, 120))
    return {
        "x": draw_values(rng, n),
        "w": draw_weights(rng, n),
        "n_clusters": int(rng.integers(1, 12)),
        "n_nonzero": int(rng.integers(0, n + 1)),
        "order": [int(i) for i in rng.permutation(n)],
        "power": int(rng.integers(-40, 40)),
    }


def _check_routes(recipe: Recipe) -> str:
    """Order and scale by a power of two change nothing; more groups do not cost more."""
    x, w, n_clusters = np.array(recipe["x"]), recipe["w"], recipe["n_clusters"]
    found = cs.kmeans_1d(x, n_clusters, sample_weight=w)
    order = np.array([i for i in recipe["order"] if i < x.size])
    order = np.concatenate([order, np.setdiff1d(np.arange(x.size), order)])
    again = cs.kmeans_1d(
        x[order], n_clusters, sample_weight=None if w is None else np.array(w)[order]
    )
    if w is None and not np.array_equal(again.labels, found.labels[order]):
        raise Fault("kmeans_1d: labels depend on the order of the values")
    largest = np.abs(x).max()
    with np.errstate(all="ignore"):
        scaled = np.ldexp(x, recipe["power"])
    if 1e-200 < largest < 1e200 and np.array_equal(np.ldexp(scaled, -recipe["power"]), x):
        other = cs.kmeans_1d(scaled, n_clusters, sample_weight=w)
        if not np.array_equal(other.labels, found.labels):
            raise Fault("kmeans_1d: labels depend on a power of two")
    sequence = _ascending(recipe["x"], w)
    cost, finer = (
        exact.cost_of_labels(recipe["x"], w, groups.labels.tolist())
        for groups in (found, cs.kmeans_1d(x, n_clusters + 1, sample_weight=w))
    )
    if finer > cost + _promised(sequence, cost):
        raise Fault("kmeans_1d: one more group costs more")
    if sequence.n <= 40:
        least = sequence.fraction(exact.least_costs(sequence, n_clusters)[-1])
        _check_optimal("kmeans_1d", cost, least, _promised(sequence, least))
    _check_number("kmeans_1d: inertia", found.inertia, cost, LOST * _reach(sequence))
    if w is None:
        _check_sparse_route(recipe, sequence)
    return "by routes"


def _check_sparse_route(recipe: Recipe, sequence: exact.Sequenced) -> None:
    x, n_clusters, n_nonzero = recipe["x"], recipe["n_clusters"], recipe["n_nonzero"]
    found = cs.project_clustered(x, n_clusters, n_nonzero=n_nonzero)
    if (found.labels >= 0).sum() > n_nonzero:
        raise Fault("project_clustered: too many entries are not zero")
    apart = _distance(x, None, found.point.tolist())
    _check_number("project_clustered: distance", found.sq_distance, apart, LOST * _reach(sequence))
    if sequence.n <= 24:
        best = sequence.fraction(exact.least_sparse_cost(sequence, n_clusters, n_nonzero))
        cost = exact.cost_of_labels(x, None, found.labels.tolist(), zero=-1)
        _check_optimal("project_clustered", cost, best, _promised_sparse(sequence, best))


# ---- Bad arguments

_BAD: dict[str, tuple[str, Any]] = {
    "nan": ("x", [1.0, math.nan]),
    "inf": ("x", [math.inf, 0.0, 1.0]),
    "empty": ("x", []),
    "text": ("x", ["a", "b"]),
    "numbers as text": ("x", ["1", "2"]),
    "ragged": ("x", [[1.0], [2.0, 3.0]]),
    "deep": ("x", [[[1.0]]]),
    "a number": ("x", 3.0),
    "none": ("x", None),
    "dictionary": ("x", {"a": 1.0}),
    "beyond doubles": ("x", [10**400, 1]),
    "complex": ("x", [1 + 2j, 1.0]),
    "no groups": ("n", 0),
    "negative groups": ("n", -1),
    "half a group": ("n", 2.5),
    "groups as text": ("n", "2"),
    "groups not a number": ("n", math.nan),
    "true groups": ("n", True),
    "no number of groups": ("n", None),
    "negative weight": ("w", [1.0, -1.0, 1.0]),
    "weights of zero": ("w", [0.0, 0.0, 0.0]),
    "weight nan": ("w", [1.0, math.nan, 1.0]),
    "too few weights": ("w", [1.0]),
    "weights as text": ("w", "abc"),
}
_CALLS: dict[str, Callable[..., Any]] = {
    "kmeans_1d": cs.kmeans_1d,
    "project_clustered": cs.project_clustered,
    "segment_1d": cs.segment_1d,
}


def _draw_bad(rng: Random) -> Recipe:
    return {
        "call": str(rng.choice(list(_CALLS))),
        "bad": str(rng.choice(list(_BAD))),
        "x": draw_values(rng, 3),
    }


def _check_bad(recipe: Recipe) -> str:
    name, value = _BAD[recipe["bad"]]
    arguments: dict[str, Any] = {"x": recipe["x"], "n": 2, "w": None}
    arguments[name] = value
    try:
        _CALLS[recipe["call"]](arguments["x"], arguments["n"], sample_weight=arguments["w"])
    except ValueError as error:
        known = ("x", "w", "n_clusters", "n_segments", "sample_weight")
        if is_useless(str(error), known):
            raise Fault(f"{recipe['call']}: a useless message", str(error)) from error
        return "refused"
    raise Fault(f"{recipe['call']}: accepts {recipe['bad']}")


SUBJECTS: dict[str, Subject] = {
    "kmeans_1d": Subject(0.3, _draw_kmeans, _check_kmeans),
    "project_clustered": Subject(0.2, _draw_projection, _check_projection),
    "segment_1d": Subject(0.2, _draw_segments, _check_segments),
    "routes": Subject(0.05, _draw_routes, _check_routes),
    "bad arguments": Subject(0.05, _draw_bad, _check_bad),
    **{
        name: Subject(0.2 / len(plain_kernels.SUBJECTS), *both)
        for name, both in plain_kernels.SUBJECTS.items()
    },
}
_SHARES = np.cumsum([subject.share for subject in SUBJECTS.values()])


def _draw(rng: Random) -> Recipe:
    chosen = int(np.searchsorted(_SHARES, rng.random() * _SHARES[-1]))
    name = list(SUBJECTS)[chosen]
    return {"subject": name, **SUBJECTS[name].draw(rng)}


def _check(recipe: Recipe) -> str:
    return SUBJECTS[recipe["subject"]].check(recipe)


def _smaller(recipe: Recipe) -> Iterator[Recipe]:
    """Fewer values, fewer groups, plainer numbers."""
    x, w = recipe.get("x"), recipe.get("w")
    if x is None:  # sizes and a seed
        yield from ({**recipe, "n": n} for n in range(recipe["n"]))
        return
    for rows in without_parts(range(len(x)), least=1):
        weights = None if w is None else [w[i] for i in rows]
        if weights is None or any(weights):
            yield {**recipe, "x": [x[i] for i in rows], "w": weights}
    yield from with_entry(recipe, "form", iter(["array"] if "form" in recipe else []))
    for name in ("n_clusters", "n_segments", "n_nonzero"):
        if isinstance(recipe.get(name), int) and recipe[name] > 1:
            yield {**recipe, name: recipe[name] - 1}
    if w is not None:
        yield {**recipe, "w": None}
        yield from ({**recipe, "w": list(some)} for some in _plainer(w) if any(some))
    yield from ({**recipe, "x": list(some)} for some in _plainer(x))


def _plainer(values: list[float]) -> Iterator[list[float]]:
    """One value after the other replaced by a plainer one."""
    for i, value in enumerate(values):
        for plain in (0.0, 1.0, float(f"{value:.3g}")):
            if plain != value and len(repr(plain)) < len(repr(value)):
                yield [*values[:i], plain, *values[i + 1 :]]


TARGET = Target("kernels", _draw, _check, _smaller, share=0.47, short=1500)
