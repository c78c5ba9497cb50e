"""
The best four greys of a photograph
===================================

Exact k-means of the brightness of all pixels: no other four greys are nearer to the picture.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import clustruct as cs

photograph = load_sample_image("china.jpg").mean(axis=2)
values, repeats = np.unique(photograph, return_counts=True)
palettes = cs.kmeans_1d(values, (2, 4, 8), sample_weight=repeats)  # several numbers from one sort

figure, axes = plt.subplots(2, 2, figsize=(9, 6.2), layout="constrained")
axes[0, 0].imshow(photograph, cmap="grey", vmin=0, vmax=255)
axes[0, 0].set_title(f"{values.size} greys")
for ax, palette in zip(axes.flat[1:], palettes, strict=True):
    greys = palette.centers[palette.labels]
    ax.imshow(greys[np.searchsorted(values, photograph)], cmap="grey", vmin=0, vmax=255)
    error = np.sqrt(palette.inertia / photograph.size)
    ax.set_title(f"{palette.centers.size} greys, {error:.1f} off")
for ax in axes.flat:
    ax.set_axis_off()

# %%
# Where the borders of four greys are:
figure, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
ax.hist(photograph.ravel(), bins=128, color="0.7")
for centre in palettes[1].centers:
    ax.axvline(centre, color="#D55E00")
ax.set(xlabel="brightness", ylabel="pixels")
