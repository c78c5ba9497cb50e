"""A frame with text, categories, booleans and numbers."""

import numpy as np
import pandas as pd

EFFECTS = {"a": 0.0, "b": 0.0, "c": 1.0, "d": 1.0, "e": -2.0, "f": -2.0}


def policies(n=300, seed=0):
    """A frame with text, categories, booleans and numbers, and a target with few effects."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "power": rng.standard_normal(n),
            "city": rng.choice(list(EFFECTS), n),
            "fuel": pd.Categorical(rng.choice(["oil", "gas", "wood"], n), ["wood", "oil", "gas"]),
            "age": rng.integers(18, 60, n).astype(float),
            "fleet": rng.random(n) < 0.4,
        }
    )
    y = 0.5 * frame["power"] + frame["city"].map(EFFECTS) + 1.5 * (frame["fuel"] == "gas")
    return frame, (y + 0.7 * frame["fleet"] + 0.1 * rng.standard_normal(n)).to_numpy()
