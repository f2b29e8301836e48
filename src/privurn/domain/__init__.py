"""Public knowledge: which values a column may hold, decided without looking at the data."""

from privurn.domain.domains import (
    AnyDomain,
    Bins,
    Bounds,
    Categories,
    ColumnDomain,
    Domain,
    Grid,
    JointDomain,
    OpenLabels,
    label_text,
)
from privurn.domain.reading import check_keys, domain_from_file, domain_from_json
from privurn.domain.table import TableDomain, several_columns

__all__ = [
    "AnyDomain",
    "Bins",
    "Bounds",
    "Categories",
    "ColumnDomain",
    "Domain",
    "Grid",
    "JointDomain",
    "OpenLabels",
    "TableDomain",
    "check_keys",
    "domain_from_file",
    "domain_from_json",
    "label_text",
    "several_columns",
]
