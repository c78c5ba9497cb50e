"""Results as tables in notebooks, and certificates in words."""

from html.parser import HTMLParser

import numpy as np
import pytest

import clustruct as cs
from clustruct.results.tables import MOST_ROWS, table

EVIL = "<script>alert(1)</script>"
PROBLEM = cs.datasets.make_clustered_features(60, 6, 2, random_state=0)
SEARCH = cs.FeatureClusterRegressorCV((1, 2), alphas=(1e-2, 1e-3), cv=2).fit(PROBLEM.X, PROBLEM.y)
EXPERTS = cs.datasets.make_experts(80, 2, 2, random_state=0)


class Tables(HTMLParser):
    """The rows of a table; complains of tags that are left open."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open = [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag in {"table", "caption", "b", "i", "thead", "tbody", "tr", "th", "td"}, tag
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "th" in self.open or "td" in self.open:
            self.rows[-1][-1] += data


TASKS = cs.TaskClusterRegressorCV(
    (1, 2), alpha_within=(1.0,), alpha_between=0.1, cv=2, random_state=0
).fit(*cs.datasets.make_clustered_tasks(n_tasks=8, n_clusters=2, random_state=0).columns())
EXPERT = cs.SampleClusterRegressor(2, random_state=0).fit(EXPERTS.X, EXPERTS.y)
RESULTS = {
    "tasks": (TASKS.clusters(), TASKS.n_clusters_),
    "task": (TASKS.clusters()[0], 1),
    "task search": (TASKS.cv_results_, 2),
    "kmeans": (cs.kmeans_1d([1.0, 2.0, 9.0], 2), 2),
    "segments": (cs.segment_1d([1.0, 2.0, 9.0], 2), 2),
    "projection": (cs.project_clustered([1.0, 0.1, 1.2], 1, n_nonzero=2), 2),
    "certificate": (SEARCH.certificate_, 1),
    "status": (SEARCH.status_, len(SEARCH.status_.objectives)),
    "groups": (SEARCH.clusters(), SEARCH.n_clusters_),
    "group": (SEARCH.clusters()[0], 1),
    "path": (
        cs.feature_cluster_path(PROBLEM.X, PROBLEM.y, n_clusters=(1, 2), alphas=(1e-2, 1e-3)),
        4,
    ),
    "search": (SEARCH.cv_results_, 4),
    "experts": (EXPERT.clusters(), 2),
    "expert": (EXPERT.clusters()[0], 1),
    "gate": (cs.GateScore(gated=0.2, constant=1.0, best=0.1, sharpness=1.1), 1),
    "count": (
        cs.SampleClusterRegressorCV((1, 2), random_state=0).fit(EXPERTS.X, EXPERTS.y).selection_,
        2,
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_tables(name):
    result, n_rows = RESULTS[name]
    header, *rows = Tables(result._repr_html_()).rows
    assert len(rows) == n_rows
    assert {len(row) for row in rows} == {len(header)}


def test_groups_of_several_outputs_show_all_weights():
    Y = np.stack([PROBLEM.y, -PROBLEM.y], axis=1)
    model = cs.FeatureClusterRegressor(2).fit(PROBLEM.X, Y)
    _, first, _ = Tables(model.clusters()._repr_html_()).rows
    assert first[1] == ", ".join(f"{value:.4g}" for value in model.cluster_values_[0])


def test_names_are_escaped():
    text = cs.FeatureGroups([cs.FeatureGroup(0, 1.0, 1, (EVIL,))])._repr_html_()
    assert "<script" not in text
    assert Tables(text).rows[1][3] == EVIL


def test_large_groups_are_cut_and_say_so():
    group = cs.FeatureGroup(0, 1.0, 1000, tuple(f"x{j}" for j in range(1000)))
    text = cs.FeatureGroups([group])._repr_html_()
    assert "and 980 more" in text
    assert len(text) < 2000


def test_long_tables_are_cut_and_say_so():
    rows = [(q, 1.0) for q in range(500)]
    shown = Tables(table("t", ("a", "b"), rows)).rows
    assert len(shown) == 1 + MOST_ROWS + 1
    assert ["470 more"] in shown
