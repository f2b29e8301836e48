"""A channel as it is asked for, which calibration fills in for the public bounds or categories and a guarantee."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from privurn.domain import Bounds, Categories
from privurn.errors import DomainError
from privurn.mechanisms.local.channel import LocalChannel, check_bounds
from privurn.mechanisms.recipe import Asked
from privurn.privacy.profile import Guarantee

NEEDED = "For example domain={'pay': Bounds(0, 100)}, or domain={'town': Categories(['a', 'b'])}"


@dataclass(frozen=True, kw_only=True, repr=False)
class ChannelRecipe(Asked, ABC):
    """The constructor only stores; `calibrate` of one of the two kinds below refuses."""

    reads: ClassVar[str] = "records"
    pure: ClassVar[bool] = True
    """Whether its guarantee has no delta."""

    @abstractmethod
    def for_columns(self, domains: Sequence[Bounds | Categories], single: Guarantee) -> LocalChannel:
        """The channel for what is public of the columns, or a refusal."""


class NumberRecipe(ChannelRecipe):
    """A channel for numbers within public bounds."""

    def for_columns(self, domains: Sequence[Bounds | Categories], single: Guarantee) -> LocalChannel:
        """Of one column."""
        if not isinstance(domains[0], Bounds):
            raise DomainError(f"the channel {self.alias!r} is for numbers within bounds.", hint=NEEDED)
        return self.calibrate(check_bounds(domains[0].ends), single)

    @abstractmethod
    def calibrate(self, bounds: tuple[float, float], single: Guarantee) -> LocalChannel:
        """The least noise for one record's guarantee."""


class ResponseRecipe(ChannelRecipe):
    """A channel for public categories of one column or several."""

    def for_columns(self, domains: Sequence[Bounds | Categories], single: Guarantee) -> LocalChannel:
        """Of all columns together."""
        sizes = [each.size for each in domains if isinstance(each, Categories)]
        if not sizes:
            raise DomainError(f"the channel {self.alias!r} is for categories.", hint=NEEDED)
        return self.calibrate(sizes, single)

    @abstractmethod
    def calibrate(self, sizes: Sequence[int], single: Guarantee) -> LocalChannel:
        """The least noise for one record's guarantee."""
