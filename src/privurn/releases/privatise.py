"""Privatise columns locally: every record through a channel by itself, with a certificate for the whole.

    data --(public bounds or categories)--> records --(guarantee)--> channel --(ledger pays first)--> noise --> certificate

The noise of numbers is OpenDP's on a public lattice; randomised response is drawn in exact integers. Where the records are on a
cluster, its computers noise them, each once (`tables.engine.Tasks`). The mixture models read the channel from the certificate.
Proofs: docs/proofs/channels.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from privurn.certificates.certify import certify
from privurn.certificates.release import Release
from privurn.domain import Bounds, Categories, JointDomain
from privurn.errors import DomainError, FormatError, ModelError, NotCertifiable
from privurn.mechanisms.local.channel import LocalChannel
from privurn.mechanisms.local.laplace import Laplace
from privurn.mechanisms.local.local_release import LocalRelease, Order
from privurn.mechanisms.local.randomised_responses import RandomisedResponse
from privurn.mechanisms.local.recipe import NEEDED, ChannelRecipe
from privurn.mechanisms.registry import local_channels
from privurn.privacy.entropy import Entropy, SystemEntropy
from privurn.privacy.payer import LedgerChoice, Payer
from privurn.privacy.profile import Guarantee
from privurn.releases.payment import pay
from privurn.tables import Source, decode, open_table
from privurn.tables.columns import floats, numbers_elsewhere, numbers_table, read_numbers
from privurn.tables.counting import integers
from privurn.tables.output import decode_side_by_side
from privurn.tables.rows import cells_elsewhere, read_cells

Public = Bounds | Categories


def privatise(
    data: Any,
    channel: ChannelRecipe | LocalChannel | None = None,
    *,
    domain: Public | Mapping[str, Public] | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    order: Order = "shuffled",
    contributions: int = 1,
    ledger: LedgerChoice = None,
    entropy: Entropy | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Release:
    """Privatise a column, or several of categories, each record by itself, with a privacy guarantee for every record.

    `data`, `contributions`, `ledger`, `entropy` and `progress` are as for `release`; OpenDP's noise does not follow a seed, nor
    does what is drawn on a cluster.

    Parameters
    ----------
    channel
        For numbers `Laplace` (the default), `Gaussian` (needs delta), `HaarWavelet`, `DiscreteLaplace`, `DiscreteGaussian`
        (whole numbers); for categories `RandomisedResponse` (the default); or a channel whose noise is fixed already.
    domain
        Public knowledge: `Bounds` of a column of numbers, or `Categories`, under its name; alone where the table has one
        column and is no CSV file. Several columns of categories share epsilon equally, and it is that of the whole record. A
        channel whose noise is fixed brings its own bounds.
    epsilon, delta
        The guarantee for one replaced record. With a fixed channel epsilon may be left out: it is then the channel's at delta.
    order
        "shuffled" (default): rows come in random order. "kept": the order of the data, which tells who is who; the guarantee
        covers that too, but whatever is known of the order can then be joined. Tables on a cluster have none to keep.

    Examples
    --------
    >>> import numpy as np
    >>> from privurn.domain import Bounds
    >>> heights = np.random.default_rng(0).normal(170, 10, size=500)
    >>> out = privatise(heights, domain=Bounds(120, 220), epsilon=2)
    >>> len(out.data), out.certificate["mechanism"]["parameters"]["channel"]["scale"]
    (500, 50.0)
    """
    public = _columns(domain, channel)
    target = _target(channel, epsilon, delta, contributions)
    made = _calibrated(channel, public, target)
    randomness = entropy or SystemEntropy()
    progress("reading")
    with open_table(data) as source:
        payer = Payer.find(ledger, source)
        if source.tasks is not None and order == "kept":
            raise ModelError("records on a cluster have no order that could be kept.", hint="order='shuffled'")
        cells = _cells(public, source)
        if cells is not None:
            stated = cells.to_json()
            noise = _Noise(made, tuple(cells.columns), cells)
            read: Any = partial(read_cells if source.tasks is None else cells_elsewhere, source, cells)
        else:
            [(column, bounds)] = public.items()
            named, (lower, upper) = source.the_column(column or None), made.bounds
            stated = {"kind": "bounds", "column": named, "lower": lower, "upper": upper, "nulls": bounds.nulls}
            noise = _Noise(made, tuple(made.columns(named)))
            reader = read_numbers if source.tasks is None else numbers_elsewhere
            read = partial(reader, source, named, nulls=bounds.nulls)  # type: ignore[arg-type]
        if source.tasks is None:
            values = read()
            release = LocalRelease(n=len(values), channel=made, order=order)
        else:
            records, n = read()
            release = LocalRelease(n=n, channel=made, order=order)
            source.tasks.check(n)
        payment = pay(payer, release, target, domain=stated, n=release.n)
        progress("drawing")
        if source.tasks is None:
            table = noise.published(release.draw(values, entropy=randomness))
        else:
            table = source.tasks.mapped(records, noise, like=noise.like(), n=release.n)
        kind = source.kind
    certificate = certify(
        release, guarantee=target, domain=stated, columns=list(noise.columns), entropy=randomness, payment=payment.stamp
    )
    return Release(table, kind, certificate, (*made.remarks, *payment.remarks), payer.ledger)


@dataclass(frozen=True)
class _Noise:
    """From records to what is published of them, on whatever computer they are: numbers, or cells of a domain."""

    channel: LocalChannel
    columns: tuple[str, ...]
    cells: JointDomain | None = None

    def published(self, released: Any) -> Any:
        """Arrow table of what a channel released."""
        return numbers_table(released, list(self.columns)) if self.cells is None else decode(released, self.cells)

    def __call__(self, records: Any) -> Any:
        """The same of an Arrow array of records, with randomness of the operating system that this runs on."""
        values = floats(records) if self.cells is None else integers(records)
        return self.published(self.channel.privatise(values, entropy=SystemEntropy()))

    def like(self) -> Any:
        """Every text that may be published, in a table of the same layout."""
        if self.cells is None:
            return self.published(self.channel.privatise(np.empty(0), entropy=SystemEntropy()))
        longest = np.arange(max(self.channel.sizes))
        cells = [np.minimum(longest, size - 1) for size in self.channel.sizes]
        return decode_side_by_side(cells, self.cells.columns, entropy=SystemEntropy())


def _columns(domain: Any, channel: Any) -> dict[str, Public]:
    """Public knowledge of each column; an only column that was not named is ""."""
    if domain is None and getattr(channel, "sizes", None) == ():  # a channel of numbers whose noise is fixed
        domain = Bounds(*channel.bounds)
    found = dict(domain) if isinstance(domain, Mapping) else {"": domain}
    if not found or not all(isinstance(each, (Bounds, Categories)) for each in found.values()):
        raise DomainError("the domain of a column is missing.", hint=NEEDED)
    if len(found) > 1 and not all(isinstance(each, Categories) for each in found.values()):
        raise ModelError("only randomised response takes several columns.", hint="Privatise one column of numbers at a time")
    return found


def _cells(public: Mapping[str, Public], source: Source) -> JointDomain | None:
    """The domain of columns of categories, under their names."""
    listed = {name: each for name, each in public.items() if isinstance(each, Categories)}
    return JointDomain({name or source.the_column(None): each for name, each in listed.items()}) if listed else None


def _target(channel: Any, epsilon: float | None, delta: float, contributions: int) -> Guarantee:
    single = getattr(channel, "profile", None)  # a recipe has none yet
    if epsilon is None and single is not None:
        probe = Guarantee(epsilon=1.0, delta=delta, contributions=contributions)
        epsilon = single.group(probe.contributions).epsilon(probe.delta)
        if epsilon == float("inf"):
            raise NotCertifiable("the channel has no finite epsilon at this delta.", hint="Give delta, for example delta=1e-6")
    if epsilon is None:
        raise ModelError("epsilon is missing.", hint="For example epsilon=2")
    return Guarantee(epsilon=epsilon, delta=delta, contributions=contributions)


def _calibrated(channel: Any, public: Mapping[str, Public], target: Guarantee) -> LocalChannel:
    """A channel that meets the target for each single record, or a refusal."""
    domains = list(public.values())
    usual = RandomisedResponse if any(isinstance(each, Categories) for each in domains) else Laplace
    asked = usual() if channel is None else channel
    if isinstance(asked, ChannelRecipe):
        if asked.pure and target.delta > 0.0:
            raise ModelError(
                f"the channel {asked.alias!r} needs no delta, and a ledger would be charged for it.", hint="Leave delta out"
            )
        made = asked.for_columns(domains, target.per_record())
    else:
        made = _fixed(asked, domains)
    if made.profile.group(target.contributions).delta(target.epsilon) > target.delta:
        raise NotCertifiable("the channel does not meet the guarantee asked for.", hint="Ask for a larger epsilon or delta")
    return made


def _fixed(channel: Any, domains: list[Public]) -> LocalChannel:
    """A channel whose noise is fixed, if it is one that can be verified and fits the domain."""
    if not hasattr(channel, "sizes"):
        raise FormatError("the channel is not one that can be asked for.", hint="For example Laplace()")
    if type(channel) is not local_channels().get(channel.name):
        raise NotCertifiable(
            "a certificate can only be made for the channels that privurn can verify.",
            hint="Use your own channel's privatise, and state its guarantee beside the data",
        )
    if not channel.sizes:
        if domains != [Bounds(*channel.bounds, nulls=getattr(domains[0], "nulls", "error"))]:
            raise ModelError("the channel has other bounds than were given.", hint="Leave the domain's bounds to the channel")
        return channel
    if channel.sizes != tuple(each.size for each in domains if isinstance(each, Categories)):
        raise ModelError(
            "the channel has another number of categories than were listed.",
            hint='Count "other" and nulls, where they have one',
        )
    return channel
