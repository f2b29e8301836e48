"""A local channel applied to every record of a column: what a certificate of `privurn privatise` stands for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.domain import JointDomain
from privurn.errors import ModelError
from privurn.mechanisms.likelihood import Kind, Numbers, RecordDensity
from privurn.mechanisms.local.channel import LocalChannel, whole_number
from privurn.mechanisms.mechanism import Mechanism
from privurn.mechanisms.published import Content, stated_joint
from privurn.privacy.certificate import canonical
from privurn.privacy.entropy import Entropy
from privurn.privacy.profile import ROUND_UP, Guarantee, PrivacyProfile
from privurn.tables.released import numbers

if TYPE_CHECKING:
    from privurn.privacy.audit.attack import Pair
    from privurn.privacy.audit.raw_records import Reader

Order = Literal["shuffled", "kept"]

PREFIX = "local-"
PER_NOISE = 3e-5
"""Seconds for a number with noise, and what an audit looks at of it."""

LOCAL_MODEL = (
    "Local model: every record was privatised by itself, with randomness of its own, so the guarantee protects each record "
    "against everyone who sees the output, whoever holds the other records. Whoever ran the channel saw what it was given."
)


class NoisedContent(Content):
    """Numbers that a channel can have released, whatever the data were."""

    by_batches = True
    wrong = "holds numbers that the channel cannot have released"

    def __init__(self, channel: LocalChannel) -> None:
        self.channel = channel

    def holds(self, batch: Any) -> bool:
        """Every number is possible."""
        found = [numbers(batch.column(i)) for i in range(batch.num_columns)]
        return all(each is not None and bool(self.channel.possible(each).all()) for each in found)


@dataclass(frozen=True, kw_only=True)
class LocalRelease(Mechanism):
    """`n` records, each through the same `channel` with randomness of its own; published in random or in kept `order`.

    Replacing one record changes the law of one output only, so the release has the channel's profile; a random order is
    post-processing, and the profile does not count on it.
    """

    n: int
    channel: LocalChannel
    order: Order = "shuffled"

    synthetic: ClassVar[bool] = False
    rows_are: ClassVar[str] = "locally privatised records"
    inferred_from: ClassVar[Kind] = "records"
    assumes: ClassVar[tuple[str, ...]] = (LOCAL_MODEL,)

    def __post_init__(self) -> None:
        n = whole_number("n", self.n, least=1, most=2**40, hint="The number of records")
        object.__setattr__(self, "n", n)
        if self.order not in ("shuffled", "kept"):
            raise ModelError(f"the order {self.order!r} is not known.", hint="shuffled or kept")

    @property
    def name(self) -> str:
        """local-laplace, and so on."""
        return PREFIX + self.channel.name

    @property
    def adds_noise(self) -> bool:  # type: ignore[override]
        """The channel's."""
        return self.channel.adds_noise

    @property
    def cells(self) -> int | None:  # type: ignore[override]
        """Joint categories; None for numbers."""
        return math.prod(self.channel.sizes) if self.channel.sizes else None

    @property
    def records(self) -> int:  # type: ignore[override]
        """One for each confidential record."""
        return self.n

    @property
    def rows(self) -> int:
        """One for each record."""
        return self.n

    @property
    def profile(self) -> PrivacyProfile:
        """The channel's."""
        return self.channel.profile

    def zcdp(self, guarantee: Guarantee) -> float | None:
        """The channel's rho, added up: records are noised independently. None where none is known."""
        single = self.channel.rho
        return None if single is None else single * guarantee.contributions * ROUND_UP

    def draw(self, data: ArrayLike, /, *, entropy: Entropy) -> NDArray[Any]:
        """Privatise every record."""
        values = np.asarray(data)
        if values.shape != (self.n,):
            raise ModelError("the release was planned for another number of records than the data hold.")
        released = self.channel.privatise(values, entropy=entropy)
        if self.order == "kept":
            return released
        places = np.arange(self.n)
        entropy.shuffle(places)
        shuffled: NDArray[Any] = released[places]
        return shuffled

    def simulate(self, data: ArrayLike, /, *, rng: np.random.Generator) -> NDArray[Any]:
        """The channel's twin, in the order of the data."""
        return self.channel.simulate(data, rng=rng)

    def parameters(self) -> dict[str, Any]:
        """Everything that fixes the law of the output."""
        return {"n": self.n, "order": self.order, "channel": self.channel.parameters()}

    @classmethod
    def through(cls, channel: type[LocalChannel], parameters: dict[str, Any]) -> "LocalRelease":
        """Inverse of `parameters` for a channel of that kind."""
        made = channel.from_parameters(parameters["channel"])
        return cls(n=int(parameters["n"]), channel=made, order=parameters["order"])

    # -- what is published

    @property
    def in_words(self) -> str:
        """For readers of a report."""
        return f"every record by itself through a channel ({self.channel.name})"

    def fits(self, domain: Mapping[str, Any]) -> bool:
        """Categories of a public domain, or the bounds of the numbers."""
        if self.channel.sizes:
            joint = stated_joint(domain)
            if joint is None or joint.spread:
                return False
            return self.channel.sizes == tuple(each.size for each in joint.columns.values())
        bounds = dict(zip(("lower", "upper"), self.channel.bounds, strict=True))
        named = {"kind": "bounds", "column": domain.get("column"), **bounds, "nulls": domain.get("nulls")}
        return canonical(domain) == canonical(named)

    def columns_for(self, domain: Mapping[str, Any]) -> list[str] | None:
        """Those of the categories; a channel may publish several numbers of one confidential column."""
        names = super().columns_for(domain) or []
        if self.channel.sizes:
            return names if len(names) == len(self.channel.sizes) else None
        return self.channel.columns(names[0]) if len(names) == 1 else None

    def content(self, domain: Mapping[str, Any]) -> Content:
        """Categories, or numbers that the channel can have released."""
        return super().content(domain) if self.channel.sizes else NoisedContent(self.channel)

    def likelihood(self, published: Numbers) -> RecordDensity:
        """Each record's output depends on that record alone."""
        return RecordDensity(released=published.values, channel=self.channel)

    # -- what an audit needs

    def neighbours(
        self, *, contributions: int, domain: JointDomain | None = None, read: "Reader | None" = None
    ) -> "list[Pair]":
        """All `contributions` records of a person go from one value to another; other records have randomness of their own.

        The guarantee does not depend on how many records there are, so only those that differ are drawn.
        """
        from privurn.mechanisms.local.neighbours import category_pairs, number_pairs

        return number_pairs(self.channel, contributions) if domain is None else category_pairs(domain, contributions)

    def sample(self, data: NDArray[Any], /, *, size: int, entropy: Entropy) -> NDArray[Any]:
        """Outputs come from one release of all of them, in the order of the data."""
        copies = replace(self, n=size * len(data), order="kept")
        return copies.draw(np.tile(data, size), entropy=entropy).reshape(size, -1)

    def seconds(self, *, contributions: int) -> float:
        """Each number is a call of OpenDP's sampler."""
        return PER_NOISE * len(self.channel.columns("")) * contributions
