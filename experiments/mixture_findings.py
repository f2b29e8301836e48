"""The tables of `experiments.mixture_paper`, and what the paper found beside what they say."""

from typing import Any

import numpy as np

from experiments.mixture_betas import UNNOISED

Row = dict[str, Any]

OTHER_RATES = {0.5: "its 2 read as a scale", 0.1: "wide"}


def findings(section: str, rows: list[Row]) -> list[tuple[str, str]]:
    """What the paper says, and what the rows say."""
    apart = [each.get("between", 0.0) for each in rows]
    distance = f"distance between them: median {np.median(apart):.3f}, largest {max(apart):.3f}"
    if section == "4.1":
        ratio = min(min(each["neal5 acceptance"], each["slice acceptance"]) / each["bound"] for each in rows)
        ends = [[e for e in rows if e["epsilon"] == pick(e["epsilon"] for e in rows)] for pick in (min, max)]
        ess = {s: [float(np.mean([e[f"{s} ess"] for e in end])) for end in ends] for s in ("neal5", "slice")}
        speed = [f"n = {e['n']:.0f}: {e['neal5 us'] / e['slice us']:.1f}" for e in rows if e["epsilon"] == rows[-1]["epsilon"]]
        worse = sum(e["deconvolution error"] > e["slice error"] for e in rows)
        poor = [float(np.mean([e["slice error"] for e in end])) for end in ends]
        return [
            ("the samplers' densities agree", distance),
            ("acceptance far above exp(-epsilon)", f"least acceptance / exp(-epsilon) is {ratio:.2g}"),
            ("Neal 5's ESS falls with epsilon", "smallest to largest epsilon: {:.0f} to {:.0f}".format(*ess["neal5"])),
            ("slice's ESS grows with epsilon", "smallest to largest epsilon: {:.0f} to {:.0f}".format(*ess["slice"])),
            ("slice 10 times faster at n = 1000, else alike", f"time of Neal 5 / slice, {'; '.join(speed)}"),
            (
                "poor at epsilon <= 2, reasonable at 50",
                "mean error, smallest and largest epsilon: {:.3f}, {:.3f}".format(*poor),
            ),
            ("deconvolution is worse throughout", f"worse in {worse} of {len(rows)} settings"),
        ]
    if section == "4.2":
        return [("Laplace and J = 4 match for epsilon >= 50, J = 2 and 6 do not", _betas(rows, 2.0))] + [
            (f"(not the paper's base: {words})", _betas(rows, rate)) for rate, words in OTHER_RATES.items()
        ]
    if section == "4.3":
        effective = {s: float(np.mean([e[f"{s} ESS"] for e in rows])) for s in ("neal3", "neal2", "neal5")}
        return [
            ("Neal 2, 3 and 5 give the same density", distance),
            ("ESS: Neal 3 > Neal 2 > Neal 5", "mean ESS " + ", ".join(f"{s} {v:.0f}" for s, v in effective.items())),
        ]

    def spread(name: str) -> str:
        return ", ".join(f"{each[name]:.3g}" for each in rows)

    return [
        ("estimates hardly differ between samplers", distance),
        ("private and unnoised densities are alike", f"distances {spread('from unnoised')}"),
        ("bands are thinner without noise", f"private band / unnoised band: {spread('band')}"),
    ]


def _betas(rows: list[Row], rate: float) -> str:
    """Errors of each channel where the paper speaks of a match, and with next to no noise."""
    mine = [e for e in rows if e["rate"] == rate]
    high = [e for e in mine if 50 <= e["epsilon"] < UNNOISED]
    errors = [
        f"{name} " + ", ".join(f"{e['error']:.2f}" for e in high if e["channel"] == name)
        for name in dict.fromkeys(e["channel"] for e in high)
    ]
    best = next(e["error"] for e in mine if e["epsilon"] == UNNOISED)
    steps = ", ".join(dict.fromkeys(f"{e['epsilon']:g}" for e in high))
    return f"rate {rate:g}, error without noise {best:.2f}; at epsilon = {steps}: {'; '.join(errors)}"


def show(section: str, rows: list[Row]) -> None:
    """A table, and the paper's findings beside ours."""
    print(f"\nSection {section}" + (" (SIMULATED STAND-IN: the donors' data are not public)" if section == "6" else ""))
    names = list(rows[0])
    cells = [[each[name] if isinstance(each[name], str) else f"{each[name]:.4g}" for name in names] for each in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(names)]
    for line in [names, *cells]:
        print("  ".join(word.rjust(width) for word, width in zip(line, widths, strict=True)))
    for paper, ours in findings(section, rows):
        print(f"  paper: {paper:<62} here: {ours}", flush=True)
