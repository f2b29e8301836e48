"""What all answers of `privurn infer` share: what was typed, checks before any work is done, cells of tables, files."""

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privurn.cli.console import note, print_text, print_words
from privurn.cli.parsing import whole_number
from privurn.errors import FormatError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privurn.errors import InferenceWarning
    from privurn.inference.cautions import Cautious
    from privurn.inference.draws import Summary
    from privurn.inference.posterior import Posterior
    from privurn.inference.run import Run

MOST_ROWS = 60
"""Of a printed table; all are in the JSON and the netCDF file."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was typed, checked as far as that goes without the release."""

    typed: Mapping[str, Any]
    draws: int | None
    warm_up: int | None
    records: int | None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What else a machine is told: other releases, other priors."""

    @property
    def ask(self) -> list[str] | None:
        """What to report."""
        return self.typed["ask"] or None

    @property
    def level(self) -> float:
        """Of intervals."""
        return float(self.typed["level"])

    @property
    def json(self) -> bool:
        """Whether a machine reads."""
        return bool(self.typed["json"])

    @property
    def output(self) -> Path | None:
        """The file of draws."""
        found: Path | None = self.typed["output"]
        return None if _in_folder(self.typed) else found

    def run(self, progress: Any) -> "Run":
        """How to run."""
        from privurn.inference.run import Run

        return Run(
            chains=self.typed["chains"],
            warm_up=self.warm_up,
            draws=self.draws,
            thin=self.typed["thin"],
            seed=self.typed["seed"],
            checkpoint=self.typed["checkpoint"],
            progress=progress,
        )

    def pictures(self, known: Sequence[str]) -> dict[str, str]:
        """Files by kind, from KIND=FILE; FILE alone is the first kind."""
        found = {}
        for each in self.typed["plot"] or []:
            kind, equals, target = each.partition("=")
            kind, target = (kind, target) if equals else (known[0], each)
            if kind not in known:
                raise FormatError(
                    f"the picture {kind!r} is not known.", hint=f"{', '.join(known)}; for example --plot {known[-1]}=p.png"
                )
            check_picture(target)
            found[kind] = target
        return found

    @property
    def folder(self) -> Path | None:
        """A new folder of records, where a number of them or copies are asked for."""
        found: Path | None = self.typed["output"]
        return found if _in_folder(self.typed) else None

    @property
    def seed(self) -> int:
        """Of the records: public, and stated beside them."""
        given: int | None = self.typed["seed"]
        return secrets.randbits(53) if given is None else given

    def synthetic(self) -> Path | None:
        """A new file of records."""
        from privurn.output_files import check_new_file

        target: Path | None = self.typed["synthetic"]
        if target is None or _in_folder(self.typed):
            return None
        if target.suffix not in (".csv", ".parquet"):
            raise FormatError("synthetic records are written as CSV or Parquet.", hint="Name a file that ends in .csv")
        return check_new_file(target)


def checked(typed: Mapping[str, Any]) -> Asked:
    """All that can be checked without the release."""
    from privurn.inference.draws import check_netcdf_name
    from privurn.output_files import check_file, check_new_folder

    if not 0.0 < typed["level"] < 1.0:
        raise FormatError("the level of an interval must be between 0 and 1.", hint="For example --level 0.95")
    if typed["copies"] > 1 and typed["records"] is not None:
        raise FormatError("copies have as many records as the confidential table.", hint="Leave --records out")
    if _in_folder(typed):
        if typed["output"] is None:
            raise FormatError("records go into a new folder.", hint="--synthetic 1000 -o NEWDIR, or --copies 20 -o NEWDIR")
        check_new_folder(typed["output"])
        number = None if typed["synthetic"] is None else str(typed["synthetic"])
        if typed["copies"] > 1 and number is not None:
            note(f"Copies have as many records as the confidential table, not {number}.")
            number = None
        typed = {**typed, "records": number}
    elif typed["output"] is not None:
        check_netcdf_name(typed["output"])
    if typed["checkpoint"] is not None:
        check_file(typed["checkpoint"])
    records = None if typed["records"] is None else whole_number(typed["records"])
    if records is not None and (records < 1 or typed["synthetic"] is None):
        hint = "--synthetic 1000 -o NEWDIR" if _in_folder(typed) else "--synthetic new.csv --records 1000"
        raise FormatError("at least one synthetic record must be asked for.", hint=hint)
    warm_up = None if typed["warm_up"] is None else whole_number(typed["warm_up"])
    if warm_up is not None and warm_up < 0:
        raise FormatError("there is no negative warm-up.", hint="--warm-up 1000")
    draws = None if typed["draws"] == "auto" else whole_number(typed["draws"])
    return Asked(typed=typed, draws=draws, warm_up=warm_up, records=records)


def _in_folder(typed: Mapping[str, Any]) -> bool:
    """Whether a number of records, or copies, are asked for, and not a file of records."""
    try:
        return typed["copies"] > 1 or (typed["synthetic"] is not None and whole_number(str(typed["synthetic"])) >= 0)
    except FormatError:
        return False


def check_picture(path: str) -> None:
    """The name of a picture."""
    from privurn.drawing import check_suffix
    from privurn.output_files import check_file

    check_suffix(path)
    check_file(path)


def warn(found: "Cautious") -> None:
    """What Python warns of, in the same words; loudly where chains have not mixed, or a maximum was not found."""
    for each in found.cautions():
        warn_of(each)


def warn_of(each: "InferenceWarning", *, where: str = "") -> None:
    """One warning, and what it is of where that is not what was asked for first."""
    from privurn.errors import NoMaximum, NotMixed

    note(f"{'WARNING' if isinstance(each, (NotMixed, NoMaximum)) else 'warning'}: {where}{each}")


def common_json(found: "Posterior", rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What every answer says to machines."""
    draws = found.draws
    stated = {
        name: draws.attributes[name]
        for name in ("length", "warm_up", "forgotten", "seed", "sampler")
        if name in draws.attributes
    }
    return {
        "variables": list(rows),
        "chains": draws.n_chains,
        "draws": draws.n_draws,
        **stated,
        "mixed": found.mixed,
        "problems": list(found.problems()),
        "warnings": [str(each) for each in found.cautions()],
        **({"undefined": found.undefined} if found.undefined else {}),
    }


