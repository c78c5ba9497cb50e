"""Whether an error message is of any use."""

import re
from collections.abc import Iterable

# Words that remedies begin with, in our messages and in scikit-learn's.
REMEDY = re.compile(
    r"(?:^|[.;:,(\n]\s*|\b(?:or|and|then|otherwise|first|please|to)\s+|`)"
    r"(?:add|allow|ask|center|centre|change|check|choose|consider|convert|cut|divide|drop|encode|"
    r"fill|fit|get|give|impute|increase|install|leave|load|lower|make|mend|merge|multiply|name|"
    r"number|omit|pass|pick|put|raise|reduce|reformat|remove|rename|replace|reshape|rewrite|run|"
    r"save|scale|see|set|shift|shorten|split|standardi[sz]e|subtract|take|try|unset|update|use|"
    r"want|write)\b",
    re.IGNORECASE,
)


def is_useless(message: str, names: Iterable[str]) -> bool:
    """Whether a message names neither an argument, one of `names`, nor a remedy."""
    named = any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) for name in names)
    return not named and not REMEDY.search(message)
