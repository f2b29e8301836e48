"""A local channel applied to every record of a column: what a certificate of `privurn privatise` stands for."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privurn.errors import CertificateError, ModelError, PrivurnError
from privurn.mechanisms.local.channel import LocalChannel, whole_number
from privurn.mechanisms.local.randomised_responses import RESPONSES
from privurn.mechanisms.local.registry import LOCAL
from privurn.privacy.entropy import Entropy
from privurn.privacy.profile import ROUND_UP, PrivacyProfile

Order = Literal["shuffled", "kept"]

PREFIX = "local-"


@dataclass(frozen=True, kw_only=True)
class LocalRelease:
    """`n` records, each through the same `channel` with randomness of its own; published in random or in kept `order`.

    Replacing one record changes the law of one output only, so the release has the channel's profile; a random order is
    post-processing, and the profile does not count on it.
    """

    n: int
    channel: LocalChannel
    order: Order = "shuffled"

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
    def adds_noise(self) -> bool:
        """Whether OpenDP draws some of the randomness; randomised response is drawn in integers."""
        return not isinstance(self.channel, RESPONSES)

    @property
    def cells(self) -> int | None:
        """Categories; None for numbers."""
        return self.channel.categories if isinstance(self.channel, RESPONSES) else None

    @property
    def records(self) -> int:
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

    def rho(self, contributions: int = 1) -> float | None:
        """For so many records of one person: they are noised independently, so rho adds. None where none is known."""
        single = self.channel.rho
        return None if single is None else single * contributions * ROUND_UP

    def draw(self, data: ArrayLike, *, entropy: Entropy) -> NDArray[Any]:
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

    def parameters(self) -> dict[str, Any]:
        """Everything that fixes the law of the output."""
        return {"n": self.n, "order": self.order, "channel": self.channel.parameters()}

    @classmethod
    def from_parameters(cls, name: str, data: dict[str, Any]) -> Self:
        """Inverse of `name` and `parameters`."""
        kind = LOCAL.get(name.removeprefix(PREFIX))
        if not name.startswith(PREFIX) or kind is None:
            raise CertificateError(f"the channel {name!r} is not known to this version.")
        try:
            return cls(n=int(data["n"]), channel=kind.from_parameters(data["channel"]), order=data["order"])
        except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError, PrivurnError):
            raise CertificateError("the channel's parameters are not valid.") from None
