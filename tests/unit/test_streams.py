"""What nobody reads, or what finds no room, changes neither what a command has done nor its exit code."""

import contextlib
import io
import json
import os
import sys

import pytest

from privurn.cli.console import print_json
from privurn.cli.main import run
from privurn.cli.streams import Stream
from privurn.errors import FormatError


@pytest.fixture
def unread():
    """A pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    stream = open(writer, "w")  # noqa: SIM115 what is in its buffer can never be written
    yield stream
    with contextlib.suppress(BrokenPipeError):
        stream.close()


def exit_code(words, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["privurn", *words])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        run()
    return stopped.value.code


@pytest.mark.parametrize(("words", "code"), [([], 0), (["--help"], 0), (["verify", "nothing"], 1), (["infer", "nothing"], 2)])
@pytest.mark.parametrize("closed", [False, True], ids=["a pipe without a reader", "closed"])
def test_nobody_reads(words, code, closed, unread, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdout", None if closed else unread)
    assert exit_code(words, monkeypatch, tmp_path) == code


def test_nobody_reads_errors(unread, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stderr", unread)
    assert exit_code(["infer", "nothing"], monkeypatch, tmp_path) == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
def test_a_full_disk_is_said(monkeypatch, tmp_path, capsys):
    with open("/dev/full", "w") as full:
        stream = Stream(full)
        stream.write("text")
        with pytest.raises(FormatError, match="cannot be written"):
            stream.flush()
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        assert exit_code(["verify", "nothing"], patch, tmp_path) == 2
    assert "No space left" in capsys.readouterr().err
    with open("/dev/full", "w", buffering=1) as full, monkeypatch.context() as patch:  # by lines, as standard error is
        patch.setattr(sys, "stderr", full)
        assert exit_code(["infer", "nothing"], patch, tmp_path) == 2


def test_what_cannot_be_encoded_is_escaped(monkeypatch):
    raw = io.BytesIO()
    plain = io.TextIOWrapper(raw, encoding="ascii")
    with contextlib.redirect_stdout(Stream(plain)):
        print_json({"größe": 1})
        sys.stdout.write("größe\n")
        sys.stdout.flush()
    first, second = raw.getvalue().decode("ascii").splitlines()
    assert json.loads(first) == {"größe": 1}
    assert second == "gr\\xf6\\xdfe"
