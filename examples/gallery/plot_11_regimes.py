"""
Calm and stormy months
======================

``segment_1d`` cuts a series into pieces of about the same level. Here: how much the share price of
a company moved in a month, over thirty years.
"""

# %%
# The prices come with matplotlib.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.cbook import get_sample_data

import clustruct as cs

prices = pd.read_csv(get_sample_data("Stocks.csv"), comment="#", index_col="Date", parse_dates=True)
changes = np.log(prices["MSFT"].dropna()).diff().dropna()
size = np.log(changes.abs() + 0.01)

pieces = cs.segment_1d(size, 4)
level = np.exp(pieces.centers[pieces.labels]) - 0.01

figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
ax.plot(changes.index, 100 * changes.abs(), ".", color="0.6")
ax.step(changes.index, 100 * level, where="mid", color="#D55E00")
ax.set(ylabel="change in a month, %", title="Microsoft, in four pieces")

# %%
# Where the pieces begin:
starts = np.flatnonzero(np.diff(pieces.labels, prepend=-1))
for start, centre in zip(starts, pieces.centers[pieces.labels[starts]], strict=True):
    print(f"{changes.index[start]:%B %Y}: {100 * (np.exp(centre) - 0.01):.1f} % a month")
