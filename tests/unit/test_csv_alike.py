"""CSV files that programs read differently are refused before Spark reads them, and no others."""

import gzip

import pytest

from csv_cases import AMBIGUOUS, CASES
from privurn.errors import FormatError
from privurn.tables import csv_alike
from privurn.tables.csv_alike import check_alike
from privurn.tables.csv_header import read_header


@pytest.mark.parametrize("block", [1, 7, 2**20])
@pytest.mark.parametrize("name", CASES)
def test_what_could_be_read_in_two_ways_is_refused(monkeypatch, tmp_path, name, block):
    monkeypatch.setattr(csv_alike, "BLOCK", block)
    monkeypatch.setattr(csv_alike, "LONGEST_HEADER", 9)
    (tmp_path / "x.csv").write_bytes(CASES[name])
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(CASES[name]))
    for file in ("x.csv", "x.csv.gz"):
        path = str(tmp_path / file)
        if name in AMBIGUOUS:
            with pytest.raises(FormatError, match="UTF-8" if name == "no UTF-8" else "programs read differently"):
                check_alike([path], read_header([path]).delimiter)
        else:
            check_alike([path], read_header([path]).delimiter)


def test_a_record_without_end_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(csv_alike, "BLOCK", 100)
    monkeypatch.setattr(csv_alike, "LONGEST_RECORD", 1_000)
    monkeypatch.setattr(csv_alike, "LONGEST_HEADER", 9)
    (tmp_path / "x.csv").write_bytes(b'a,b\n1,"' + b"x\n" * 2_000 + b'"\n')
    with pytest.raises(FormatError, match="programs read differently"):
        check_alike([str(tmp_path / "x.csv")], ",")
