"""Privatise columns locally: every record through a channel by itself, with a certificate for the whole.

    data --(public bounds or categories)--> records --(guarantee)--> channel --(ledger pays first)--> noise --> certificate

The noise of numbers is OpenDP's on a public lattice; randomised response is drawn in exact integers. The mixture models read
the channel from the certificate. Proofs: docs/proofs/channels.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from privurn.certificates.certify import certify
from privurn.certificates.release import Release
from privurn.domain import Categories, JointDomain
from privurn.errors import DomainError, FormatError, ModelError, NotCertifiable
from privurn.mechanisms.local.channel import LocalChannel, check_bounds
from privurn.mechanisms.local.gaussian import DiscreteGaussianChannel, GaussianChannel, check_certifiable
from privurn.mechanisms.local.haar_wavelet import HaarWaveletChannel
from privurn.mechanisms.local.laplace import DiscreteLaplaceChannel, LaplaceChannel
from privurn.mechanisms.local.local_release import LocalRelease, Order
from privurn.mechanisms.local.randomised_response import RandomisedResponseChannel
from privurn.mechanisms.local.randomised_responses import RESPONSES, RandomisedResponsesChannel
from privurn.mechanisms.local.registry import LOCAL
from privurn.privacy.entropy import Entropy, SystemEntropy
from privurn.privacy.payer import LedgerChoice, Payer
from privurn.privacy.profile import Guarantee
from privurn.releases.release import pay
from privurn.tables import decode, open_table
from privurn.tables.columns import numbers_table, read_numbers
from privurn.tables.rows import read_cells

ChannelName = Literal["laplace", "gaussian", "haar-wavelet", "randomised-response", "discrete-laplace", "discrete-gaussian"]
CalibrationName = Literal["analytic", "zcdp", "classical", "tight", "butucea2020"]
Listed = Categories | Sequence[Any]


def privatise(
    data: Any,
    *,
    channel: ChannelName | LocalChannel = "laplace",
    epsilon: float | None = None,
    delta: float = 0.0,
    bounds: Sequence[float] | None = None,
    categories: Listed | Mapping[str, Listed] | None = None,
    levels: int | None = None,
    calibration: CalibrationName | None = None,
    column: str | Sequence[str] | None = None,
    nulls: Literal["error", "lower", "cell"] = "error",
    order: Order = "shuffled",
    contributions: int = 1,
    ledger: LedgerChoice = None,
    entropy: Entropy | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Release:
    """Privatise a column, or several of categories, each record by itself, with a privacy guarantee for every record.

    Parameters
    ----------
    data
        A path (CSV, Parquet, globs), pandas, polars or Arrow table, NumPy array or DuckDB relation.
    channel
        "laplace" (pure epsilon-DP), "gaussian" (needs delta), "haar-wavelet" (needs levels), "randomised-response" (needs
        categories), "discrete-laplace", "discrete-gaussian" (whole numbers); or a channel object, which brings its own bounds.
    epsilon, delta
        The guarantee for one replaced record. With a channel object epsilon may be left out: it is then the channel's at delta.
    bounds
        Public lower and upper bound. Numbers outside are clamped, and what is no number (NaN, text in a CSV field) counts as
        the lower bound. The wavelet maps the bounds to [0, 1].
    categories
        Of randomised response: a list of values, or `Categories`; what is not listed is the category "other". A mapping from
        names to such lists privatises several columns: epsilon is split equally among them, and is that of the whole record.
    levels
        Of the wavelet: the finest level J, 2^(J+1) - 1 numbers a record.
    calibration
        Gaussian: "analytic" (default), "zcdp" or "classical" (certified up to epsilon = 1). Wavelet: "tight" (default) or
        "butucea2020", the published, larger noise.
    column
        Which column, or columns; not needed where `categories` names them, or the table has one and is no CSV file.
    nulls
        Missing values: "error" (declared absent), "lower" (numbers: the lower bound), "cell" (a category of their own).
    order
        "shuffled" (default): rows come in random order. "kept": the order of the data, which tells who is who; the guarantee
        covers that too, but whatever is known of the order can then be joined.
    contributions
        Most records that one person may own: the guarantee then covers all of them together.
    ledger
        Pays before anything is drawn. Left out: FILE.ledger beside the data, where that stands. False: none, even where one
        stands. The certificate says which.
    entropy
        `SeededEntropy` for tests: marked "seeded: not private", although OpenDP's noise does not follow the seed.

    Examples
    --------
    >>> import numpy as np
    >>> heights = np.random.default_rng(0).normal(170, 10, size=500)
    >>> out = privatise(heights, epsilon=2, bounds=(120, 220))
    >>> len(out.data), out.certificate["mechanism"]["parameters"]["channel"]["scale"]
    (500, 50.0)
    """
    names = [column] if isinstance(column, str) else list(column or ())
    options = _Options(bounds, _listed(categories, names, nulls), levels, calibration, nulls)
    target = _target(channel, epsilon, delta, contributions)
    made = _choose(channel, options, target)
    _check_nulls(made, nulls)
    if len(names) > 1 and not isinstance(made, RandomisedResponsesChannel):
        raise ModelError("only randomised response takes several columns.", hint="Privatise one column at a time")
    randomness = entropy or SystemEntropy()
    progress("reading")
    with open_table(data) as source:
        payer = Payer.find(ledger, source)
        domain = None
        if isinstance(made, RESPONSES):
            domain = JointDomain({name or source.the_column(None): each for name, each in _categories(options).items()})
            values: Any = read_cells(source, domain)
        else:
            named = source.the_column(names[0] if names else None)
            values = read_numbers(source, named, nulls="lower" if nulls == "lower" else "error")
        kind = source.kind
    release = LocalRelease(n=len(values), channel=made, order=order)
    if domain is not None:
        published, stated = list(domain.columns), domain.to_json()
    else:
        lower, upper = made.bounds
        published, stated = (
            made.columns(named),
            {"kind": "bounds", "column": named, "lower": lower, "upper": upper, "nulls": nulls},
        )
    payment = pay(payer, release, target, domain=stated, n=release.n)
    progress("drawing")
    released = release.draw(values, entropy=randomness)
    table = decode(released, domain) if domain is not None else numbers_table(released, published)
    certificate = certify(
        release, guarantee=target, domain=stated, columns=published, entropy=randomness, payment=payment.stamp
    )
    return Release(table, kind, certificate, (*_remarks(made), *payment.remarks), payer.ledger)


@dataclass(frozen=True)
class _Options:
    """What was asked of the channel."""

    bounds: Sequence[float] | None
    categories: Mapping[str, Categories] | None
    levels: int | None
    calibration: CalibrationName | None
    nulls: str

    def given(self) -> list[str]:
        """Names of the options that were given."""
        named = {"bounds": self.bounds, "categories": self.categories, "levels": self.levels, "calibration": self.calibration}
        return [name for name, value in named.items() if value is not None]


USED = {
    "laplace": {"bounds"},
    "discrete-laplace": {"bounds"},
    "gaussian": {"bounds", "calibration"},
    "discrete-gaussian": {"bounds", "calibration"},
    "haar-wavelet": {"bounds", "levels", "calibration"},
    "randomised-response": {"categories"},
    RandomisedResponsesChannel.name: {"categories"},
}
"""Which options each channel reads."""


def _target(channel: Any, epsilon: float | None, delta: float, contributions: int) -> Guarantee:
    if epsilon is None and isinstance(channel, LocalChannel):
        single = channel.profile
        probe = Guarantee(epsilon=1.0, delta=delta, contributions=contributions)
        epsilon = single.group(probe.contributions).epsilon(probe.delta)
        if epsilon == float("inf"):
            raise NotCertifiable("the channel has no finite epsilon at this delta.", hint="Give delta, for example delta=1e-6")
    if epsilon is None:
        raise ModelError("epsilon is missing.", hint="For example epsilon=2")
    return Guarantee(epsilon=epsilon, delta=delta, contributions=contributions)


def _choose(channel: ChannelName | LocalChannel, options: _Options, target: Guarantee) -> LocalChannel:
    """A channel that meets the target for each single record, or a refusal."""
    name = channel.name if isinstance(channel, LocalChannel) else channel
    if isinstance(channel, LocalChannel) and type(channel) is not LOCAL.get(name):
        raise NotCertifiable(
            "a certificate can only be made for the channels that privurn can verify.",
            hint="Use your own channel's privatise, and state its guarantee beside the data",
        )
    if name not in USED or channel == RandomisedResponsesChannel.name:  # several columns are no other channel to ask for
        raise FormatError(f"the channel {name!r} is not known.", hint=", ".join(get_args(ChannelName)))
    unused = set(options.given()) - (USED[name] if channel == name else USED[name] & {"categories"})
    if unused:
        raise ModelError(f"the channel has no use for {' and '.join(sorted(unused))}.", hint="Leave them out")
    if channel in ("laplace", "discrete-laplace", "haar-wavelet", "randomised-response") and target.delta > 0.0:
        raise ModelError(f"the channel {name!r} needs no delta, and a ledger would be charged for it.", hint="Leave delta out")
    made = channel if isinstance(channel, LocalChannel) else _calibrated(channel, options, target.per_record())
    sizes = made.sizes if isinstance(made, RandomisedResponsesChannel) else (getattr(made, "categories", 0),)
    if isinstance(made, RESPONSES) and sizes != tuple(each.size for each in _categories(options).values()):
        raise ModelError(
            "the channel has another number of categories than were listed.",
            hint='Count "other" and nulls, where they have one',
        )
    if made.profile.group(target.contributions).delta(target.epsilon) > target.delta:
        raise NotCertifiable("the channel does not meet the guarantee asked for.", hint="Ask for a larger epsilon or delta")
    return made


def _calibrated(channel: ChannelName, options: _Options, single: Guarantee) -> LocalChannel:
    epsilon, delta, calibration = single.epsilon, single.delta, options.calibration
    if channel == "randomised-response":
        sizes = [each.size for each in _categories(options).values()]
        if len(sizes) > 1:
            return RandomisedResponsesChannel.calibrate(categories=sizes, epsilon=epsilon)
        return RandomisedResponseChannel.calibrate(categories=sizes[0], epsilon=epsilon)
    if options.bounds is None:
        raise DomainError("bounds are missing.", hint="Public limits of the data, for example bounds=(0, 100)")
    bounds = check_bounds(options.bounds)
    if channel == "haar-wavelet":
        if options.levels is None:
            raise ModelError("levels is missing.", hint="The finest level of the wavelet, for example levels=4")
        return HaarWaveletChannel.calibrate(
            bounds=bounds,
            levels=options.levels,
            epsilon=epsilon,
            calibration=calibration or "tight",  # type: ignore[arg-type]
        )
    if channel in ("laplace", "discrete-laplace"):
        whole = DiscreteLaplaceChannel if channel == "discrete-laplace" else LaplaceChannel
        return whole.calibrate(bounds=bounds, epsilon=epsilon)
    rule: Any = calibration or "analytic"
    check_certifiable(calibration=rule, epsilon=epsilon)
    noise = DiscreteGaussianChannel if channel == "discrete-gaussian" else GaussianChannel
    return noise.calibrate(bounds=bounds, epsilon=epsilon, delta=delta, calibration=rule)


def _listed(categories: Any, names: list[str], nulls: str) -> dict[str, Categories] | None:
    """Categories of each column; an only column that was not named is ""."""
    if categories is None:
        return None
    if not isinstance(categories, Mapping):
        if len(names) > 1:
            raise DomainError(
                "several columns need a list of categories each.",
                hint="categories={'a': [...], 'b': [...]}",
            )
        categories = {(names or [""])[0]: categories}
    if not categories or (names and sorted(names) != sorted(categories)):
        raise DomainError("the columns and the named categories do not match.", hint="Leave column out, or name the same ones")
    policy: Any = "cell" if nulls == "cell" else "error"
    return {name: each if isinstance(each, Categories) else Categories(each, nulls=policy) for name, each in categories.items()}


def _categories(options: _Options) -> Mapping[str, Categories]:
    if options.categories is None:
        raise DomainError("categories are missing.", hint="Public list of values, for example categories=['a', 'b']")
    return options.categories


def _check_nulls(channel: LocalChannel, nulls: str) -> None:
    allowed = ("error", "cell") if isinstance(channel, RESPONSES) else ("error", "lower")
    if nulls not in allowed:
        raise ModelError(f"nulls={nulls!r} is not possible with this channel.", hint=" or ".join(allowed))


def _remarks(channel: LocalChannel) -> tuple[str, ...]:
    """What a reader should know of the noise before using the data."""
    if isinstance(channel, RandomisedResponseChannel):
        return (f"a record keeps its category with probability {channel.kept:.4g}.",)
    if isinstance(channel, RandomisedResponsesChannel):
        kept = [each.kept for each in channel.responses]
        share = channel.responses[0].epsilon0
        equal = f", {share:.4g} for each of {len(kept)} columns" if len({each.odds for each in channel.responses}) == 1 else ""
        return (
            f"epsilon is that of the whole record{equal}; columns keep their category with probability "
            f"{' and '.join(f'{each:.4g}' for each in kept)}, all of them with {math.prod(kept):.4g}.",
        )
    if isinstance(channel, HaarWaveletChannel):
        return (f"Laplace noise of scale {channel.scale:.4g} on {channel.outputs} wavelet coefficients of each record.",)
    if isinstance(channel, (LaplaceChannel, GaussianChannel)):
        width = (channel.bounds[1] - channel.bounds[0]) / channel.scale
        return (
            f"the noise has the scale {channel.scale:.4g}, the range of the data is {width:.3g} times that; records are "
            f"rounded to multiples of {channel.step:.3g} above the lower bound.",
        )
    return ()
