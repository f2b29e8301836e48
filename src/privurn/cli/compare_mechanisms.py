"""Mechanisms that `privurn compare` is told by name, as the objects that `compare` takes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from privurn.errors import FormatError, ModelError

if TYPE_CHECKING:
    from privurn.mechanisms.models import Model
    from privurn.mechanisms.recipe import Recipe


def mechanisms_by_name(
    names: Sequence[str] | None, *, model: "Model | None" = None, asymptotic: bool = False
) -> "list[Recipe] | None":
    """Those of a mechanism's name, or of the full name of one way to use it; None: what is usual.

    A `model` adds the pseudo-posterior, and `asymptotic` those without a certificate, which a name only restricts.
    """
    from privurn.mechanisms.asymptotic_pseudo_posterior import ASYMPTOTIC, AsymptoticPseudo
    from privurn.mechanisms.registry import recipes
    from privurn.reports.comparison.candidates import ways

    if asymptotic and model is None:
        raise ModelError(
            "a mechanism without a certificate needs a model of the column.", hint="For example model=privurn.models.Beta()"
        )
    known = recipes()
    whole: dict[str, Mapping[str, Any]] = {name: {} for name, kind in known.items() if kind.whole_tables}
    asks = {**ways(), **ASYMPTOTIC, **whole}

    def able(way: str) -> bool:
        if way in ASYMPTOTIC:
            return asymptotic
        return "reference" not in asks[way] and (model is not None or ... not in asks[way].values())

    for name in names or ():
        own = [way for way in asks if name in (way, _family(way))]
        if not own:
            listed = ", ".join(dict.fromkeys(map(_family, ways())))
            raise FormatError(f"the mechanism {name!r} is not known.", hint=f"One of {listed}")
        if not any(map(able, own)):
            raise ModelError(
                f"the mechanism {name!r} needs more than its name.",
                hint="For example model='beta'; asymptotic=True for one without a certificate",
            )
    if names is None and model is None:
        return None
    wanted = {_family(way) for way in asks if way not in whole} if names is None else set(names)
    named = [way for way in asks if able(way) and wanted & {way, _family(way)}]
    if asymptotic and not any(way in ASYMPTOTIC for way in named):
        named += ASYMPTOTIC
    kinds: dict[str, Any] = {way: AsymptoticPseudo if way in ASYMPTOTIC else known[_family(way)] for way in named}
    return [kinds[way](**{key: model if each is ... else each for key, each in asks[way].items()}) for way in named]


def _family(way: str) -> str:
    return way.partition(",")[0]
