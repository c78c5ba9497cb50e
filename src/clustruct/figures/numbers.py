"""Numbers and names as people read them: in texts, on axes, beside marks."""

import math
from collections.abc import Sequence

TIMES = "\N{MULTIPLICATION SIGN}"
WIDE_RANGE = 20.0  # times the least value: more is drawn on a logarithmic axis


def shown(value: float, digits: int = 3) -> str:
    """A number as people read it."""
    if value == 0.0 or not math.isfinite(value):
        return "0" if value == 0.0 else str(value)
    if 1e-3 <= abs(value) < 1e6:
        text = f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.{digits - 1}e}"


def signed(value: float, digits: int = 3) -> str:
    """A number as people read it, with its sign."""
    return f"+{shown(value, digits)}" if value > 0.0 else shown(value, digits)


def score_text(value: float, metric: str) -> str:
    """A score: one whose best is 1 with four decimals, others with four digits."""
    if metric in ("R²", "Accuracy", "AUC"):
        return "0" if round(value, 4) == 0.0 else f"{value:.4f}".rstrip("0").rstrip(".")
    return shown(value, 4)


def cut(text: str, most: int) -> str:
    """A text that is not too long for its place."""
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def part_drawn(drawn: int, total: int, things: str) -> str:
    """How many things of all are drawn, as a note; empty if all are."""
    return f"{drawn:,} of {total:,} {things} drawn" if drawn < total else ""


def log_scale(low: float, high: float) -> bool:
    """Whether values between these ask for a logarithmic axis."""
    return low > 0.0 and high > WIDE_RANGE * low


def nice_ticks(low: float, high: float, count: int = 5, *, whole: bool = False) -> list[float]:
    """Round numbers between two others, about as many as asked for."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    if whole:
        raw = max(1.0, raw)
    unit = 10.0 ** math.floor(math.log10(raw))
    factors = (1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10)
    step = min((unit * factor for factor in factors), key=lambda s: abs(math.log(s / raw)))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [step * number for number in range(first, last + 1)]


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """Ticks as text, with as many digits as tell them apart."""
    largest = max((abs(tick) for tick in ticks), default=0.0)
    if len(ticks) < 2 or largest >= 1e6 or largest < 1e-4:
        return [shown(tick) for tick in ticks]
    step = ticks[1] - ticks[0]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if abs(step * 10**decimals - round(step * 10**decimals)) > 1e-6:
        decimals += 1  # steps of 2.5
    return [f"{tick:,.{decimals}f}" for tick in ticks]
