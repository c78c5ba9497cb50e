"""Table 2: clustered features, as the number of samples varies."""

from collections.abc import Mapping, Sequence

from clustruct.experiments.comparison import paper_figures
from clustruct.experiments.experiment import Cell, Experiment, Presentation, Row
from clustruct.experiments.paper.planted_features import PLANTED, present_planted

__all__ = ["TABLE2"]

CELLS: Mapping[str, Cell] = {f"n = {n}": {"n": n, "noise": 0.5} for n in (50, 75, 100, 125, 150)}

OTHERS: Mapping[str, Cell] = {
    f"n = {n}, values of U(-{spread:g}, {spread:g})": {"n": n, "noise": 0.5, "spread": spread}
    for n in (50, 100)
    for spread in (5.0, 30.0)
}
# Mean and standard deviation over 50 experiments.
FIGURES = {
    "oracle": [(0.16, 0.06), (0.14, 0.04), (0.10, 0.04), (0.10, 0.04), (0.09, 0.03)],
    "ls": [(61.94, 17.63), (51.94, 16.01), (21.41, 9.40), (1.02, 0.18), (0.70, 0.09)],
    "lsk": [(62.93, 18.05), (57.78, 17.03), (10.18, 14.96), (0.31, 0.19), (0.19, 0.12)],
    "pg": [(63.31, 18.24), (52.72, 16.51), (5.52, 14.33), (0.14, 0.09), (0.09, 0.04)],
    "cg": [(61.81, 17.78), (52.59, 16.58), (17.24, 13.87), (1.20, 1.38), (1.05, 1.37)],
    "cgpg": [(62.29, 18.15), (50.15, 17.43), (0.64, 2.03), (0.15, 0.19), (0.17, 0.53)],
    "oscar": [(61.54, 17.59), (52.87, 15.90), (11.32, 7.03), (1.25, 0.28), (0.71, 0.10)],
}
PAPER = paper_figures(FIGURES, CELLS, count=50)


def present(rows: Sequence[Row]) -> Presentation:
    """The table and a picture."""
    return present_planted(
        rows,
        CELLS,
        PAPER,
        "Table 2: error along the number of samples",
        factor=1.0,
        axis="n",
        others=OTHERS,
    )


TABLE2 = Experiment(
    name="table2",
    title="Table 2: groups of features, as the number of samples varies",
    about="100 features whose weights take 5 values; noise 0.5. How far the weights found are from "
    "the true ones.",
    measurement=PLANTED,
    cells=tuple(CELLS.values()),
    repetitions=50,
    present=present,
    quick_cells=tuple(CELLS.values()),
    quick_repetitions=2,
    readings=(
        'The paper says of the five values only that they are "uniformly distributed around 0". '
        "With U(-15, 15), the columns Oracle and LS come out as printed; the labels are uniform, "
        "and X is standard normal.",
    ),
    other_cells=tuple(OTHERS.values()),
    other_repetitions=3,
)
