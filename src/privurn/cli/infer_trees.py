"""What `privurn infer` says about noisy trees: releases of one or two columns of numbers."""

from typing import Any

from privurn.cli.infer_answers import Asked
from privurn.cli.infer_counts import check_pictures, finish, tree_model

__all__ = ["OPTIONS", "WHAT", "finish", "model_of"]

WHAT = "noisy trees"
OPTIONS = ("sample", "within", "exact", "check")


def model_of(given: Any, asked: Asked) -> Any:
    """The model, and everything else checked that nothing need be drawn for."""
    check_pictures(given, asked)
    return tree_model(asked)
