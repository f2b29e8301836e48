"""A channel as it is asked for, which calibration fills in for the public bounds or categories and a guarantee."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from privurn.mechanisms.local.channel import LocalChannel
from privurn.mechanisms.recipe import Asked
from privurn.privacy.profile import Guarantee


@dataclass(frozen=True, kw_only=True, repr=False)
class ChannelRecipe(Asked, ABC):
    """The constructor only stores; `calibrate` of one of the two kinds below refuses."""

    reads: ClassVar[str] = "records"
    pure: ClassVar[bool] = True
    """Whether its guarantee has no delta."""


class NumberRecipe(ChannelRecipe):
    """A channel for numbers within public bounds."""

    @abstractmethod
    def calibrate(self, bounds: tuple[float, float], single: Guarantee) -> LocalChannel:
        """The least noise for one record's guarantee."""


class ResponseRecipe(ChannelRecipe):
    """A channel for public categories of one column or several."""

    @abstractmethod
    def calibrate(self, sizes: Sequence[int], single: Guarantee) -> LocalChannel:
        """The least noise for one record's guarantee."""
