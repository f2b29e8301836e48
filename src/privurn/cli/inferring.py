"""What all `privurn infer` commands share: options, checks before any work is done, cells of their tables, files."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privurn.cli.console import print_text
from privurn.errors import FormatError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privurn.inference.draws import Summary

DrawsOfEach = Annotated[str, typer.Option("--draws", help="Of each chain.")]
WarmUpSweeps = Annotated[str, typer.Option("--warm-up", help="Sweeps before the first draw.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="The same seed gives the same draws.", show_default=False)]
IntervalLevel = Annotated[float, typer.Option("--level", help="Of the intervals.")]
DrawsFile = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE.nc", help="Write the draws as netCDF.", show_default=False)
]


def check_common(level: float, output: Path | None) -> None:
    """The level of intervals and the file of draws."""
    from privurn.inference.draws import check_netcdf_name

    if not 0.0 < level < 1.0:
        raise FormatError("the level of an interval must be between 0 and 1.", hint="For example --level 0.95")
    if output is not None:
        check_netcdf_name(output)


def check_picture(path: str) -> None:
    """The name of a picture."""
    from privurn.drawing import check_suffix
    from privurn.output_files import check_file

    check_suffix(path)
    check_file(path)


def named_pictures(given: Sequence[str] | None, known: Sequence[str], *, example: str) -> dict[str, str]:
    """Files by kind, from KIND=FILE; FILE alone is the first kind."""
    found = {}
    for each in given or []:
        kind, equals, target = each.partition("=")
        kind, target = (kind, target) if equals else (known[0], each)
        if kind not in known:
            raise FormatError(f"the picture {kind!r} is not known.", hint=f"{', '.join(known)}; for example {example}")
        check_picture(target)
        found[kind] = target
    return found


def write_files(
    save_draws: Callable[[Path], Path],
    output: Path | None,
    *,
    figures: "Sequence[tuple[Figure, str]]",
    synthetic: Path | None,
    write_synthetic: Callable[[Path], Any],
) -> dict[str, str]:
    """What was asked for, by name; pictures are drawn in full before the first file is touched."""
    from privurn.drawing import save

    written = {}
    if output is not None:
        written["draws"] = str(save_draws(output))
    if synthetic is not None:
        write_synthetic(synthetic)
        written["synthetic"] = str(synthetic)
    if figures:
        written["pictures"] = ", ".join(str(save(figure, target)) for figure, target in figures)
    return written


def print_files(written: Mapping[str, str]) -> None:
    """Where everything is."""
    for what, path in written.items():
        print_text(f"{what.capitalize()}: {path}")


def cells_of(each: "Summary") -> list[str]:
    """Name, mean, deviation and interval."""
    from rich.markup import escape  # beta[age] is no style

    return [escape(each.name), short(each.mean), short(each.deviation), interval(each)]


def diagnostics_of(each: "Summary") -> list[str]:
    """Effective draws and R-hat."""
    effective = f"{each.effective_draws:,.0f}" if math.isfinite(each.effective_draws) else "-"
    return [effective, "-" if each.r_hat is None or math.isnan(each.r_hat) else f"{each.r_hat:.3f}"]


def interval(each: "Summary") -> str:
    """From here to there."""
    return f"{short(each.lower)} to {short(each.upper)}"


def short(value: float) -> str:
    """Five digits, without an exponent where it can be helped."""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10_000.0 else f"{value:.5g}"
