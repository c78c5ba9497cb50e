"""Real data sets of one table each."""

import csv
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from clustruct.datasets._bunches import as_bunch, loader
from clustruct.datasets._files import DataFile, PathLike, locate


def _of_r(frame: str, package: str, sha256: str) -> DataFile:
    """A data frame of R; R itself writes quotes, which gives another SHA-256."""
    source = f"the data frame `{frame}` of the R package {package}"
    return DataFile(f"{frame}.csv", sha256, f"{source}, written by pandas' to_csv(index=False)")


TONE = _of_r("tonedata", "fpc", "11a7345c48ed68164246b47fb13ceb2147caa852357e47b6d622ea263e7e92a2")
CHEESE = _of_r(
    "cheese", "bayesm", "14098eb2f628ed03a7f42e4ddfe904cf96ad2b393772f5c115bb61d654cf3ace"
)
RENT = _of_r("rent", "catdata", "2b4445f41c4d410461fcd6d530def1140cf594c96830ab72bc70ed0f12544399")
MEATSPEC = _of_r(
    "meatspec", "faraway", "bfe36167e86d90f52f5cdba74f1bacb19f11126f7deebe50cd5c5390fd2a6c37"
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

    Examples
    --------
    >>> import clustruct as cs
    >>> tone = cs.datasets.fetch_tone()  # doctest: +SKIP
    >>> tone.data.shape, tone.feature_names  # doctest: +SKIP
    ((150, 1), ['stretchratio'])
    """
    table = _read_numbers(TONE, data_home)
    bunch = _with_target(table, "tuned", TONE_DESCRIPTION, as_frame)
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

    Examples
    --------
    >>> import clustruct as cs
    >>> cheese = cs.datasets.fetch_cheese()  # doctest: +SKIP
    >>> cheese.data.shape, cheese.feature_names  # doctest: +SKIP
    ((5555, 2), ['log_price', 'display'])
    """
    table = _read_numbers(CHEESE, data_home, texts=("RETAILER",))
    features = {"log_price": np.log(table["PRICE"]), "display": table["DISP"]}
    table = {**features, "log_volume": np.log(table["VOLUME"]), "retailer": table["RETAILER"]}
    bunch = _with_target(table, "log_volume", CHEESE_DESCRIPTION, as_frame, others=("retailer",))
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

    Examples
    --------
    >>> import clustruct as cs
    >>> rent = cs.datasets.fetch_rent()  # doctest: +SKIP
    >>> rent.data.shape, rent.feature_names[3]  # doctest: +SKIP
    ((2053, 11), 'area')
    """
    table = _read_numbers(RENT, data_home)
    del table["rent"]  # the rent of the whole flat determines the target
    bunch = _with_target(table, "rentm", RENT_DESCRIPTION, as_frame, categorical=("area",))
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

    Examples
    --------
    >>> import clustruct as cs
    >>> meatspec = cs.datasets.fetch_meatspec()  # doctest: +SKIP
    >>> meatspec.data.shape  # doctest: +SKIP
    (215, 100)
    """
    table = _read_numbers(MEATSPEC, data_home)
    bunch = _with_target(table, "fat", MEATSPEC_DESCRIPTION, as_frame)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _read_numbers(
    file: DataFile, data_home: PathLike | None, texts: Sequence[str] = ()
) -> dict[str, NDArray[Any]]:
    """Columns of a CSV file by their names: numbers, but for those of texts."""
    with locate(file, data_home=data_home).open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    columns = zip(header, zip(*rows, strict=True), strict=True)
    return {name: np.array(c, dtype=object if name in texts else float) for name, c in columns}


def _with_target(
    table: dict[str, NDArray[Any]],
    target: str,
    description: str,
    as_frame: bool,
    categorical: Sequence[str] = (),
    others: Sequence[str] = (),
) -> Bunch:
    """A table in scikit-learn's form; all columns but the target and others are features."""
    names = [name for name in table if name not in (target, *others)]
    data, aside = np.column_stack([table[n] for n in names]), {name: table[name] for name in others}
    return as_bunch(data, table[target], names, target, description, as_frame, categorical, **aside)
