"""What `privurn infer` says about noisy trees: releases of one or two columns of numbers."""

from typing import Any

from privurn.cli.infer_answers import Asked
from privurn.cli.infer_counts import check_pictures, finish
from privurn.errors import FormatError

__all__ = ["OPTIONS", "WHAT", "finish", "model_of"]

WHAT = "noisy trees"
OPTIONS = ("sample", "within", "exact")


def model_of(given: Any, asked: Asked) -> Any:
    """The model, and everything else checked that nothing need be drawn for."""
    from privurn.inference.trees.model import PolyaTree

    check_pictures(given, asked)
    if asked.typed["within"] not in ("uniform", "midpoint"):
        raise FormatError("where in its bin a record lies is not known.", hint="--within uniform or --within midpoint")
    return PolyaTree(exact=asked.typed["exact"], within=asked.typed["within"])
