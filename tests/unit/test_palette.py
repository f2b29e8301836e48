"""Curves of one picture can be told apart, by colour-blind people too, on light paper, on dark and on a page."""

import re
from itertools import combinations

import numpy as np
import pytest

from privurn.drawing.palette import DARK, DARK_SERIES, LIGHT, PRINTED, ROLES, SERIES, colour
from privurn.reports.html.style import STYLE
from sources import FILES

# Linear RGB as people without one kind of receptor see it: Machado, Oliveira and Fernandes (2009), severity 1
SEEN = {
    "all receptors": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
JUST_NOTICEABLE = 2.3
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])


def linear(written):
    channels = np.array([int(written[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    ratios = XYZ @ np.clip(rgb, 0.0, 1.0) / (XYZ @ np.ones(3))
    x, y, z = np.where(ratios > 216 / 24389, np.cbrt(ratios), (24389 / 27 * ratios + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one, other):
    darker, lighter = sorted(float(XYZ[1] @ linear(each)) for each in (one, other))
    return (lighter + 0.05) / (darker + 0.05)


def nearest(series, seen):
    places = [lab(np.asarray(seen) @ linear(each)) for each in series]
    return min(float(np.linalg.norm(one - other)) for one, other in combinations(places, 2))


def test_the_measures_are_the_known_ones():
    assert lab(linear("#ffffff")) == pytest.approx([100, 0, 0], abs=1e-9)
    assert lab(linear("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.02)
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert nearest(["#d62728", "#2ca02c"], SEEN["no green"]) < nearest(["#d62728", "#2ca02c"], SEEN["all receptors"]) / 3


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("series", [SERIES, DARK_SERIES], ids=["light", "dark"])
def test_any_two_curves_can_be_told_apart(series, seen):
    assert nearest(series, SEEN[seen]) > 6 * JUST_NOTICEABLE


@pytest.mark.parametrize(("series", "paper"), [(SERIES, LIGHT["paper"]), (DARK_SERIES, DARK["paper"])], ids=["light", "dark"])
def test_curves_stand_out_from_the_paper(series, paper):
    assert all(contrast(each, paper) >= 3.0 for each in series[:4]), "what a page has"
    assert all(contrast(each, paper) >= 2.2 for each in series)


@pytest.mark.parametrize("page", [LIGHT, DARK, PRINTED], ids=["light", "dark", "printed"])
def test_words_can_be_read(page):
    for ink, paper in [("ink", "paper"), ("ink", "sheet"), ("soft", "paper"), ("warn-ink", "warn-paper")]:
        assert contrast(page[ink], page[paper]) >= 4.5


def test_pages_and_pictures_have_one_palette():
    assert {f"var(--{role})" for role in LIGHT} >= set(re.findall(r"var\(--[a-z0-9-]+\)", STYLE))
    assert set(LIGHT) == set(DARK) == set(PRINTED)
    assert set(ROLES.values()) <= set(LIGHT)
    for i in range(len(SERIES)):
        assert ROLES[colour(i).lower()] == f"series-{i + 1}"
        assert f"--series-{i + 1}: {colour(i).lower()};" in STYLE
        assert f"--series-{i + 1}: {DARK_SERIES[i].lower()};" in STYLE


def test_no_other_module_names_a_colour():
    for path in FILES:
        found = re.findall(r"[\"' ]#[0-9a-fA-F]{6}\b", path.read_text())
        assert not found or path.name == "palette.py", f"{path} has {found}"
