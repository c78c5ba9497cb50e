"""What resampling says of the groups of a model."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from clustruct._docs import documented_fields
from clustruct._typing import Floats, Labels
from clustruct.results.intervals import GroupIntervals, GroupValues, bootstrap_interval
from clustruct.results.tables import ShownAsTable, plural, some_of

# Share of the resamples in which an item stays with its group, from which on it is firm.
FIRM = 0.8
# Most pairs of items whose co-membership is returned at once.
MOST_PAIRS = 25_000_000
# Wavering items that a sentence names.
NAMED = 3

# The label of an item that a resample does not have, such as a level without rows.
ABSENT = -2

# What resamples are, by the scheme they are drawn by.
DRAWN = {"subsample": "halves of the samples", "bootstrap": "bootstrap resamples"}
THINGS = {"features": "feature", "samples": "sample", "tasks": "task"}


@documented_fields
@dataclass(frozen=True, eq=False, repr=False)
class StabilityResult(ShownAsTable):
    """How often the groups of a model come again when samples are drawn anew.

    See Also
    --------
    stability : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(200, 12, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
    >>> found = cs.stability(model, problem.X, problem.y, n_resamples=20, random_state=0)
    >>> print(found.in_words)
    All 3 groups are firm: they come again in at least 80 % of 20 halves of the samples.
    """

    kind: Annotated[str, "What is grouped: ``'features'``, ``'samples'`` or ``'tasks'``."]
    scheme: Annotated[str, "How samples were drawn: ``'subsample'`` or ``'bootstrap'``."]
    names: Annotated[tuple[str, ...] | None, "Names of the features or tasks; None for samples."]
    groups: Annotated[Labels, "Labels of the model's groups, -1 for features without weight."]
    model_labels: Annotated[Labels, "The group of each item in the model."]
    firmness: Annotated[
        Floats, "Share of the resamples in which each item stays with its group, in [0, 1]."
    ]
    group_firmness: Annotated[Floats, "Mean firmness of the items of each group."]
    together: Annotated[
        Floats,
        "Mean co-membership of the members of two groups, or inside of one: NaN for a group of "
        "one.",
    ]
    n_clusters: Annotated[Labels, "Number of groups in each resample."]
    consensus_labels: Annotated[
        Labels,
        "The groups that the resamples agree on, from 0; -1 for features without weight in most.",
    ]
    consensus_scores: Annotated[
        dict[int, float], "Calibration score of each number of groups of a consensus."
    ]
    labels: Annotated[
        Labels | None,
        "Labels of all items in each resample, -2 for levels that it lacks; None in model files.",
    ] = None
    values: Annotated[
        GroupValues | None, "Values of the groups in each resample, of the bootstrap."
    ] = None
    effects: Annotated[
        dict[str, Floats] | None,
        "For models of factors with one output, by the bootstrap: ends of 90 % intervals for the "
        "weight of each level less that of the level with the most exposure (``'most'``), and less "
        "the mean (``'mean'``); for the weights of numbers as they are. Shape (n_features, 2).",
    ] = None
    weights: Annotated[
        Floats | None,
        "Weights of all features in each resample of the bootstrap, shape (n_resamples, "
        "n_features, n_outputs).",
    ] = None
    threshold: Annotated[
        float,
        "Co-membership from which on two items count as together, by the same score; NaN if all "
        "pairs have the same.",
    ] = float("nan")
    fitted: Annotated[
        Any, "Model and samples, for `consensus_model`; None in model files and pickles."
    ] = field(default=None, metadata={"in_files": False})
    interrupted: Annotated[bool, "Whether Ctrl-C ended the resampling early."] = False

    @property
    def n_resamples(self) -> int:
        """Number of resamples."""
        return int(self.n_clusters.size)

    @property
    def cohesion(self) -> Floats:
        """Mean co-membership of two members of each group; NaN for a group of one."""
        return np.diag(self.together).copy()

    @property
    def mixing(self) -> Floats:
        """Mean co-membership of each group with the one that it is mixed up with most."""
        others = self.together - np.diag(np.diag(self.together))
        return np.nan_to_num(others).max(axis=1)

    @property
    def firm(self) -> NDArray[np.bool_]:
        """Whether each group is firm: its items stay with it in 80 % of the resamples."""
        return self.group_firmness >= FIRM

    @property
    def in_words(self) -> str:
        """The verdict in a sentence or two."""
        n_firm, n_groups = int(self.firm.sum()), self.groups.size
        often = f"in at least {100 * FIRM:.0f} % of {self.n_resamples} {DRAWN[self.scheme]}"
        if n_groups == 1:
            return "There is one group, and nothing to tell apart."
        if n_firm == n_groups:
            every = "Both" if n_groups == 2 else f"All {n_groups}"
            verdict = f"{every} groups are firm: they come again {often}."
        elif n_firm:
            firm = "is firm: it comes" if n_firm == 1 else "are firm: they come"
            verdict = f"{n_firm} of {n_groups} groups {firm} again {often}."
        else:
            verdict = f"None of {n_groups} groups is firm: none comes again {often}."
        early = ["Ctrl-C ended the resampling early."] if self.interrupted else []
        return " ".join([verdict, *self._wavering(), *early])

    def wavering(self) -> Labels:
        """Items that are not firm, those that change groups most often first.

        Returns
        -------
        ndarray of int
            Their numbers.
        """
        order = np.argsort(self.firmness, kind="stable")
        return order[self.firmness[order] < FIRM]

    def _wavering(self) -> list[str]:
        """A sentence about items that change sides, if there are any."""
        items = self.wavering()
        if not items.size:
            return []
        if self.names is None:
            share = items.size / self.firmness.size
            return [f"{100 * share:.0f} % of the samples change groups more often than that."]
        shown = [
            f"{self.names[i]!r} in {100 * (1 - self.firmness[i]):.0f} %" for i in items[:NAMED]
        ]
        more = items.size - len(shown)
        also = f"; {plural(more, THINGS[self.kind])} more waver" if more > 1 else ""
        also = "; one more wavers" if more == 1 else also
        return [f"Some change sides: {', '.join(shown)} of the resamples{also}."]

    def _table(self) -> tuple[str, Sequence[str], list[Sequence[object]]]:
        header = ["group", "size", "firmness", "cohesion", "mixing", "members"]
        rows: list[Sequence[object]] = []
        for row, label in enumerate(self.groups.tolist()):
            items = np.flatnonzero(self.model_labels == label)
            numbers = self.group_firmness[row], self.cohesion[row], self.mixing[row]
            members = "" if self.names is None else some_of(self.names[i] for i in items)
            rows.append([label, items.size, *(f"{value:.2f}" for value in numbers), members])
        return self.in_words, header, rows

    def co_membership(
        self, i: int | str | None = None, j: int | str | None = None
    ) -> float | Floats:
        """How often two items are in one group.

        Parameters
        ----------
        i : int or str, default=None
            Number or name of an item; None for the matrix of all pairs.
        j : int or str, default=None
            Number or name of another item; None for the co-membership of `i` with all items.

        Returns
        -------
        float or ndarray of float
            Share of the resamples that have both items.
        """
        if self.labels is None:
            raise ValueError(
                "The labels of the resamples are not kept in model files. Run "
                "clustruct.stability again for co-membership."
            )
        if i is None and j is not None:
            raise ValueError(f"j={j!r} was given without i. Give both, i alone, or neither.")
        i, j = self._number_of(i, "i"), self._number_of(j, "j")
        labels, there = self.labels, self.labels != ABSENT
        if i is None:
            m = labels.shape[1]
            if m * m > MOST_PAIRS:
                raise ValueError(
                    f"The co-membership of all pairs of {m:,} items is a matrix of {m:,} x {m:,}. "
                    "Ask for single items, or compare `labels` of the items of interest."
                )
            together, both = np.zeros((m, m)), np.zeros((m, m))
            for mine, here in zip(labels, there, strict=True):
                pair = here[:, None] & here
                together += (mine[:, None] == mine) & pair
                both += pair
        else:
            pair = there[:, [i]] & there
            together = ((labels[:, [i]] == labels) & pair).sum(axis=0)
            both = pair.sum(axis=0)
        with np.errstate(invalid="ignore"):
            shares = together / both
        return shares if j is None else float(shares[j])

    def _number_of(self, item: int | str | None, argument: str) -> int | None:
        """The number of an item that is given by number or name."""
        if isinstance(item, str):
            if self.names is None or item not in self.names:
                raise ValueError(
                    f"{argument}={item!r} is the name of no {THINGS[self.kind]}. Give one of "
                    "`names`, or a number."
                )
            return self.names.index(item)
        if item is not None and not 0 <= item < self.firmness.size:
            raise ValueError(
                f"{argument}={item} is the number of no {THINGS[self.kind]}. Give one from 0 to "
                f"{self.firmness.size - 1}."
            )
        return item

    def consensus_model(self) -> Any:
        """The model refitted on the groups that the resamples agree on.

        Their values are the best ones with these groups, at the strengths of the model's fit, and
        are fitted to all samples. Samples stay in their group where another expert would predict
        them better. Levels share values only inside of their factor, but need not be neighbours;
        where values of a factor would not increase, or decrease, as they have to, groups of it are
        joined. The numbers of groups and of nonzero weights are those of the consensus, whatever
        was asked for.

        Returns
        -------
        estimator or Pipeline
            A fitted model of the same class and parameters, in its pipeline if it has one.

        Raises
        ------
        ValueError
            If the samples are not known, as in model files and pickles, or the groups do not go
            with a constraint of the user's own.
        """
        if self.fitted is None:
            raise ValueError(
                "The samples are not kept in model files and pickles. Run clustruct.stability "
                "again for the consensus model."
            )
        return self.fitted.regrouped(self.consensus_labels)

    def __getstate__(self) -> dict[str, Any]:
        """The state without model and samples."""
        return {**vars(self), "fitted": None}

    def intervals(
        self, level: float = 0.9, method: Literal["percentile", "bca"] = "percentile"
    ) -> GroupIntervals:
        """Intervals for the values of groups: with the uncertainty of the grouping, and given it.

        Parameters
        ----------
        level : float, default=0.9
            Nominal coverage.
        method : {"percentile", "bca"}, default="percentile"
            Bootstrap intervals: plain quantiles, or corrected for bias and skewness (BCa). On
            planted problems both cover as they should where groups are apart; where they are not,
            quantiles still do, and the correction does not.

        Returns
        -------
        GroupIntervals
            A list of `GroupInterval`, one for each value of each group.
        """
        if method not in ("bca", "percentile"):
            raise ValueError(f"method={method!r} is not known. Choose 'bca' or 'percentile'.")
        if self.values is None:
            raise self._no_bootstrap()
        return GroupIntervals(self.values.intervals(_level(level), bca=method == "bca"))

    def weight_intervals(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Percentile intervals for the weight of each feature, or the effect of each level.

        They carry the uncertainty of the grouping: a feature that changes sides has a wide one.

        Parameters
        ----------
        level : float, default=0.9
            Nominal coverage.

        Returns
        -------
        tuple of two ndarrays of shape (n_features, n_outputs)
            Lower and upper ends.
        """
        if self.weights is None:
            raise self._no_bootstrap()
        tail = 0.5 - 0.5 * _level(level)
        low, high = np.nanquantile(self.weights, [tail, 1.0 - tail], axis=0)
        return low, high

    def _no_bootstrap(self) -> ValueError:
        if self.kind != "features" and self.scheme == "bootstrap":
            return ValueError(
                f"A model of {self.kind} has no weight for each feature. Ask for `intervals`."
            )
        return ValueError(
            f"Intervals need bootstrap resamples, and these are of scheme={self.scheme!r}. "
            "Run clustruct.stability with scheme='bootstrap'."
        )

    def summary(self) -> "StabilityResult":
        """The same without the labels of single resamples, for model files.

        Returns
        -------
        StabilityResult
            A copy.
        """
        return replace(self, labels=None, weights=None, consensus_scores={}, fitted=None)

    def firmness_of(self, label: int) -> float:
        """How firm the group with a label is.

        Parameters
        ----------
        label : int
            Label of a group of the model.

        Returns
        -------
        float
            Mean firmness of its members.
        """
        return float(self.group_firmness[self._row(label)])

    def interval_of(self, label: int) -> tuple[float, float] | None:
        """The bootstrap interval of 90 % for the first value of a group.

        Parameters
        ----------
        label : int
            Label of a group of the model.

        Returns
        -------
        tuple of float or None
            None if the samples were halved.
        """
        if self.values is None:
            return None
        row = self._row(label)
        resampled, value = self.values.resampled[:, row, :1], self.values.estimates[row, :1]
        (low,), (high,) = bootstrap_interval(resampled, value, 0.9, None)
        return float(low), float(high)

    def _row(self, label: int) -> int:
        """The place of a label among the groups."""
        if label not in self.groups:
            known = ", ".join(map(str, self.groups.tolist()))
            raise ValueError(f"label={label} is no group of the model, whose labels are {known}.")
        return int(np.searchsorted(self.groups, label))


def _level(level: float) -> float:
    """A nominal coverage that is one."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level} must be between 0 and 1, such as 0.9.")
    return float(level)
