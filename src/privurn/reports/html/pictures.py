"""Pictures inside the page: curves as SVG that follows the page's colours, and bars as plain HTML.

Labels that come from the data are HTML text, never part of an SVG: they are escaped, and any script can be shown.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privurn.drawing.figure import blank, few_numbers, line
from privurn.drawing.palette import ROLES
from privurn.reports.comparison.distances import bandwidth, density
from privurn.reports.comparison.samples import Sample
from privurn.reports.html.markup import Markup, escaped, number, percent, tag

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (4.7, 3.7)
"""Inches: small enough that letters stay readable on a telephone."""

POINTS = 241
MOST_BARS = 30


def plot(figure: "Figure", *, name: str, title: str, description: str, size: tuple[float, float] = SIZE) -> Markup:
    """A figure of matplotlib's as part of the page; `name` keeps its inner names apart from other pictures'."""
    figure.set_size_inches(*size)
    figure.suptitle("")
    frame, inner = _drawing(figure, name)
    drawing = tag("svg", inner, viewBox=frame, role="img", aria_label=f"{title}. {description}")
    return tag("figure", drawing, tag("figcaption", tag("strong", f"{title}."), " ", description))


def _drawing(figure: "Figure", name: str) -> tuple[str, Markup]:
    """View box and content without a document of its own: no metadata, no style sheet, no foreign names, unique ids."""
    from io import StringIO

    from matplotlib import rc_context

    buffer = StringIO()
    with rc_context({"svg.hashsalt": "privurn", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", pad_inches=0.04, metadata={"Date": None})
    head, _, rest = buffer.getvalue().partition("<svg")[2].partition(">")
    inner = rest.rpartition("</svg>")[0]
    for what in (r"<metadata.*?</metadata>", r"<style.*?</style>", r"<!--.*?-->"):
        inner = re.sub(what, "", inner, flags=re.DOTALL)
    inner = re.sub(r'\bid="', f'id="{name}-', inner)
    inner = re.sub(r'(?:xlink:)?href="#', f'href="#{name}-', inner)
    inner = inner.replace("url(#", f"url(#{name}-")
    inner = re.sub(r"#[0-9a-f]{6}\b", _variable, inner)
    return head.partition('viewBox="')[2].partition('"')[0], Markup(inner)


def _variable(colour: "re.Match[str]") -> str:
    """A colour as the page names it."""
    return f"var(--{ROLES[colour[0]]})" if colour[0] in ROLES else colour[0]


def density_plot(samples: dict[str, Sample], *, gap: float, name: str, title: str, description: str) -> Markup:
    """Smoothed densities of up to two samples, all with the bandwidth of the last one, over a public range."""
    width = bandwidth(list(samples.values())[-1], least=gap)
    low = min(float(each.values[0]) for each in samples.values()) - 2.0 * width
    high = max(float(each.values[-1]) for each in samples.values()) + 2.0 * width
    at = np.linspace(low, high, POINTS)
    figure, axes = blank("")
    for i, (label, sample) in enumerate(samples.items()):
        axes.plot(at, density(sample, at=at, bandwidth=width), **line(i), label=label)
    axes.set(xlim=(low, high), ylabel="density")
    axes.set_ylim(bottom=0.0)
    few_numbers(axes.xaxis)
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4))
    if len(samples) > 1:
        axes.legend()
    words = f"{description} Gaussian kernel, bandwidth {number(width, digits=3)}."
    return plot(figure, name=name, title=title, description=words)


def bars(labels: Sequence[str], shares: Sequence[NDArray[Any]], *, caption: str, heads: Sequence[str]) -> Markup:
    """Shares as bars with their numbers, the largest ones where there are many; the first series is the release."""
    largest = np.max(shares, axis=0) if len(labels) else np.zeros(0)
    shown = np.sort(np.argsort(-largest, kind="stable")[:MOST_BARS])
    scale = max(float(largest.max(initial=0.0)), 1e-300)
    looks = ("released", "original")
    rows = []
    for i in shown.tolist():
        drawn = [
            tag("span", "", class_=look, style=f"width: {_width(float(each[i]) / scale)}")
            for look, each in zip(looks, shares, strict=False)
        ]
        numbers = [tag("td", percent(float(each[i]))) for each in shares]
        rows.append(tag("tr", tag("th", labels[i], scope="row"), tag("td", *drawn, class_="bar", aria_hidden="true"), *numbers))
    left = len(labels) - len(shown)
    if left > 0:
        rest = [tag("td", percent(max(0.0, 1.0 - float(each[shown].sum())))) for each in shares]
        rows.append(tag("tr", tag("th", f"{left:,} more", scope="row"), tag("td", "", class_="bar"), *rest))
    keyed = [
        tag("th", tag("span", "", class_=f"key {look}"), head, scope="col") for look, head in zip(looks, heads, strict=False)
    ]
    head = tag("tr", tag("th", "value", scope="col"), tag("td", ""), *keyed)
    inner = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *rows), class_="bars")
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=escaped(caption))


def _width(share: float) -> str:
    """Of a bar: what is there at all can be seen."""
    return f"{max(0.5, 100.0 * share):.2f}%" if share > 0.0 else "0"
