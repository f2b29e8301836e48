"""Pictures of guarantees: profiles, trade-off curves, what a guarantee allows, and simulations beside the exact figures.

Every function returns a matplotlib Figure of its own, without pyplot and its global state; `save` writes it. Colours are
those of Okabe and Ito, which colour-blind people can tell apart, and line styles differ as well. A picture of figures that
were computed from the confidential data says CONFIDENTIAL in its title.
"""

from privurn.reports.figures.drawing import check_suffix, save
from privurn.reports.figures.planning import alpha_star_curves, plan_picture, records_map
from privurn.reports.figures.profiles import profile_curves, trade_off_curves
from privurn.reports.figures.simulations import density_ratio_picture, instance_curves

__all__ = [
    "alpha_star_curves",
    "check_suffix",
    "density_ratio_picture",
    "instance_curves",
    "plan_picture",
    "profile_curves",
    "records_map",
    "save",
    "trade_off_curves",
]
