"""Pictures that everything above draws with: one palette, and figures of numbers, draws and guarantees.

Every function returns a matplotlib Figure of its own, without pyplot and its global state; `save` writes it. Colours are those
of `palette`, and line styles differ as well. A picture of figures that were computed from the confidential data says
CONFIDENTIAL in its title.
"""

from privurn.drawing.densities import cdf_picture, density_panels, density_picture
from privurn.drawing.draws import together_picture, trace_picture, whole_number_picture
from privurn.drawing.intervals import interval_picture, interval_rows
from privurn.drawing.profiles import profile_curves, trade_off_curves
from privurn.drawing.records import alpha_star_curves, records_map
from privurn.drawing.saving import check_suffix, save

__all__ = [
    "alpha_star_curves",
    "cdf_picture",
    "check_suffix",
    "density_panels",
    "density_picture",
    "interval_picture",
    "interval_rows",
    "profile_curves",
    "records_map",
    "save",
    "together_picture",
    "trace_picture",
    "trade_off_curves",
    "whole_number_picture",
]
