"""Where results go is checked before anything is paid or computed: what cannot be written costs nothing."""

import json
import os
from pathlib import Path

import pytest

from privurn.errors import FormatError
from privurn.output_files import check_file, check_new_file, check_new_folder, write_file
from privurn.privacy.ledger import Ledger

PAYING = {
    "release": ["release", "d.csv", "--column", "x", "--grid", "0:9:1", "--epsilon", 1, "--delta", 1e-3],
    "privatise": ["privatise", "d.csv", "--column", "x", "--bounds", "0:9", "--epsilon", 1],
    "statistics": ["statistics", "d.csv", "--model", "bernoulli", "--y", "y", "--epsilon", 1, "--neighbouring", "replace-one"],
}


def dangling(home, name="link"):
    (home / name).symlink_to(home / "nowhere")
    return name


def loop(home, name="one"):
    (home / name).symlink_to(home / "two")
    (home / "two").symlink_to(home / name)
    return name


def taken_file(home, name="file"):
    (home / name).write_text("mine")
    return name


def through_a_file(home):
    (home / "file").write_text("mine")
    return "file/out"


def taken_folder(home):
    (home / "folder").mkdir()
    return "folder/"


BAD = {
    "a link that leads nowhere": dangling,
    "links in a circle": loop,
    "a file": taken_file,
    "a folder": taken_folder,
    "below a file": through_a_file,
    "below a link that leads nowhere": lambda home: dangling(home) + "/out",
    "below links in a circle": lambda home: loop(home) + "/out",
    "below no folder": lambda home: "none/out",
    "nothing": lambda home: "",
    "here": lambda home: ".",
    "above": lambda home: "..",
    "the root": lambda home: "/",
    "too long a name": lambda home: "x" * 256,
    "too long a path": lambda home: "./" * 10 + "y/" * 2100,
    "a place where nobody writes": lambda home: "/proc/out",
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.csv").write_text("x,y\n" + "".join(f"{i % 10},{i % 2}\n" for i in range(60)))
    Ledger.create(tmp_path / "d.csv.ledger", epsilon=10.0, delta=0.1)
    return tmp_path


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("paying", PAYING)
def test_what_cannot_be_written_is_not_paid_for(command, home, paying, bad):
    before = {path.name for path in home.iterdir()}
    output = BAD[bad](home)
    made = {path.name for path in home.iterdir()} - before
    done = command(*PAYING[paying], "-o", output)
    assert done.returncode == 2, done.stderr
    assert "internal error" not in done.stderr
    assert not Ledger(home / "d.csv.ledger").entries()
    assert {path.name for path in home.iterdir()} == before | made


@pytest.mark.parametrize("paying", PAYING)
@pytest.mark.parametrize("name", ["x" * 255, "out/", "a\nb [1]*?"])
def test_names_that_can_be_written_are(command, home, paying, name):
    done = command(*PAYING[paying], "-o", f"./{name}")
    assert done.returncode == 0, done.stderr
    assert [entry.status for entry in Ledger(home / "d.csv.ledger").entries()] == ["released"]
    assert (home / name).exists()
    assert not [path for path in home.iterdir() if path.name.startswith(".privurn-")]
    assert command("verify", f"./{name}").returncode == 0


def test_an_unknown_format_is_not_paid_for(command, home):
    assert command(*PAYING["release"], "-o", "out", "--format", "xlsx").returncode == 2
    assert not Ledger(home / "d.csv.ledger").entries()


def test_a_folder_without_the_right_to_write(home):
    closed = home / "closed"
    closed.mkdir(mode=0o500)
    if os.geteuid() == 0:  # root may write there; nobody may in a folder that the kernel makes up
        closed = Path("/proc/self")
    for check in (check_new_file, check_new_folder, check_file):
        with pytest.raises(FormatError, match="cannot be written"):
            check(closed / "out")


@pytest.mark.parametrize("check", [check_new_file, check_new_folder, check_file])
def test_names_that_no_system_takes(check):
    with pytest.raises(FormatError, match="cannot be written"):
        check("a\0b")


@pytest.mark.parametrize("make", [dangling, loop, taken_file, lambda home, name: "x" * 252 + ".csv"])
def test_reports_and_inference_refuse_before_they_compute(command, home, make):
    for paying, output in (("release", "out"), ("privatise", "noisy"), ("statistics", "sums")):
        assert command(*PAYING[paying], "-o", output).returncode == 0
    output = make(home, "new.csv")
    for words in (
        ["report", "out", "-o", output],
        ["infer", "noisy", "--synthetic", output],
        ["infer", "sums", "--synthetic", output],
    ):
        done = command(*words)
        assert done.returncode == 2, (words, done.stderr)
        assert "exists" in done.stderr or "cannot be written" in done.stderr
    assert not list(home.glob(".privurn-*"))


def test_draws_and_pictures_are_not_put_where_a_folder_is(command, home):
    assert command(*PAYING["release"], "-o", "out").returncode == 0
    for name, option in (("draws.nc", "-o"), ("p.png", "--plot"), ("x" * 253 + ".nc", "-o"), ("none/d.nc", "-o")):
        if len(name) < 20 and "/" not in name:
            (home / name).mkdir()
        done = command("infer", "out", option, name)
        assert done.returncode == 2, (name, done.stderr)
        assert "internal error" not in done.stderr


def test_files_appear_whole_or_not_at_all(home):
    target = home / "f.json"

    def fails(partial):
        partial.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_file(target, fails)
    assert not target.exists()
    write_file(target, lambda partial: partial.write_text("first"))
    with pytest.raises(FormatError, match="exists"):
        write_file(target, lambda partial: partial.write_text("second"))
    assert target.read_text() == "first"
    write_file(target, lambda partial: partial.write_text("third"), new=False, private=True)
    assert target.read_text() == "third"
    assert target.stat().st_mode & 0o077 == 0
    assert not list(home.glob(".privurn-*"))


def test_file_systems_without_links(home, monkeypatch):
    def refuse(self, target):
        raise OSError(95, "not supported")

    monkeypatch.setattr("pathlib.Path.hardlink_to", refuse)
    write_file(home / "f.json", lambda partial: partial.write_text(json.dumps([1])))
    assert json.loads((home / "f.json").read_text()) == [1]
    with pytest.raises(FormatError, match="exists"):
        write_file(home / "f.json", lambda partial: partial.write_text("2"))
