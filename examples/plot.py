"""Draws a figure of a table, and writes it to stdout as PNG.

brig run -p data-science --ro examples/sales.csv examples/plot.py sales.csv > sales.png
"""
import sys

import matplotlib.pyplot as plt
import pandas as pd

sales = pd.read_csv(sys.argv[1], parse_dates=["month"])
axes = sales.pivot(index="month", columns="product", values="sold").plot(marker="o", title="Sold")
axes.set_xlabel("")
plt.savefig(sys.stdout.buffer, format="png", dpi=120)
