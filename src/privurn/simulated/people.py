"""20,000 people of a made-up survey: eight columns of numbers, yes or no and categories, which depend on each other.

Pay follows education, hours, age and sex; who has bought a house follows pay and age.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 20_000
SEED = 20_240_502

EDUCATION = ("school", "college", "degree")
REGIONS = ("north", "south", "east", "west")

DOMAIN = """\
# The public domain of people.csv: what is known of its columns without looking at it.
age: {kind: bins, edges: [18, 25, 35, 45, 55, 65, 80]}
sex: {kind: categories, values: [f, m]}
region: {kind: categories, values: [north, south, east, west]}
education: {kind: categories, values: [school, college, degree]}
hours: {kind: bins, edges: [0, 10, 20, 30, 40, 50, 80]}
children: {kind: grid, low: 0, high: 5, step: 1}
pay: {kind: bins, edges: [0, 10000, 20000, 30000, 40000, 60000, 100000, 250000]}
owner: {kind: categories, values: ["no", "yes"]}
"""
"""Bins and lists as `--domain` reads them."""


def people() -> dict[str, NDArray[Any]]:
    """The columns by name."""
    rng = np.random.default_rng(SEED)
    age = rng.integers(18, 80, ROWS)
    female = rng.random(ROWS) < 0.51
    region = rng.choice(len(REGIONS), ROWS, p=[0.2, 0.35, 0.25, 0.2])
    schooling = np.clip(np.round(rng.normal(0.9 + 0.2 * (region == 1) - 0.006 * (age - 45), 0.75)), 0, 2).astype(np.int64)
    children = np.minimum(rng.poisson(np.where(age < 25, 0.2, 1.3)), 5)
    hours = np.clip(np.round(rng.normal(38 - 3 * female * np.minimum(children, 3) - 9 * (age > 66), 8)), 2, 75).astype(np.int64)
    working_life = np.minimum(age, 55) - 18
    log_wage = 2.35 + 0.3 * schooling + 0.012 * working_life - 0.12 * female + rng.normal(0, 0.35, ROWS)
    pay = np.minimum(100 * np.round(52 * hours * np.exp(log_wage) / 100), 240_000).astype(np.int64)
    owner = rng.random(ROWS) < 1 / (1 + np.exp(3.4 - pay / 25_000 - 0.035 * (age - 18)))
    return {
        "age": age,
        "sex": np.where(female, "f", "m"),
        "region": np.array(REGIONS)[region],
        "education": np.array(EDUCATION)[schooling],
        "hours": hours,
        "children": children,
        "pay": pay,
        "owner": np.where(owner, "yes", "no"),
    }
