"""Real data with many tasks, each with its own rows."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from sklearn.utils import Bunch

from clustruct.datasets._bunches import as_bunch, downloader, loader
from clustruct.datasets._files import DataFile, PathLike, locate

SCHOOL = DataFile(
    name="school.mat",
    sha256="57fb3238fdd03a9aa17276e2ce18d9bbb5d128c3261e794fe6233b58b6909068",
    source="the folder data/ of https://github.com/jiayuzhou/MALSAR",
    url="https://raw.githubusercontent.com/jiayuzhou/MALSAR/"
    "ca3d55b878cc4113f0d9603e8ac46538aeb1ecd9/data/school.mat",
)
LANDMINE = DataFile(
    name="LandmineData.mat",
    sha256="2163ab20a80e33a8b65593c48cf283c540599dcb291105e63fa4af2ce24c2bea",
    source="LandmineData.zip of L. Carin's group, once at http://www.ee.duke.edu/~lcarin",
)

SCHOOL_NAMES = (
    *(f"year_{code}" for code in range(1, 4)),
    "free_school_meals",
    "verbal_reasoning_band_1",
    *(f"gender_{code}" for code in range(1, 3)),
    *(f"verbal_reasoning_{code}" for code in range(1, 4)),
    *(f"ethnic_group_{code}" for code in range(1, 12)),
    *(f"school_gender_{code}" for code in range(1, 4)),
    *(f"school_denomination_{code}" for code in range(1, 4)),
    "constant",
)

SCHOOL_ABOUT = """\
Examination scores of the pupils of 139 schools
===============================================
15362 pupils of the Inner London Education Authority, in the years 1985 to 1987; the scores of each
school are a task. Of the 28 features two are shares of the school's pupils, in per cent: those
eligible for free school meals, and those in the first band of verbal reasoning. The others are
indicators of the year, the pupil's gender, band of verbal reasoning and ethnic group, the school's
gender and denomination (15 pupils are in no band); and a constant, the last one, to be left out
when an intercept is fitted.

Source: the Inner London Education Authority, prepared for learning of many tasks by A. Argyriou,
T. Evgeniou and M. Pontil ("Convex multi-task feature learning", Machine Learning, 2008), as
distributed with J. Zhou's MALSAR, https://github.com/jiayuzhou/MALSAR.
"""

LANDMINE_ABOUT = """\
Landmines in radar images of 29 fields
======================================
14820 spots of radar images, of which 904 are landmines (class 1) and the others clutter (class 0);
each of the 29 fields is a task. About half of the fields have foliage, the others are bare or
desert. The nine features are four moments, three correlations, an energy ratio and a spatial
variance.

Source: Y. Xue, X. Liao, L. Carin and B. Krishnapuram, "Multi-task learning for classification with
Dirichlet process priors", Journal of Machine Learning Research, 2007.
"""


@downloader
def fetch_school(
    *, data_home: PathLike | None = None, download_if_missing: bool = True, as_frame: bool = False
) -> Bunch:
    """Load the examination scores of 15362 pupils of 139 schools, each school a task.

    Returns
    -------
    Bunch
        ``data`` of shape (15362, 28), the last column constant; ``target``, the scores; ``tasks``,
        the number of each row's school, from 0; ``feature_names``, ``DESCR``; and ``frame``.

    Examples
    --------
    >>> import clustruct as cs
    >>> school = cs.datasets.fetch_school()  # doctest: +SKIP
    >>> school.data.shape, int(school.tasks.max()) + 1  # doctest: +SKIP
    ((15362, 28), 139)
    """
    path = locate(SCHOOL, data_home=data_home, download_if_missing=download_if_missing)
    data, target, tasks = _read_tasks(path, "X", "Y")
    data, target = data.astype(np.float64), target.astype(np.float64)
    return as_bunch(data, target, SCHOOL_NAMES, "score", SCHOOL_ABOUT, as_frame, tasks=tasks)


@loader
def fetch_landmine(*, data_home: PathLike | None = None, as_frame: bool = False) -> Bunch:
    """Load radar images of 29 fields, each a task of telling landmines from clutter.

    Returns
    -------
    Bunch
        ``data`` of shape (14820, 9); ``target``, 1 for the 904 landmines and 0 for clutter;
        ``tasks``, the number of each row's field, from 0; ``feature_names``, ``DESCR``; and
        ``frame``.

    Examples
    --------
    >>> import clustruct as cs
    >>> landmine = cs.datasets.fetch_landmine()  # doctest: +SKIP
    >>> landmine.data.shape, int(landmine.target.sum())  # doctest: +SKIP
    ((14820, 9), 904)
    """
    path = locate(LANDMINE, data_home=data_home)
    data, target, tasks = _read_tasks(path, "feature", "label")
    names, target = [f"feature_{number}" for number in range(1, 10)], target.astype(np.intp)
    return as_bunch(data, target, names, "landmine", LANDMINE_ABOUT, as_frame, tasks=tasks)


def _read_tasks(
    path: Path, features: str, targets: str
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.intp]]:
    """Rows, targets and task numbers, from a file with one cell for each task in two variables."""
    content = loadmat(path, variable_names=[features, targets])
    designs, columns = content[features].ravel(), content[targets].ravel()
    tasks = np.repeat(np.arange(designs.size), [len(design) for design in designs])
    return np.concatenate(designs), np.concatenate(columns).ravel(), tasks
