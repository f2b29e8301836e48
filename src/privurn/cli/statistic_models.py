"""Models whose sums `privurn statistics` publishes: the options of each are its fields, as those of a mechanism are."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from privurn.cli.domain_options import DomainOptions
from privurn.cli.parsing import whole_number
from privurn.errors import DomainError, FormatError
from privurn.mechanisms import registry
from privurn.mechanisms.perturbed_histogram import NoisyCounts
from privurn.mechanisms.recipe import Asked, option
from privurn.mechanisms.sums.recipe import Sums
from privurn.privacy.profile import Guarantee

if TYPE_CHECKING:
    from privurn.certificates.release import Release

Texts = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class SumModel(Asked):
    """What was typed about a model."""

    @abstractmethod
    def own(self) -> dict[str, Any]:
        """What its statistic is calibrated with, beside the budget."""

    @property
    def statistic(self) -> Any:
        """The class of what is published."""
        return {each.model: each for each in registry.statistics().values()}[self.alias]

    def release(self, data: Any, guarantee: Guarantee, *, epsilon_n: float | None, noise: Any, **paid: Any) -> "Release":
        """With the least noise."""
        from privurn.releases.statistics import release_statistics

        budget = Sums(self.alias, epsilon_n=epsilon_n, noise=noise).budget(guarantee)
        return release_statistics(data, mechanism=self.statistic.calibrated(budget=budget, **self.own()), budget=budget, **paid)


@dataclass(frozen=True, kw_only=True, repr=False)
class Numbers(SumModel):
    """Of columns that are read as numbers."""

    missing: str = option(
        "Missing numbers: error (declared absent, default) or unreadable (the middle of the bounds, or 0).", default="error"
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class Moments(Numbers):
    """Of a response between public bounds."""

    y: str = option("The response; logistic: 0 or 1.", default=MISSING)
    bounds: Texts = option(
        "Public bounds, chosen without looking at the data: COLUMN=LOW:HIGH, repeatable; LOW:HIGH alone for all columns.",
        default=MISSING,
    )
    squares: str = option(
        "plain (default), or complement (less noise; needs epsilon-n of epsilon/10 or more).", default="plain"
    )

    def own(self) -> dict[str, Any]:
        """Response and bounds."""
        return {
            "response": self.y,
            "bounds": parse_bounds(self.bounds),
            "squares": self.squares,
            "missing": self.missing,
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class Regression(Moments):
    """Linear, with covariates or none."""

    alias: ClassVar[str] = "regression"
    x: Texts = option("A covariate; repeatable.", default=())

    def own(self) -> dict[str, Any]:
        """With the covariates."""
        return {**super().own(), "covariates": self.x}


@dataclass(frozen=True, kw_only=True, repr=False)
class Dirichlet(Numbers):
    """Parts of a whole."""

    alias: ClassVar[str] = "dirichlet"
    part: Texts = option("Part of a composition; two or more times: --part sleep --part work --part rest.", default=MISSING)
    floor: float = option("Smallest share, a public number chosen without looking at the data: 0.001.", default=MISSING)

    def own(self) -> dict[str, Any]:
        """Parts and floor."""
        return {"parts": self.part, "floor": self.floor, "missing": self.missing}


@dataclass(frozen=True, kw_only=True, repr=False)
class Table(SumModel):
    """Counts of the joint cells of public domains: short for noisy counts, whose sum is a noisy n."""

    alias: ClassVar[str] = "table"
    categories: Texts = option("COLUMN=LIST of explicit values, comma-separated; repeatable.", default=())
    grid: Texts = option("COLUMN=LO:HI:STEP: numbers on a public grid; repeatable.", default=())
    bins: Texts = option("COLUMN=EDGES: numbers in bins, comma-separated; repeatable.", default=())
    nulls: str = option("Missing values: error (declared absent, default) or cell (a cell of their own).", default="error")
    outside: str | None = option(
        "Values outside the domain: clamp (numbers' default), error (categories' default: declared absent), other or null."
    )
    ignore_case: bool = option("Categories: capitals A-Z and small letters are the same.", default=False)

    def own(self) -> dict[str, Any]:
        """A domain for each column."""
        domain = DomainOptions(
            categories=list(self.categories),
            grid=list(self.grid),
            bins=list(self.bins),
            nulls=self.nulls,
            outside=self.outside,
            ignore_case=self.ignore_case,
        ).declared()
        if not isinstance(domain, dict):
            raise FormatError("a table needs a name before each domain.", hint="For example --categories sex=f,m")
        return {"domain": domain}

    def release(self, data: Any, guarantee: Guarantee, *, epsilon_n: float | None, noise: Any, **paid: Any) -> "Release":
        """Like any other release of noisy counts."""
        from privurn.releases.release import release

        domain = self.own()["domain"]
        if epsilon_n is not None:
            raise FormatError("noisy counts add up to a noisy n: a table has no --epsilon-n.", hint="Leave it out")
        asked = NoisyCounts(publish="counts") if noise is None else NoisyCounts(publish="counts", noise=noise)
        return release(data, asked, domain=domain, **asdict(guarantee), **paid)


@dataclass(frozen=True, kw_only=True, repr=False)
class Bernoulli(Numbers):
    """A yes-or-no column."""

    alias: ClassVar[str] = "bernoulli"
    y: str = option("The column: of 0 and 1, or of counts.", default=MISSING)

    def own(self) -> dict[str, Any]:
        """Its column."""
        return {"column": self.y, "missing": self.missing}


@dataclass(frozen=True, kw_only=True, repr=False)
class Poisson(Bernoulli):
    """Counts."""

    alias: ClassVar[str] = "poisson"
    bounds: Texts = option(
        "0:LARGEST or COLUMN=0:LARGEST, a public number chosen without looking at the data.", default=MISSING
    )

    def own(self) -> dict[str, Any]:
        """With the largest count."""
        named = parse_bounds(self.bounds)
        if isinstance(named, dict):
            if set(named) != {self.y}:
                raise DomainError(f"there are no public bounds for {self.y!r}.", hint=f"--bounds {self.y}=0:20")
            named = named[self.y]
        if whole_number(named[0]) != 0:
            raise DomainError("counts start at 0.", hint=f"--bounds {self.y}=0:20")
        return {**super().own(), "upper": whole_number(named[1])}


@dataclass(frozen=True, kw_only=True, repr=False)
class Normal(Moments):
    """One column of numbers."""

    alias: ClassVar[str] = "normal"


@dataclass(frozen=True, kw_only=True, repr=False)
class Logistic(Regression):
    """A yes-or-no response with covariates."""

    alias: ClassVar[str] = "logistic"
    x: Texts = option("A covariate; repeatable.", default=MISSING)


MODELS: dict[str, type[SumModel]] = {
    each.alias: each for each in (Regression, Dirichlet, Table, Bernoulli, Poisson, Normal, Logistic)
}


def parse_bounds(texts: Sequence[str]) -> dict[str, tuple[str, str]] | tuple[str, str]:
    """COLUMN=LOW:HIGH for each column, or one LOW:HIGH for all."""
    found: dict[str, tuple[str, str]] = {}
    for text in texts:
        name, separator, rest = text.rpartition("=")
        low, colon, high = rest.partition(":")
        if not colon or not low or not high or (separator and (not name or name in found)):
            raise FormatError(f"the bounds {text!r} are not understood.", hint="Give COLUMN=LOW:HIGH, for example age=0:120")
        if not separator:
            if len(texts) > 1:
                raise FormatError("several bounds need a column before each.", hint="--bounds age=0:120 --bounds pay=0:200000")
            return low, high
        found[name] = (low, high)
    return found
