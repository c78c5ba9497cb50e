"""What a reader of the report has to mind: each caveat with its remedy."""

from typing import Any

from clustruct.inspection import final_estimator, grid_ends, kind_of
from clustruct.reporting.comparing.comparison import Comparison, Data
from clustruct.reporting.saying.data_caveats import of_the_data
from clustruct.reporting.svg import shown
from clustruct.reporting.wording import Wording

__all__ = ["caveats"]

FEW_HELD_OUT = 50


def caveats(
    model: Any, data: Data, found: Comparison | None, wording: Wording, search: Any = None
) -> list[str]:
    """Sentences about what could mislead, the gravest first."""
    return [
        *_of_the_fit(final_estimator(model)),
        *_of_the_choice(model, search),
        *_of_the_comparison(found),
        *of_the_data(model, data, wording),
    ]


def _of_the_fit(estimator: Any) -> list[str]:
    texts = []
    if not estimator.status_.converged:
        texts.append(
            "The solver was stopped before it had converged. Raise max_iter, or scale the columns."
        )
    wanted = getattr(estimator, "n_clusters", None)
    used = getattr(estimator, "n_clusters_", None)
    if isinstance(wanted, int) and used is not None and used < wanted:
        texts.append(
            f"{used} groups are in use, of the {wanted} asked for: more could not improve the fit."
        )
    score = getattr(estimator, "gate_score_", None)
    if score is not None and not score.helps and estimator.n_clusters_ > 1:
        texts.append("The gate does not help: the features do not tell which expert is right.")
    return texts


def _of_the_choice(model: Any, search: Any) -> list[str]:
    """Choices at the end of what was tried, where there may be better ones beyond it."""
    things = "experts" if kind_of(model) == "samples" else "groups"
    texts = []
    for edge in grid_ends(model, search):
        what = f"number of {things}" if edge.name == "n_clusters" else edge.name
        beyond = "Larger" if edge.end == "largest" else "Smaller"
        texts.append(
            f"The {edge.end} {what} that was tried, {shown(edge.value)}, was chosen and is clearly "
            f"better than {shown(edge.neighbour)}. {beyond} ones may be better still: try them."
        )
    return texts


def _of_the_comparison(found: Comparison | None) -> list[str]:
    if found is None:
        return []
    texts = []
    if found.rival is not None and found.against(found.rival).worse:
        texts.append(
            f"“{found.rival.name}” does better on held-out samples. Try more groups, another "
            "alpha, or a search (the estimators whose names end in CV)."
        )
    if found.n_targets < FEW_HELD_OUT:
        texts.append(f"Only {found.n_targets} targets were held out: scores are rough guides.")
    return texts
