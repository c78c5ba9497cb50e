"""Tables to try the command line on: from scikit-learn, generated, and public files."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clustruct import datasets
from clustruct.cli.messages import did_you_mean
from clustruct.cli.reading.tables import pandas
from clustruct.datasets import multitask, reviews, tables
from clustruct.datasets._files import DataFile, locate


@dataclass(frozen=True)
class Entry:
    """A table that can be had by name."""

    name: str
    what: str  # A phrase
    target: str  # the column to predict
    load: Callable[[], Any]  # gives the table as a data frame
    origin: str = ""  # where it comes from, if not from a file
    files: tuple[DataFile, ...] = ()  # the files it comes from, any one of which will do
    options: str = ""  # what ``clustruct fit`` is best told of it, beside the target

    @property
    def where(self) -> str:
        """Where it is, or how to get it."""
        if not self.files:
            return self.origin
        try:
            return str(locate(*self.files, data_home=None, download_if_missing=False))
        except FileNotFoundError:
            downloads = any(file.url for file in self.files)
            return "can be fetched" if downloads else f"not here; from {self.files[0].source}"
        except OSError as error:
            return str(error)


def find_entry(name: str) -> Entry:
    """The table of that name."""
    for entry in CATALOGUE:
        if entry.name == name:
            return entry
    raise ValueError(
        f"there is no data set {name!r}. {did_you_mean(name, [e.name for e in CATALOGUE])} "
        "`clustruct data list` shows them."
    )


def _breast_cancer() -> Any:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    frame = bunch.data.copy()
    frame["diagnosis"] = bunch.target_names[bunch.target]
    return frame


def _diabetes() -> Any:
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(as_frame=True, scaled=False)
    return bunch.frame.rename(columns={"target": "progression"})


def _made_features() -> Any:
    made = datasets.make_clustered_features(200, 40, 4, random_state=0)
    return _numbered(made.X).assign(y=made.y)


def _made_experts() -> Any:
    made = datasets.make_experts(600, 3, 3, separation=3.0, random_state=0)
    return _numbered(made.X).assign(y=made.y)


def _made_tasks() -> Any:
    made = datasets.make_clustered_tasks(15, 8, 24, 3, shared=False, random_state=0)
    frame = _numbered(made.X).assign(y=made.y)
    frame["task"] = [f"task {int(task):02d}" for task in made.tasks]
    return frame


def _numbered(X: Any) -> Any:
    return pandas().DataFrame(X, columns=[f"x{column + 1}" for column in range(X.shape[1])])


def _reviews() -> Any:
    bunch = datasets.fetch_movie_reviews(weighting="text")
    return pandas().DataFrame(
        {"review": bunch.data, "critic": bunch.critic, "rating": bunch.target}
    )


def _public(name: str, what: str, target: str, file: DataFile, options: str = "") -> Entry:
    """A table of a public file, which a function of `datasets` gets."""
    fetch = getattr(datasets, f"fetch_{name}")
    return Entry(name, what, target, lambda: fetch(as_frame=True).frame, "", (file,), options)


_SKLEARN, _MADE = "comes with scikit-learn", "generated"

CATALOGUE = (
    Entry("breast-cancer", "569 tumours", "diagnosis", _breast_cancer, _SKLEARN),
    Entry("diabetes", "442 patients", "progression", _diabetes, _SKLEARN),
    Entry("made-features", "40 features in 4 groups", "y", _made_features, _MADE),
    Entry("made-experts", "600 rows of 3 experts", "y", _made_experts, _MADE, options="--samples"),
    Entry("made-tasks", "24 tasks in 3 groups", "y", _made_tasks, _MADE, options="--tasks task"),
    Entry(
        "reviews",
        "5006 movie reviews with ratings",
        "rating",
        _reviews,
        files=(reviews.REPACKED, reviews.ORIGINAL),
        options="--text review --drop critic",
    ),
    _public(
        "rent", "2053 flats in Munich", "rentm", tables.RENT, "--category area --ordinal rooms"
    ),
    _public("meatspec", "215 spectra of meat, with its fat", "fat", tables.MEATSPEC),
    _public("tone", "150 trials of two kinds", "tuned", tables.TONE, "--samples"),
    _public("cheese", "5555 sales of cheese at 88 retailers", "log_volume", tables.CHEESE),
    _public("school", "15362 pupils of 139 schools", "score", multitask.SCHOOL, "--tasks tasks"),
    _public(
        "landmine", "14820 spots in 29 fields", "landmine", multitask.LANDMINE, "--tasks tasks"
    ),
)
