"""How the page looks: one column on a phone, two pictures side by side on a screen, light, dark and on paper."""

from collections.abc import Mapping

from privurn.drawing.palette import DARK, LIGHT, PRINTED


def _root(colours: Mapping[str, str], *, scheme: str) -> str:
    """The variables that all rules and pictures take their colours from."""
    stated = " ".join(f"--{role}: {colour};" for role, colour in colours.items())
    return f":root {{ color-scheme: {scheme}; {stated} }}"


COLOURS = f"""
{_root(LIGHT, scheme="light dark")}
@media (prefers-color-scheme: dark) {{ {_root(DARK, scheme="light dark")} }}
@media print {{ {_root(PRINTED, scheme="light")} }}
"""

RULES = """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
main, header, footer { max-width: 66rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2rem; }
footer { padding-bottom: 3rem; color: var(--soft); font-size: 0.9rem; }
h1 { font-size: clamp(1.5rem, 4.5vw, 2.1rem); line-height: 1.2; margin: 0 0 0.5rem; overflow-wrap: anywhere; }
h2 {
  font-size: 1.3rem; line-height: 1.25; margin: 2.5rem 0 0.75rem; padding-bottom: 0.3rem; border-bottom: 1px solid var(--rule);
}
h3 { font-size: 1.05rem; margin: 1.75rem 0 0.5rem; overflow-wrap: anywhere; }
p, ul { max-width: 46rem; }
p, li { overflow-wrap: break-word; }
ul { padding-left: 1.25rem; }
.lead { font-size: 1.1rem; color: var(--soft); margin-top: 0; }
.promise {
  max-width: none; background: var(--sheet); border-left: 4px solid var(--accent); border-radius: 0 6px 6px 0;
  padding: 0.9rem 1.1rem; font-size: 1.1rem;
}
.banner {
  background: var(--warn-paper); color: var(--warn-ink); border: 2px solid var(--warn-rule); border-radius: 6px;
  padding: 0.75rem 1rem; font-weight: 600; max-width: none;
}
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 0.9em; }
code { overflow-wrap: anywhere; }
pre { background: var(--sheet); border-radius: 6px; padding: 0.75rem 1rem; overflow-x: auto; }
pre code, table code { overflow-wrap: normal; }
dl {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); gap: 0.75rem 1.5rem; margin: 1rem 0;
}
dt { color: var(--soft); font-size: 0.85rem; }
dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: 1rem 0; }
.scroll:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); font-size: 0.9rem; padding-bottom: 0.4rem; }
th, td { text-align: right; padding: 0.35rem 0.9rem; border-bottom: 1px solid var(--rule); vertical-align: top; }
th:first-child { text-align: left; padding-left: 0; }
thead th { color: var(--soft); font-weight: 600; font-size: 0.85rem; vertical-align: bottom; }
tbody th { font-weight: 500; overflow-wrap: break-word; min-width: 6rem; max-width: 20rem; }
table.words th, table.words td { text-align: left; }
table.words td { overflow-wrap: break-word; min-width: 6rem; max-width: 24rem; }
.plots {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1.5rem; margin: 1.25rem 0;
}
figure { margin: 0; }
figcaption { font-size: 0.9rem; color: var(--soft); max-width: 34rem; margin-top: 0.4rem; }
figcaption strong { color: var(--ink); }
svg { display: block; width: 100%; max-width: 34rem; height: auto; fill: var(--ink); }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
table.bars { width: 100%; min-width: 17rem; max-width: 46rem; table-layout: fixed; }
table.bars th, table.bars td { padding: 0.3rem 0 0.3rem 0.5rem; min-width: 0; max-width: none; overflow-wrap: anywhere; }
table.bars th:first-child { padding-left: 0; width: 32%; }
table.bars thead th:not(:first-child) { width: 4.9rem; }
table.bars td.bar { text-align: left; padding-top: 0.45rem; }
.bar span { display: block; height: 0.6rem; border-radius: 0 2px 2px 0; margin: 1px 0; }
.released { background: var(--series-1); }
.original { background: var(--series-2); }
.key { display: inline-block; width: 0.9rem; height: 0.6rem; margin-right: 0.35rem; }
@media (max-width: 34rem) {
  main, header, footer { padding-left: 1rem; padding-right: 1rem; }
  th, td { padding: 0.3rem 0.6rem; }
}
@media print {
  body { font-size: 10.5pt; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main, header, footer { max-width: none; padding: 0; }
  figure, tr, .promise, .banner, dl > div { break-inside: avoid; }
  h2, h3, caption { break-after: avoid; }
  .scroll, pre { overflow: visible; }
  pre { white-space: pre-wrap; }
  .plots { grid-template-columns: 1fr 1fr; }
}
@page { margin: 18mm; }
"""

STYLE = COLOURS + RULES.lstrip()
