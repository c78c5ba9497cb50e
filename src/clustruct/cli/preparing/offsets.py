"""The column of the offset: numbers to add to the scores, or exposures, by their logarithm."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from clustruct._typing import Floats
from clustruct.cli.messages import listed
from clustruct.cli.preparing.columns import as_kind, check_missing


@dataclass(frozen=True)
class OffsetColumn:
    """A column with an offset for each row, or with an exposure."""

    name: str
    is_exposure: bool
    style: str = ""  # how its numbers are written, as `Column.style`

    @property
    def option(self) -> str:
        """The option that names it."""
        return "--exposure" if self.is_exposure else "--offset"

    @property
    def in_words(self) -> str:
        """What is added to the scores."""
        return f"the logarithm of {self.name}" if self.is_exposure else self.name

    def values(self, frame: Any, source: str) -> Floats:
        """What is added to the score of each row."""
        check_missing(frame, [self.name], source, self.option)
        numbers = as_kind(frame[self.name], "number", source, self.style)
        values: Floats = numbers.to_numpy(dtype=np.float64)
        if not self.is_exposure:
            return values
        bad = numbers.index[values <= 0.0]
        if len(bad):
            where = listed((index + 1 for index in bad), most=3)
            raise ValueError(
                f"{source}, column {self.name!r}: exposures must be above 0, and those of "
                f"{len(bad)} rows ({where}) are not. Mend them, or leave these rows out."
            )
        return np.log(values)
