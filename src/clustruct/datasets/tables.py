"""Real data sets of one table each."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from clustruct.datasets._bunches import as_bunch, loader
from clustruct.datasets._files import DataFile, PathLike, locate

__all__ = ["fetch_cheese", "fetch_meatspec", "fetch_rent", "fetch_tone"]

# R writes quotes, which gives another SHA-256.
AS_CSV = "written by pandas' to_csv(index=False)"
TONE = DataFile(
    name="tonedata.csv",
    sha256="11a7345c48ed68164246b47fb13ceb2147caa852357e47b6d622ea263e7e92a2",
    source=f"the data frame `tonedata` of the R package fpc, {AS_CSV}",
)
CHEESE = DataFile(
    name="cheese.csv",
    sha256="14098eb2f628ed03a7f42e4ddfe904cf96ad2b393772f5c115bb61d654cf3ace",
    source=f"the data frame `cheese` of the R package bayesm, {AS_CSV}",
)
RENT = DataFile(
    name="rent.csv",
    sha256="2b4445f41c4d410461fcd6d530def1140cf594c96830ab72bc70ed0f12544399",
    source=f"the data frame `rent` of the R package catdata, {AS_CSV}",
)
MEATSPEC = DataFile(
    name="meatspec.csv",
    sha256="bfe36167e86d90f52f5cdba74f1bacb19f11126f7deebe50cd5c5390fd2a6c37",
    source=f"the data frame `meatspec` of the R package faraway, {AS_CSV}",
)

TONE_DESCRIPTION = """\
Perception of tones
===================
In 150 trials a musician heard a tone with overtones that were stretched by the factor
`stretchratio`, and tuned another to an octave above it: `tuned`. The trials follow two straight
lines, as the musician went by the stretched overtone or by the true octave.

Source: E. A. Cohen, "Inharmonic tone perception", thesis, Stanford University, 1980; the data frame
`tonedata` of the R package fpc.
"""

CHEESE_DESCRIPTION = """\
Sales of sliced cheese
======================
5555 weekly sales of a brand of sliced cheese at 88 retailers: the logarithm of the volume sold, on
the logarithm of the price and a measure of display activity between 0 and 1. How much price and
display matter differs from retailer to retailer.

Source: P. Boatwright, R. McCulloch and P. Rossi, "Account-level modeling for trade promotion",
Journal of the American Statistical Association, 1999; the data frame `cheese` of the R package
bayesm.
"""

RENT_DESCRIPTION = """\
Rent in Munich
==============
2053 flats of the rent standard of Munich in 2003: the net rent in euros for a square metre, on the
living space in square metres, the number of rooms, the year of construction, the district (`area`,
a code from 1 to 25 that is no quantity), and seven indicators. `good` and `best` tell of the
address, `bathextra` and `kitchen` of what the flat has, and `warm`, `central` and `tiles` of what
it has not: warm water, central heating, a tiled bathroom.

Source: L. Fahrmeir, R. Künstler, I. Pigeot and G. Tutz, "Statistik: Der Weg zur Datenanalyse",
Springer, 2004; the data frame `rent` of the R package catdata.
"""

MEATSPEC_DESCRIPTION = """\
Fat in meat, from near infrared spectra
=======================================
215 samples of finely chopped meat: the fat content in per cent, on the absorbance at 100
wavelengths between 850 and 1050 nm. Neighbouring wavelengths are almost the same feature: their
correlations are above 0.999.

