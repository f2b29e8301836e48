"""The report looked at by a browser: it fits the window, and its pictures are drawn.

Needs Chromium, which `make browser` installs. A window has a least width of its own, so the page is shown unchanged in a frame
of the width wanted, and the page around it measures.
"""

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import privurn
from privurn.reports.html import report
from privurn.simulated.incomes import incomes

pytestmark = pytest.mark.long

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--virtual-time-budget=2000",
)
WIDTHS = (1280, 400)
WINDOW = 1400
AROUND = """<!DOCTYPE html><meta charset="utf-8"><body style="margin: 0">
<iframe style="display: block; border: 0; width: WIDEpx; height: HIGHpx" srcdoc="PAGE"></iframe>
<script>
document.querySelector("iframe").addEventListener("load", (event) => {
  const view = event.target.contentWindow, page = view.document;
  const boxes = (what) => [...page.querySelectorAll(what)].map((each) => {
    const box = each.getBoundingClientRect();
    return [box.left, box.top, box.right, box.bottom];
  });
  const letters = [...page.querySelectorAll("p, td, th, li, dd, dt, figcaption, code")].map(
    (each) => parseFloat(view.getComputedStyle(each).fontSize));
  const found = { inner: view.innerWidth, scroll: page.documentElement.scrollWidth, height: page.documentElement.scrollHeight,
    plots: boxes("svg"), bars: boxes(".bar span"), sections: boxes("section"), tables: boxes(".scroll"),
    letters: Math.min(...letters) };
  const note = document.createElement("pre");
  note.id = "measured";
  note.textContent = JSON.stringify(found);
  document.body.append(note);
});
</script>"""


@pytest.fixture(scope="module")
def browser():
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail("this test needs Chromium: run `make browser`, which installs it, and try again")
    return found


def open_page(browser, page, profile, *, width, height, photograph=None, dark=False):
    """Open a page in a new browser; returns the document after scripts have run."""
    words = [browser, *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"]
    words += ["--blink-settings=preferredColorScheme=0"] if dark else []
    words += [f"--screenshot={photograph}"] if photograph else ["--dump-dom"]
    done = subprocess.run([*words, page.as_uri()], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def look(browser, page, folder, *, width):
    """What the browser makes of a page at this width: the sizes it gives, and the picture it draws."""
    from matplotlib.image import imread

    def around(height):
        path = folder / f"around-{height}.html"
        fields = {"WIDE": width, "HIGH": height, "PAGE": html.escape(page.read_text())}
        path.write_text(re.sub("WIDE|HIGH|PAGE", lambda field: str(fields[field[0]]), AROUND))
        return path

    document = open_page(browser, around(1000), folder / "first", width=WINDOW, height=1000)
    found = re.search(r'<pre id="measured">(.*?)</pre>', document)
    assert found, "the page was not rendered"
    sizes = json.loads(found[1])
    photograph = folder / "page.png"
    height = int(sizes["height"])
    open_page(browser, around(height), folder / "second", width=WINDOW, height=height + 200, photograph=photograph)
    return sizes, imread(photograph)[:, :width, :3]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A public and a confidential page of the demo column, and one with a long joint release with bars."""
    home = tmp_path_factory.mktemp("pages")
    (home / "incomes.csv").write_text("income\n" + "".join(f"{each}\n" for each in incomes().tolist()))
    grid = privurn.Grid(0, 200_000, 1_000)
    privurn.release(home / "incomes.csv", domain={"income": grid}, epsilon=1, delta=1e-6).save(home / "incomes")
    rng = np.random.default_rng(5)
    towns = ["Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch", "Å", "東京", "a town with a name of many words"]
    people = {"an_age_in_completed_years": rng.integers(0, 100, 9000), "town": rng.choice(towns, 9000)}
    import polars as pl

    domain = {
        "an_age_in_completed_years": privurn.Bins([0, 18, 30, 45, 65, 120]),
        "town": privurn.Categories(towns, outside="other"),
    }
    privurn.release(pl.DataFrame(people), domain=domain, epsilon=1, delta=1e-6).save(home / "people")
    return {
        "public": report(home / "incomes"),
        "confidential": report(home / "incomes", data=home / "incomes.csv"),
        "joint": report(home / "people", data=pl.DataFrame(people), output=home / "CONFIDENTIAL-people.html"),
    }


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["public", "confidential", "joint"])
def test_it_fits_and_its_plots_are_drawn(browser, pages, tmp_path, name, width):
    sizes, picture = look(browser, pages[name], tmp_path, width=width)
    assert sizes["inner"] == width
    assert sizes["scroll"] <= width, "the page must not scroll sideways"
    assert sizes["letters"] >= 12.0, "no text smaller than 12 pixels"
    assert len(sizes["sections"]) == 9
    inside = [*sizes["plots"], *sizes["sections"], *sizes["tables"]]
    assert all(left >= 0 and right <= width for left, _, right, _ in inside)
    assert len(sizes["plots"]) == (2 if name == "joint" else 4)  # the band of what may be concluded is the last
    for left, top, right, bottom in sizes["plots"]:
        assert right - left >= min(300, width - 60)
        plot = picture[int(top) : int(bottom), int(left) : int(right)]
        assert plot.std() > 0.05, "the plot is blank"
        blue = (plot[:, :, 2] - plot[:, :, 0] > 0.3).sum()
        assert blue > 0.5 * (right - left), "the curve of the release is missing"
    if name == "joint":
        assert max(right - left for left, _, right, _ in sizes["bars"]) > 40
        assert all(right <= width for _, _, right, _ in sizes["bars"])
        assert len(sizes["bars"]) == 2 * (5 + 5)


def test_dark_and_light(browser, pages, tmp_path):
    from matplotlib.image import imread

    shades = {}
    for dark in (False, True):
        photograph = tmp_path / f"dark-{dark}.png"
        open_page(browser, pages["public"], tmp_path / f"as-{dark}", width=1280, height=2400, photograph=photograph, dark=dark)
        shades[dark] = imread(photograph)[:, :, :3]
    assert shades[False].mean() > 0.85
    assert shades[True].mean() < 0.25
    assert shades[True].max() > 0.8  # light letters on it


def test_blank_pictures_and_wide_tables_would_be_noticed(browser, pages, tmp_path):
    """The planted bugs: the same page with empty pictures, and with tables that do not scroll in a box of their own."""
    broken = tmp_path / "broken.html"
    text = re.sub(r"(?s)(<svg[^>]*>).*?</svg>", r"\1</svg>", pages["joint"].read_text())
    broken.write_text(text.replace("overflow-x: auto;", "").replace("overflow-wrap", "no-wrap"))
    sizes, picture = look(browser, broken, tmp_path, width=400)
    left, top, right, bottom = map(int, sizes["plots"][0])
    assert picture[top:bottom, left:right].std() < 0.01
    assert sizes["scroll"] > 400
