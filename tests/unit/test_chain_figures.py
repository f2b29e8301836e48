"""Pictures of draws hold the numbers they claim to show."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from privurn.drawing import density_picture, interval_picture, together_picture, trace_picture, whole_number_picture
from privurn.drawing.densities import cdf_picture, density_panels
from privurn.errors import ModelError
from privurn.inference.draws import Draws
from privurn.reports.html.pictures import SIZE

RNG = np.random.default_rng(1)
DRAWS = Draws(
    variables={"n": RNG.poisson(9, (2, 300)), "beta": RNG.normal(size=(2, 300, 2))}, markov=True, dims={"beta": ("term",)}
)


def test_traces_are_the_chains():
    picture = trace_picture(DRAWS.numbers(["n", "beta"]))
    assert [axes.get_ylabel() for axes in picture.axes] == ["n", "beta[0]", "beta[1]"]
    assert np.array_equal(picture.axes[2].lines[1].get_ydata(), DRAWS["beta"][1, :, 1])
    assert len(trace_picture(DRAWS.numbers()).axes) == 3
    with pytest.raises(ModelError, match="no draws"):
        trace_picture(DRAWS.numbers(["gamma"]))
    with pytest.raises(ModelError, match="no variable"):
        trace_picture([])


def test_bars_are_probabilities():
    (axes,) = whole_number_picture(DRAWS["n"], name="n", marks={"noisy n": 9.4}).axes
    heights = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in axes.patches}
    for value, height in heights.items():
        assert height == pytest.approx(np.mean(DRAWS["n"] == value))
    assert sum(heights.values()) == pytest.approx(1.0)
    (wide,) = whole_number_picture(RNG.integers(0, 10_000, 5000), name="n").axes
    assert sum(bar.get_height() for bar in wide.patches) == pytest.approx(1.0)
    assert len(wide.patches) <= 60


def test_density_and_intervals_and_matrix():
    grid = np.linspace(0, 1, 5)
    (axes,) = density_picture(grid, mean=grid, lower=grid / 2, upper=grid * 2, level=0.9, others={"truth": 1 - grid}).axes
    assert np.array_equal(axes.lines[0].get_ydata(), grid)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["90% band", "posterior mean", "truth"]
    summaries = DRAWS.summary(["n"])
    picture = interval_picture({"ours": summaries, "naive": summaries})
    assert picture.axes[0].lines[0].get_xdata().tolist() == [summaries[0].lower, summaries[0].upper]
    assert [label.get_text() for label in picture.axes[0].get_yticklabels()] == ["ours", "naive"]
    matrix = np.array([[1, 0.1, 0.9], [0.1, 1, 0.2], [0.9, 0.2, 1]])
    image = together_picture(matrix, order=[0, 1, 0]).axes[0].images[0]
    assert np.array_equal(image.get_array(), matrix[np.ix_([0, 2, 1], [0, 2, 1])])
    with pytest.raises(ModelError, match="no interval"):
        interval_picture({})


def test_long_numbers_at_an_axis_stand_apart():
    """Incomes up to 200,000 are no unusual column; in reports pictures are small."""
    places, shares = np.arange(0.0, 201_000.0, 1_000.0), np.sort(RNG.random((20, 201)), axis=1)
    asked = {"curves": {"posterior": shares}, "released": shares[0], "level": 0.9, "steps": True, "name": "income", "title": ""}
    draws = Draws(variables={name: RNG.normal(150_000, 30_000, (1, 200)) for name in ("mean", "q0.25", "q0.75")}, markov=False)
    each = {name: values.ravel() for name, values in draws.variables.items()}
    panels = density_panels({"posterior": each}, draws.summary(), released=dict.fromkeys(each, 1.5e5), title="")
    curve = density_picture(places, mean=shares[0], lower=shares[1], upper=shares[2], level=0.9)
    small = cdf_picture(places, **asked)
    small.set_size_inches(*SIZE)
    for picture in (small, panels, curve):
        FigureCanvasAgg(picture).draw()
        for axes in picture.axes:
            extents = [label.get_window_extent() for label in axes.get_xticklabels()]
            assert len(extents) > 2
            assert all(left.x1 < right.x0 for left, right in pairwise(extents))
