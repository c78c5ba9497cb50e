"""Table 3: clustered features, as the noise varies."""

from collections.abc import Mapping, Sequence

from clustruct.experiments.comparison import paper_figures
from clustruct.experiments.experiment import Cell, Experiment, Presentation, Row
from clustruct.experiments.paper.planted_features import PLANTED, present_planted

__all__ = ["TABLE3"]

CELLS: Mapping[str, Cell] = {
    f"sigma = {noise:g}": {"n": 150, "noise": noise} for noise in (0.05, 0.1, 0.5, 1.0)
}

# Mean and standard deviation over 50 experiments, of 100 times the error.
FIGURES = {
    "oracle": [(0.86, 0.27), (1.72, 0.54), (8.62, 2.70), (17.19, 5.43)],
    "ls": [(7.04, 0.92), (14.05, 1.82), (70.39, 9.20), (140.41, 18.20)],
    "lsk": [(1.44, 0.46), (2.88, 0.91), (19.10, 12.13), (48.09, 27.46)],
    "pg": [(0.87, 0.27), (1.74, 0.52), (9.11, 4.00), (26.23, 18.00)],
    "cg": [(23.91, 36.51), (122.31, 145.77), (105.45, 136.79), (155.98, 177.69)],
    "cgpg": [(1.52, 3.13), (140.83, 710.32), (17.34, 53.31), (24.80, 16.32)],
    "oscar": [(14.43, 2.45), (18.89, 3.46), (71.00, 10.12), (140.33, 18.83)],
}
PAPER = paper_figures(FIGURES, CELLS, count=50)


def present(rows: Sequence[Row]) -> Presentation:
    """The table and a picture."""
    return present_planted(
        rows, CELLS, PAPER, "Table 3: error along the noise", factor=100.0, axis="sigma"
    )


TABLE3 = Experiment(
    name="table3",
    title="Table 3: groups of features, as the noise varies",
    about="As Table 2, at 150 samples. The column sigma = 0.5 is that of n = 150 there, and the "
    "same repetitions.",
    measurement=PLANTED,
    cells=tuple(CELLS.values()),
    repetitions=50,
    present=present,
    quick_cells=tuple(CELLS.values()),
    quick_repetitions=2,
    readings=(
        "The paper's figures are 100 times the quantity it names: at sigma = 0.5 they are 100 "
        "times those of Table 2 at n = 150.",
    ),
)
