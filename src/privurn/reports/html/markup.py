"""HTML that cannot be forgotten to be escaped: text is text unless it is `Markup`, and only `tag` makes that."""

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any


class Markup(str):
    """Finished HTML."""

    __slots__ = ()


def escaped(value: Any) -> Markup:
    """Anything as HTML: what is HTML already stays, everything else becomes plain text."""
    return value if isinstance(value, Markup) else Markup(html.escape(str(value), quote=True))


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """An element; `class_` and `aria_label` stand for class and aria-label.

    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    shown = "".join(f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{shown}>{''.join(map(escaped, children))}</{name}>")


def void(name: str, **attributes: Any) -> Markup:
    """An element without content or end tag."""
    return Markup(tag(name, **attributes).removesuffix(f"</{name}>"))


def joined(parts: Iterable[Any]) -> Markup:
    """Parts one after the other."""
    return Markup("\n".join(map(escaped, parts)))


def section(title: str, *children: Any, name: str) -> Markup:
    """A part of the page under its own heading."""
    return tag("section", tag("h2", title, id=name), *children, aria_labelledby=name)


def bullets(items: Iterable[Any]) -> Markup:
    """A list."""
    return tag("ul", *(tag("li", item) for item in items))


def facts(pairs: Iterable[tuple[Any, Any]]) -> Markup:
    """Names and what they are."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs))


def table(caption: str, heads: Sequence[Any], rows: Iterable[Sequence[Any]]) -> Markup:
    """A table whose first column names the row; a wide one scrolls in its own box, by the keyboard too."""
    head = tag("tr", *(tag("th", each, scope="col") for each in heads))
    body = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", each) for each in row[1:])) for row in rows]
    inner = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def number(value: float, *, digits: int = 6) -> str:
    """A number as people write it."""
    if math.isnan(value):
        return "none"
    return f"{value:,.{digits}g}" if abs(value) < 10.0**digits or value == 0.0 else f"{value:,.0f}"


def small(value: float) -> str:
    """A delta: 0 exactly, or three digits rounded up."""
    if value <= 0.0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{value:.3g}" if float(f"{value:.3g}") >= value else f"{value + 0.5 * unit:.3g}"


def percent(share: float) -> str:
    """A share of records."""
    return "0%" if share == 0.0 else f"{100.0 * share:.2f}%"


def percent_up(bound: float) -> str:
    """An upper bound on a probability, rounded up so that what is printed is a bound as well.

    >>> percent_up(0.1359141)
    '13.6%'
    >>> percent_up(0.1361), percent_up(0.25), percent_up(1.0)
    ('13.7%', '25.0%', '100.0%')
    """
    return f"{min(100.0, math.ceil(1000.0 * bound * (1.0 - 1e-12)) / 10.0):.1f}%"