Source: H. H. Thodberg, "Ace of Bayes: application of neural networks with pruning", technical
report, Danish Meat Research Institute, 1993; recorded on a Tecator Infratec analyser. It is the
data frame `meatspec` of the R package faraway.
"""


@loader
def fetch_tone(
    *, data_home: PathLike | None = None, return_X_y: bool = False, as_frame: bool = False
) -> Any:
    """Load 150 trials of the perception of tones, which follow two straight lines.

    Returns
    -------
    Bunch, or tuple of (data, target)
        ``data`` of shape (150, 1), the stretch of the overtones; ``target``, the tuned tone;
        ``feature_names``, ``DESCR`` and ``frame``.

    See Also
    --------
    make_experts : Samples that follow several linear models, with the truth.

    Examples
    --------
    >>> import clustruct as cs
    >>> tone = cs.datasets.fetch_tone()  # doctest: +SKIP
    >>> tone.data.shape, tone.feature_names  # doctest: +SKIP
    ((150, 1), ['stretchratio'])
    """
    table = _read_table(locate(TONE, data_home=data_home))
    bunch = _numeric_bunch(table, "tuned", TONE_DESCRIPTION, as_frame)
    return (bunch.data, bunch.target) if return_X_y else bunch


@loader
def fetch_cheese(
    *, data_home: PathLike | None = None, return_X_y: bool = False, as_frame: bool = False
) -> Any:
    """Load 5555 weekly sales of cheese at 88 retailers with different price elasticities.

    Returns
    -------
    Bunch, or tuple of (data, target)
        ``data`` of shape (5555, 2), the logarithm of the price and a measure of display activity
        between 0 and 1; ``target``, the logarithm of the volume; ``retailer``, the name of each
        row's retailer; ``feature_names``, ``DESCR`` and ``frame``.

    See Also
    --------
    make_experts : Samples that follow several linear models, with the truth.

    Examples
    --------
    >>> import clustruct as cs
    >>> cheese = cs.datasets.fetch_cheese()  # doctest: +SKIP
    >>> cheese.data.shape, cheese.feature_names  # doctest: +SKIP
    ((5555, 2), ['log_price', 'display'])
    """
    table = _read_table(locate(CHEESE, data_home=data_home))
    price, display, volume = (_numbers(table[name]) for name in ("PRICE", "DISP", "VOLUME"))
    bunch = as_bunch(
        np.column_stack([np.log(price), display]),
        np.log(volume),
        ("log_price", "display"),
        "log_volume",
        CHEESE_DESCRIPTION,
        as_frame,
        retailer=np.array(table["RETAILER"], dtype=object),
    )
    return (bunch.data, bunch.target) if return_X_y else bunch


@loader
def fetch_rent(
    *, data_home: PathLike | None = None, return_X_y: bool = False, as_frame: bool = False
) -> Any:
    """Load 2053 rents in Munich, with the district as one of 25 codes.

    Returns
    -------
    Bunch, or tuple of (data, target)
        ``data`` of shape (2053, 11), in which ``area`` is a code, not a quantity (in a frame, a
        categorical column); ``target``, the net rent for a square metre; ``feature_names``,
        ``DESCR`` and ``frame``.

    See Also
    --------
    make_clustered_features : Features in groups, with the truth.

    Examples
    --------
    >>> import clustruct as cs
    >>> rent = cs.datasets.fetch_rent()  # doctest: +SKIP
    >>> rent.data.shape, rent.feature_names[3]  # doctest: +SKIP
    ((2053, 11), 'area')
    """
    table = _read_table(locate(RENT, data_home=data_home))
    del table["rent"]  # the rent of the whole flat determines the target
    bunch = _numeric_bunch(table, "rentm", RENT_DESCRIPTION, as_frame, categorical=("area",))
    return (bunch.data, bunch.target) if return_X_y else bunch


@loader
def fetch_meatspec(
    *, data_home: PathLike | None = None, return_X_y: bool = False, as_frame: bool = False
) -> Any:
    """Load 215 spectra of meat, whose 100 channels are strongly correlated.

    Returns
    -------
    Bunch, or tuple of (data, target)
        ``data`` of shape (215, 100), absorbances; ``target``, the fat content in per cent;
        ``feature_names``, ``DESCR`` and ``frame``.

    See Also
    --------
    make_clustered_features : Features in groups, with the truth.

    Examples
    --------
    >>> import clustruct as cs
    >>> meatspec = cs.datasets.fetch_meatspec()  # doctest: +SKIP
    >>> meatspec.data.shape  # doctest: +SKIP
    (215, 100)
    """
    table = _read_table(locate(MEATSPEC, data_home=data_home))
    bunch = _numeric_bunch(table, "fat", MEATSPEC_DESCRIPTION, as_frame)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _read_table(path: Path) -> dict[str, list[str]]:
    """Columns of a CSV file, by their names."""
    with path.open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    return {
        name: list(column) for name, column in zip(header, zip(*rows, strict=True), strict=True)
    }


def _numbers(column: Sequence[str]) -> NDArray[np.float64]:
    """A column as numbers."""
    return np.array(column, dtype=np.float64)


def _numeric_bunch(
    table: dict[str, list[str]],
    target_name: str,
    description: str,
    as_frame: bool,
    categorical: Sequence[str] = (),
) -> Bunch:
    """A numeric table; all columns but the target are features."""
    names = [name for name in table if name != target_name]
    return as_bunch(
        np.column_stack([_numbers(table[name]) for name in names]),
        _numbers(table[target_name]),
        names,
        target_name,
        description,
        as_frame,
        categorical,
    )
