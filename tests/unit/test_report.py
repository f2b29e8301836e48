"""The HTML page about a release: complete, escaped, self-contained, and public unless it says otherwise."""

import html
import json
import math
import os
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privurn
from privurn.errors import CertificateError, DomainError, FormatError
from privurn.privacy.entropy import SeededEntropy
from privurn.privacy.trade_off import power_bound
from privurn.reports.html import page, report
from privurn.reports.html.markup import Markup, percent_up, small, tag

RNG = np.random.default_rng(11)
PAY = pd.DataFrame({"pay": RNG.gamma(4, 9000, 4000), "town": RNG.choice(["a", "b", "c"], 4000, p=[0.6, 0.3, 0.1])})
GRID = privurn.Grid(0, 80_000, 2_000)
NASTY = '<script>alert("x")</script> & <img src=x onerror=alert(1)>'


class Outline(HTMLParser):
    """What a browser would see: elements with attributes, and text outside of style sheets."""

    EMPTY = frozenset({"meta", "br", "img", "link", "input", "path", "use", "rect"})

    def __init__(self, page_text):
        super().__init__()
        self.elements, self.open, self.text, self.ids = [], [], [], []
        self.feed(page_text)
        assert self.open == [], "every element is closed"

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        self.ids += [value for key, value in attributes if key == "id"]
        if name not in self.EMPTY:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        self.ids += [value for key, value in attributes if key == "id"]

    def handle_endtag(self, name):
        if name not in self.EMPTY:
            assert self.open.pop() == name

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("report") / "out"
    privurn.release(PAY, privurn.Urn(), domain={"pay": GRID}, epsilon=1, delta=1e-6).save(home)
    return home


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures are left empty: drawing them is most of the work, and the same for every page."""
    monkeypatch.setattr("privurn.reports.html.pictures._drawing", lambda figure, name: ("0 0 1 1", Markup("")))


@pytest.fixture(scope="module")
def public_page(folder, tmp_path_factory):
    return report(folder, output=tmp_path_factory.mktemp("page") / "page.html").read_text()


def self_contained(text):
    outline = Outline(text)
    for name, attributes in outline.elements:
        assert name not in ("script", "link", "img", "iframe", "object", "embed", "base", "form")
        for key, value in attributes.items():
            assert not key.startswith("on")
            if key in ("src", "href", "xlink:href", "action", "srcset"):
                assert value.startswith("#"), f"{name} loads {value}"
    assert "http://" not in text
    assert "https://" not in text
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert "default-src 'none'" in html.unescape(text)
    assert len(outline.ids) == len(set(outline.ids))
    targets = {value[1:] for _, attributes in outline.elements for key, value in attributes.items() if key == "href"}
    assert targets <= set(outline.ids)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(outline.ids)
    return outline


def test_the_public_page_says_everything(folder, public_page):
    certificate = privurn.Certificate.read(folder)
    outline = self_contained(public_page)
    words = outline.words
    headings = ["What was released", "The guarantee", "The whole profile", "The released data"]
    headings += ["Parameters", "Ledger", "What it rests on", "How to verify"]
    assert [each for each in headings if each not in words] == []
    for text in [
        f"{certificate['records']:,} synthetic records",
        "dirichlet-multinomial",
        "grid 0..80000 in steps of 2000",
        certificate["sha256"],
        certificate["output"]["sha256"],
        "privurn verify out",
        "No ledger was used",
        *certificate["assumptions"],
    ]:
        assert text in words, text
    assert "CONFIDENTIAL" not in public_page
    names = [name for name, _ in outline.elements]
    assert names.count("svg") == 3
    assert names.count("h1") == 1
    assert ("html", {"lang": "en"}) in outline.elements
    for name, attributes in outline.elements:
        if name == "svg":
            assert attributes["role"] == "img"
            assert len(attributes["aria-label"]) > 20
            assert re.fullmatch(r"0 0 [\d.]+ [\d.]+", attributes["viewbox"])


def test_the_worked_numbers_are_the_guarantees(folder, public_page):
    from privurn.mechanisms.registry import rebuild

    stated = privurn.Certificate.read(folder)["mechanism"]
    profile = rebuild(stated["name"], stated["parameters"]).profile
    words = Outline(public_page).words
    simple = 0.05 * math.e + 1e-6
    assert f"at most {percent_up(simple)}" in words
    tight = float(power_bound(profile, level=0.05))
    assert 0.05 < tight < simple
    assert f"allows no more than {percent_up(tight)}" in words
    assert f"probability at most {percent_up(0.5 + 0.5 * profile.delta(0.0))}" in words
    for level in (0.01, 0.05, 0.1, 0.25):
        shown = percent_up(level * math.e + 1e-6), percent_up(float(power_bound(profile, level=level)))
        assert f"{level:.0%} {level:.0%} {shown[0]} {shown[1]}" in " ".join(re.sub(r"<[^>]*>", " ", public_page).split())


@pytest.mark.parametrize("bound", [1e-9, 0.13591, 0.135999, 0.1361, 0.25, 0.99951, 1.0])
def test_printed_bounds_are_bounds(bound):
    assert float(percent_up(bound).rstrip("%")) / 100.0 >= bound * (1.0 - 1e-9)
    assert float(percent_up(bound).rstrip("%")) / 100.0 <= min(1.0, bound + 0.001 + 1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1.2341e-6, 9.999e-5, 9.991e-5, 0.46312, 1e-300])
def test_printed_deltas_are_bounds(delta):
    assert delta <= float(small(delta)) <= 1.011 * delta


def test_the_public_page_holds_nothing_of_the_data(folder, tmp_path, monkeypatch):
    """The same release beside two different confidential tables gives the same bytes, and only the release is opened."""
    opened = []
    for name in ("open_table", "open_released"):
        real = page.read_release.__globals__[name]
        watched = lambda data, real=real: opened.append(str(data)) or real(data)  # noqa: E731
        monkeypatch.setitem(page.read_release.__globals__, name, watched)
    pages = []
    for name, table in {"one": PAY, "two": PAY.assign(pay=80_000 - PAY.pay, town="elsewhere")}.items():
        home = tmp_path / name
        home.mkdir()
        table.to_csv(home / "pay.csv", index=False)
        shutil.copytree(folder, home / "out")
        monkeypatch.chdir(home)
        pages.append(report("out").read_bytes())
    assert pages[0] == pages[1]
    assert opened == [os.path.join("out", "data.csv")] * 2
    assert sorted(path.name for path in (tmp_path / "one" / "out").iterdir()) == ["certificate.json", "data.csv", "report.html"]
    assert privurn.verify(tmp_path / "one" / "out").valid


def test_the_confidential_page_is_marked_and_depends_on_the_data(folder, tmp_path, monkeypatch):
    home = tmp_path / "out"
    shutil.copytree(folder, home)
    monkeypatch.chdir(home)
    path = report(".", data=PAY)
    assert path == tmp_path / "CONFIDENTIAL-report.html"
    assert path.stat().st_mode & 0o077 == 0
    text = path.read_text()
    outline = self_contained(text)
    assert re.search(r"<title>CONFIDENTIAL: ", text)
    assert re.search(r"<h1>CONFIDENTIAL: ", text)
    assert "Do not publish" in outline.words
    assert "This page is public" not in outline.words
    cells = (PAY.pay / 2000 + 0.5).astype(int).clip(0, 40) * 2000
    assert f"{cells.mean():,.5g}" in outline.words or f"{cells.mean():,.0f}" in outline.words
    assert "W1" in outline.words
    other = report(home, data=PAY.assign(pay=PAY.pay / 2), output=tmp_path / "confidential-other.html").read_text()
    assert other != text
    before = [re.sub(r"(?s)<section aria-labelledby=.before-after.*?</section>", "", each) for each in (text, other)]
    assert before[0] == before[1]  # everything but that one section is public


@pytest.mark.usefixtures("undrawn")
def test_distances_on_the_confidential_page(tmp_path):
    """A release that equals its data has distance 0 to them: the released file is given as the data."""
    privurn.release(PAY, privurn.Urn(records=4000), domain={"pay": GRID}, epsilon=1, delta=1e-6).save(tmp_path / "out")
    text = report(tmp_path / "out", data=tmp_path / "out" / "data.csv").read_text()
    words = Outline(text).words
    assert re.search(r"in the column's unit 0 largest difference .* functions 0 total variation .* cells 0 ", words)


def test_names_from_outside_are_text(tmp_path):
    """Column names and labels are the only free text there is; a label comes from the data themselves."""
    table = pl.DataFrame({NASTY: [NASTY] * 2500 + ["plain"] * 1500})
    privurn.release(table, domain=privurn.OpenLabels(), epsilon=1, delta=1e-6).save(tmp_path / "labels")
    listed = privurn.Categories([NASTY, "plain"], outside="null")
    privurn.release(table, domain={NASTY: listed}, epsilon=1, delta=1e-6).save(tmp_path / "listed")
    for name in ("labels", "listed"):
        for i, data in enumerate((None, table)):
            text = report(tmp_path / name, data=data, output=tmp_path / f"CONFIDENTIAL-{name}-{i}.html").read_text()
            words = self_contained(text).words
            assert words.count(NASTY) >= 3  # title, heading, and the label with its share
            assert "<script" not in text
            assert "<img" not in text


def test_labels_in_any_script(tmp_path):
    table = pl.DataFrame({"város": ["東京", "Αθήνα", "القاهرة", "$x_1$"] * 800})
    privurn.release(table, domain=privurn.OpenLabels(), epsilon=1, delta=1e-6).save(tmp_path / "out")
    words = Outline(report(tmp_path / "out").read_text()).words
    assert all(label in words for label in ("város", "東京", "Αθήνα", "القاهرة", "$x_1$"))


def test_text_is_escaped_unless_it_is_markup():
    assert tag("p", "<b>", Markup("<i></i>"), title='"') == '<p title="&quot;">&lt;b&gt;<i></i></p>'


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"domain": GRID, "mechanism": privurn.NoisyCounts(publish="counts"), "delta": 0.0}, "41 noisy counts"),
        ({"domain": GRID, "mechanism": privurn.PosteriorDraws(draws=2)}, "82 cell probabilities"),
        ({"domain": privurn.Bins([0, 20_000, 40_000, 90_000]), "contributions": 2}, "up to 2 records of one person"),
        ({"domain": privurn.Grid(0, 80_000, 2_000, nulls="cell", outside="other")}, "share (missing)"),
        (
            {"domain": GRID, "neighbouring": "add-remove", "mechanism": privurn.Urn(records=3000)},
            "the number of records is secret",
        ),
    ],
)
def test_every_kind_of_release(tmp_path, arguments, expected):
    asked = {"epsilon": 1, "delta": 1e-6, **arguments, "domain": {"pay": arguments["domain"]}}
    privurn.release(PAY, **asked).save(tmp_path / "out")
    assert expected in self_contained(report(tmp_path / "out").read_text()).words
    confidential = self_contained(report(tmp_path / "out", data=PAY).read_text()).words
    assert expected in confidential
    assert "Before and after" in confidential


@pytest.mark.usefixtures("undrawn")
def test_joint_releases_show_every_column_and_pair(tmp_path):
    domain = {"pay": GRID, "town": privurn.Categories(["a", "b", "c"], outside="null")}
    privurn.release(PAY, domain=domain, epsilon=2, delta=1e-6).save(tmp_path / "out", file_format="parquet")
    words = self_contained(report(tmp_path / "out", data=PAY).read_text()).words
    for text in ("Column pay", "Column town", "Pairs of columns", "pay and town"):
        assert text in words


@pytest.mark.usefixtures("undrawn")
def test_many_labels_are_cut(tmp_path):
    table = pl.DataFrame({"label": [str(i) for i in range(50)] * 400})
    listed = privurn.Categories([str(i) for i in range(50)], outside="null")
    privurn.release(table, domain={"label": listed}, epsilon=1, delta=1e-6).save(tmp_path / "out")
    assert "21 more" in Outline(report(tmp_path / "out").read_text()).words


@pytest.mark.usefixtures("undrawn")
def test_a_ledger_that_paid_is_named(tmp_path):
    ledger = privurn.Ledger.create(tmp_path / "pay.ledger", epsilon=2, delta=1e-5)
    privurn.release(PAY, domain={"pay": GRID}, epsilon=1, delta=1e-6, ledger=ledger).save(tmp_path / "out")
    words = Outline(report(tmp_path / "out").read_text()).words
    assert str(ledger.meta["id"]) in words
    assert "was debited before" in words


@pytest.mark.usefixtures("undrawn")
def test_seeded_releases_are_called_not_private(tmp_path):
    privurn.release(PAY, domain={"pay": GRID}, epsilon=1, delta=1e-6, entropy=SeededEntropy(1)).save(tmp_path / "out")
    words = Outline(report(tmp_path / "out").read_text()).words
    assert "NOT PRIVATE" in words


@pytest.mark.usefixtures("undrawn")
def test_nothing_is_overwritten_and_nothing_is_left_behind(folder, tmp_path, monkeypatch):
    taken = tmp_path / "taken.html"
    taken.write_text("mine")
    with pytest.raises(FormatError, match="exists"):
        report(folder, output=taken)
    late = tmp_path / "late.html"
    real = page.read_release

    def slow(*words):
        late.write_text("somebody was faster")
        return real(*words)

    monkeypatch.setattr(page, "read_release", slow)
    with pytest.raises(FormatError, match="exists"):
        report(folder, output=late)
    assert taken.read_text() == "mine"
    assert late.read_text() == "somebody was faster"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["late.html", "taken.html"]


@pytest.mark.usefixtures("undrawn")
def test_a_file_system_without_links(folder, tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    assert report(folder, output=tmp_path / "page.html").read_text().endswith("</html>\n")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_page_leaves_nothing(folder, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        report(folder, output=tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_where_a_confidential_page_may_go(folder, tmp_path):
    with pytest.raises(FormatError, match="must say so"):
        report(folder, data=PAY, output=tmp_path / "page.html")
    with pytest.raises(FormatError, match="handed over"):
        report(folder, data=PAY, output=folder / "CONFIDENTIAL-report.html")
    with pytest.raises(FormatError, match="no folder"):
        report(folder, output=tmp_path / "nowhere" / "page.html")


@pytest.mark.usefixtures("undrawn")
def test_refusals(folder, tmp_path):
    with pytest.raises(CertificateError, match="no release folder"):
        report(tmp_path / "nothing")
    with pytest.raises(DomainError) as caught:
        report(folder, data=PAY.head(3999), output=tmp_path / "confidential.html")
    assert "3,999" not in str(caught.value)
    with pytest.raises(DomainError):
        report(folder, data=PAY[["town"]], output=tmp_path / "confidential.html")
    edited = tmp_path / "edited"
    shutil.copytree(folder, edited)
    data = json.loads((edited / "certificate.json").read_text())
    (edited / "certificate.json").write_text(json.dumps({**data, "created": "2020-01-01T00:00:00+00:00"}))
    with pytest.raises(CertificateError, match="does not verify"):
        report(edited)
    assert not (edited / "report.html").exists()


@pytest.mark.usefixtures("undrawn")
def test_the_command(folder, tmp_path):
    import typer
    from typer.testing import CliRunner

    from privurn.cli import report as command

    app = typer.Typer()
    app.command("report", epilog=command.EXAMPLES)(command.report)
    PAY.to_csv(tmp_path / "pay.csv", index=False)
    run = CliRunner().invoke(app, [str(folder), "-o", str(tmp_path / "page.html"), "--json"])
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout) == {"report": str(tmp_path / "page.html"), "confidential": False}
    words = [str(folder), "--data", str(tmp_path / "pay.csv"), "-o", str(tmp_path / "CONFIDENTIAL-pay.html")]
    run = CliRunner().invoke(app, words)
    assert run.exit_code == 0, run.output
    assert "Report (confidential)" in run.stdout
    assert "Do not publish" in run.stderr
    assert (tmp_path / "CONFIDENTIAL-pay.html").exists()


FEW = pd.DataFrame({"x": np.arange(300) % 6})
SIX = privurn.Grid(0, 5, 1)
KINDS = {
    "urn": (privurn.Urn(), SIX, "flat prior"),
    "records from noisy counts": (privurn.NoisyCounts(), SIX, "cut off at 0"),
    "noisy counts": (privurn.NoisyCounts(publish="counts"), SIX, "standard deviation"),
    "smoothed": (privurn.Smoothed(), SIX, "uniform"),
    "posterior sample": (privurn.PosteriorDraws(), SIX, "flat prior"),
    "exponential": (privurn.Exponential(records=20), SIX, "random choice of a histogram"),
    "pseudo-posterior": (privurn.Pseudo(model=privurn.models.Bernoulli()), privurn.Grid(0, 1, 1), "model"),
    "open urn": (privurn.OpenUrn(records=5), SIX, "flat base"),
    "Pitman-Yor urn": (privurn.PitmanYorUrn(discount=0.5, records=5), SIX, "flat base"),
    "labels": (privurn.Discover(), privurn.OpenLabels(), "are not named"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_release_says_what_face_value_gives_and_does_not(kind, tmp_path):
    """What pulls it away from the data, that it does not show how far off it is, and what does or why nothing does."""
    from privurn.mechanisms.registry import rebuild
    from privurn.reports.html.conclusions import face_value

    mechanism, domain, words = KINDS[kind]
    made = privurn.release(FEW, mechanism, domain={"x": domain}, epsilon=4, delta=0.1).save(tmp_path / "out")
    text = face_value(tmp_path / "out", made.certificate, rebuild(**made.certificate["mechanism"]))
    shown = Outline(text).words
    assert words.lower() in shown.lower()
    assert "do not show how far off they are" in shown
    inferred = "privurn infer out" in shown
    assert inferred != ("there is no likelihood" in shown)
    assert inferred == (kind not in ("exponential", "pseudo-posterior", "Pitman-Yor urn"))


def test_the_public_page_says_what_face_value_gives(public_page):
    assert "At face value" in Outline(public_page).words


def test_what_must_be_known_before_figures_are_used_stands_beside_them():
    from privurn.errors import TellsLittle
    from privurn.reports.html.conclusions import cautions

    class Found:
        def __init__(self, *told):
            self.cautions = lambda: told

    assert "<li>the release tells little</li>" in cautions(Found(TellsLittle("the release tells little")))
    assert cautions(Found()) == ""


def test_privatised_records_are_reported_on_without_being_shown_as_data(tmp_path):
    """Each has noise of its own: the page says what reads them, and draws no picture of them."""
    made = privurn.privatise(PAY, privurn.Laplace(), domain={"pay": privurn.Bounds(0, 100_000)}, epsilon=2, ledger=False)
    made.save(tmp_path / "noisy")
    text = report(tmp_path / "noisy").read_text()
    assert f"{len(PAY):,} locally privatised records" in text
    assert "privurn infer noisy" in text
    assert "Column pay" not in text
    with pytest.raises(FormatError, match="locally privatised records"):
        report(tmp_path / "noisy", data=PAY, output=tmp_path / "CONFIDENTIAL.html")


@pytest.mark.parametrize(("neighbouring", "epsilon_n"), [("replace-one", None), ("add-remove", 0.01)])
@pytest.mark.usefixtures("undrawn")
def test_sums_of_a_column_with_a_hostile_name(tmp_path, neighbouring, epsilon_n):
    """What n costs is part of epsilon, and names are text."""
    name = "<script>alert(1)</script> & 'x'\n`z`"
    asked = privurn.Sums("normal", response=name, epsilon_n=epsilon_n)
    options = {"epsilon": 0.05, "contributions": 2, "neighbouring": neighbouring, "ledger": False}
    made = privurn.release(PAY.rename(columns={"pay": name}), asked, domain={name: privurn.Bounds(0, 100_000)}, **options)
    assert made.certificate["target"]["epsilon"] == pytest.approx(0.05, rel=1e-12)
    made.save(tmp_path / "a b;$(x)")
    text = report(tmp_path / "a b;$(x)").read_text()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "privurn infer &#x27;a b;$(x)&#x27;" in text
