# needs the data-science rootfs: ./dev rootfs data-science; then brig run -p data-science examples/regression.py
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

random = np.random.default_rng(1)
data = pd.DataFrame({"size": random.uniform(20, 150, 200), "town": random.choice(["north", "south"], 200)})
data["rent"] = 200 + 11 * data["size"] + random.normal(0, 30, 200)

model = LinearRegression().fit(data[["size"]], data["rent"])
print(data.groupby("town")["rent"].mean().round(1).to_string())
print(f"rent = {model.intercept_:.0f} + {model.coef_[0]:.1f} * size")
