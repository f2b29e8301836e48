"""Public knowledge: which values a column may hold, decided without looking at the data."""

from privurn.domain.categories import BLANKS, LOWER, UPPER, Categories, OpenLabels, label_text
from privurn.domain.column import ColumnDomain, Domain
from privurn.domain.dates import Dates
from privurn.domain.joint import AnyDomain, JointDomain
from privurn.domain.numeric import Bins, Bounds, Grid
from privurn.domain.reading import check_keys, domain_from_file, domain_from_json
from privurn.domain.table import TableDomain

__all__ = [
    "BLANKS",
    "LOWER",
    "UPPER",
    "AnyDomain",
    "Bins",
    "Bounds",
    "Categories",
    "ColumnDomain",
    "Dates",
    "Domain",
    "Grid",
    "JointDomain",
    "OpenLabels",
    "TableDomain",
    "check_keys",
    "domain_from_file",
    "domain_from_json",
    "label_text",
]