def write_files(
    found: "Posterior", asked: Asked, *, figures: "Sequence[tuple[Figure, str]]", synthetic: Callable[[], Any]
) -> dict[str, str]:
    """What was asked for, by name; pictures are drawn and records made in full before the first file is touched."""
    from privurn.drawing import save
    from privurn.output_files import write_file
    from privurn.tables import write

    written, target = {}, asked.synthetic()
    table = None if target is None else synthetic()
    if asked.output is not None:
        written["draws"] = str(found.save(asked.output))
    if target is not None:
        write_file(target, lambda partial: write(table, partial))
        written["synthetic"] = str(target)
    if figures:
        written["pictures"] = ", ".join(str(save(figure, target)) for figure, target in figures)
    return written


def write_folder(found: "Posterior", asked: Asked, *, made_from: str) -> dict[str, str]:
    """Records in a folder of their own, with what they were made from; nothing where none are asked for."""
    if asked.folder is None:
        return {}
    import warnings

    from privurn.certificates.folder import save_synthetic

    copies, seed = asked.typed["copies"], asked.seed
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        table = found.synthetic(records=asked.records, copies=copies, seed=seed)
    for each in said:
        note(f"WARNING: {each.message}")
    save_synthetic(table, asked.folder, about={"made_from": made_from, "copies": copies, "seed": seed})
    return {"records": str(asked.folder)}


def print_left_out(rows: Sequence[Any]) -> None:
    """How many rows a printed table does not hold."""
    if len(rows) > MOST_ROWS:
        print_text(f"and {len(rows) - MOST_ROWS:,} more (--json, -o FILE.nc)")


def print_files(written: Mapping[str, str]) -> None:
    """Where everything is."""
    for what, path in written.items():
        print_text(f"{what.capitalize()}: {path}")


def print_length(found: "Posterior", accepted: str) -> None:
    """How long the chains were, and why."""
    draws = found.draws
    stated = draws.attributes
    chosen = stated["length"] == "chosen"
    length = ("until they had mixed" if found.mixed else "the longest tried") if chosen else "as asked"
    print_words(
        f"{stated['sampler']}: {draws.n_chains} chains of {draws.n_draws:,} draws ({length}) after "
        f"{stated['warm_up'] + stated['forgotten'] * stated['thin']:,} sweeps" + (f"; accepted: {accepted}" if accepted else "")
    )


def cells_of(each: "Summary") -> list[str]:
    """Name, mean, deviation and interval."""
    return [each.label, short(each.mean), short(each.deviation), interval(each)]


def ends(each: "Summary") -> str:
    """Between what a figure lies, wherever in their bins the records do; nothing where it depends on no bin."""
    return "-" if each.lowest is None or each.highest is None else f"{short(each.lowest)} to {short(each.highest)}"


def unbiased_of(each: "Summary") -> str:
    """The estimate without a prior and its standard error, where there is one."""
    if each.unbiased is None or each.unbiased_error is None:
        return "-"
    return f"{short(each.unbiased)} (+- {short(each.unbiased_error)})"


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
