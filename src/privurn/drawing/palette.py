"""One palette for every picture and page: curves that colour-blind people can tell apart, on light paper and on dark.

The first six light colours are those of Okabe and Ito, two of them a little darker to stand out on white. Whoever sees all
colours, or lacks the red, green or blue receptors, finds any two of a row at least six just noticeable differences apart.
"""

SERIES = ("#0072B2", "#C24E00", "#009E73", "#B4558B", "#E69F00", "#56B4E9", "#403B7B", "#813F55")
"""Of the first, second, ... curve."""

DARK_SERIES = ("#40AAED", "#F47C48", "#5BF3BC", "#C57EA9", "#E5E14B", "#C8E2FF", "#4E63E3", "#D11B58")
"""The same curves on dark paper."""

STYLES = ("-", "--", "-.", ":")
INK = "#000000"
PAPER = "#FFFFFF"
GREY = "#6E6E6E"
"""Of what a curve is compared with."""

PALE, SOFT, FAINT, EDGE = "#F2F2F2", "#D9D9D9", "#BDBDBD", "#9A9A9A"
"""Of areas and their hatching, from light to dark."""


def colour(i: int) -> str:
    """Of the i-th curve."""
    return SERIES[i % len(SERIES)]


def _numbered(series: tuple[str, ...]) -> dict[str, str]:
    return {f"series-{i}": each.lower() for i, each in enumerate(series, start=1)}


LIGHT = {
    "paper": "#ffffff",
    "sheet": "#f4f6f8",
    "ink": "#16202a",
    "soft": "#52606d",
    "rule": "#c9d1d9",
    "grid": "#b0b0b0",
    "accent": "#0b5c8f",
    "warn-paper": "#fdecea",
    "warn-ink": "#8a1c12",
    "warn-rule": "#c0392b",
    **_numbered(SERIES),
}
"""Colours of a page by what they are for."""

DARK = {
    "paper": "#14191f",
    "sheet": "#1d242c",
    "ink": "#e6ebf0",
    "soft": "#a5b1bd",
    "rule": "#3a4551",
    "grid": "#55616d",
    "accent": "#7cc4f2",
    "warn-paper": "#3b1713",
    "warn-ink": "#ffb4a8",
    "warn-rule": "#e06252",
    **_numbered(DARK_SERIES),
}
PRINTED = LIGHT | {"ink": "#000000", "soft": "#444444", "rule": "#bbbbbb", "warn-paper": "#ffffff"}

ROLES = {
    PAPER.lower(): "paper",
    INK: "ink",
    "#262626": "ink",
    "#cccccc": "rule",
    "#b0b0b0": "grid",
    GREY.lower(): "soft",
    **{each: role for role, each in _numbered(SERIES).items()},
}
"""What a colour in a picture (matplotlib's own among them) is for on a page."""
