"""Kill -9 at any point: a crash may waste budget but never leaves an unpaid output; concurrent releases never overspend."""

import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

import privurn
from privurn.privacy.ledger import Ledger

SCRIPT = """
import os, signal, sys
import numpy as np, privurn
from privurn.privacy.ledger import Ledger

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

point = sys.argv[1]
if point == "before paying":
    Ledger.debit = die
elif point == "after paying":
    debit = Ledger.debit
    Ledger.debit = lambda *a, **k: (debit(*a, **k), die())
elif point == "after drawing":
    import privurn.releases.release as module
    module.certify = die
elif point == "after writing the data":
    import privurn.certificates.folder as module
    module.file_hash = die
elif point == "before the folder appears":
    import pathlib
    pathlib.Path.rename = die
elif point == "before the entry is completed":
    Ledger.complete = die
data = np.arange(1000) % 7
privurn.release(data, domain=privurn.Grid(0, 6, 1), epsilon=0.5, delta=1e-6, ledger="ledger").save("out")
"""
POINTS = {
    "before paying": (0, False),
    "after paying": (1, False),
    "after drawing": (1, False),
    "after writing the data": (1, False),
    "before the folder appears": (1, False),
    "before the entry is completed": (1, True),
    "never": (1, True),
}


@pytest.mark.parametrize("point", POINTS)
def test_killed_at(tmp_path, point):
    Ledger.create(tmp_path / "ledger", epsilon=1.0, delta=1e-5)
    done = subprocess.run([sys.executable, "-c", SCRIPT, point], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if point == "never" else -signal.SIGKILL), done.stderr
    entries, output = POINTS[point]
    ledger = Ledger(tmp_path / "ledger")
    assert len(ledger.entries()) == entries
    assert (tmp_path / "out").exists() is output
    if output:
        assert privurn.verify(tmp_path / "out").valid


def test_a_copy_has_what_was_paid_when_the_process_was_killed(tmp_path):
    """The file alone, as a backup takes it, while someone else looks at it: a payment must not stand in a second file."""
    Ledger.create(tmp_path / "ledger", epsilon=1.0, delta=1e-5)
    onlooker = sqlite3.connect(tmp_path / "ledger")
    onlooker.execute("SELECT * FROM sqlite_master").fetchall()
    done = subprocess.run([sys.executable, "-c", SCRIPT, "after paying"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    (tmp_path / "backup").mkdir()
    shutil.copyfile(tmp_path / "ledger", tmp_path / "backup" / "ledger")
    onlooker.close()
    assert Ledger(tmp_path / "backup" / "ledger").remaining()["epsilon"] == 0.5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "ledger"]


TORN = """
import os, signal
from privurn.privacy.ledger import Ledger, Spent, _Page
from privurn.privacy.profile import Guarantee

def torn(page, content):
    write(page, content)
    page.connection.execute("PRAGMA cache_size = 1")
    for number in range(1000, 1400):
        page.connection.execute("INSERT INTO events VALUES (?, ?, '')", (number, "x" * 4000))
    os.kill(os.getpid(), signal.SIGKILL)

write, _Page.write = _Page.write, torn
Ledger("ledger").debit(Spent(guarantee=Guarantee(epsilon=0.25, delta=0.0), rho=None, description="test"))
"""


def test_killed_in_the_middle_of_a_payment(tmp_path):
    """With half of a transaction in the file: the next one to open it rolls that back, and the chain is whole."""
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1.0)
    head, size = ledger.read().head, (tmp_path / "ledger").stat().st_size
    done = subprocess.run([sys.executable, "-c", TORN], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (tmp_path / "ledger").stat().st_size > size + 1_000_000  # the file was written to, and a journal is left
    assert (tmp_path / "ledger-journal").exists()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(tmp_path / "ledger")
    assert Ledger(tmp_path / "elsewhere" / "link").read().head == head  # the journal is found by the real name
    assert not (tmp_path / "ledger-journal").exists()


RACER = """
import sys
from privurn.errors import BudgetExceeded
from privurn.privacy.ledger import Ledger, Spent
from privurn.privacy.profile import Guarantee

path, paid = sys.argv[1], 0
sys.stdin.read()
while True:
    try:
        Ledger(path).debit(Spent(guarantee=Guarantee(epsilon=0.1, delta=0.0), rho=None, description=path))
        paid += 1
    except BudgetExceeded:
        break
print(paid)
"""


def test_eight_processes_and_three_spellings_never_overspend(tmp_path):
    """All start together and pay as long as they can: forty times 0.1 fit into 4, and not once more."""
    ledger = Ledger.create(tmp_path / "ledger", epsilon=4.0)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(tmp_path / "ledger")
    spellings = ["ledger", str(tmp_path / "ledger"), "elsewhere/link"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, spellings[i % 3]], cwd=tmp_path, text=True, **pipes) for i in range(8)
    ]
    for racer in racers:
        racer.stdin.close()  # the start
    done = [(racer.stdout.read(), racer.stderr.read(), racer.wait()) for racer in racers]
    assert [(error, code) for _, error, code in done] == [("", 0)] * 8
    assert sum(int(paid) for paid, _, _ in done) == 40
    assert len(ledger.entries()) == 40
    assert ledger.remaining()["epsilon"] == 0.0


@pytest.mark.long
def test_killed_at_random_moments(tmp_path):
    """Whatever the moment: an output that exists was paid for."""
    rng = np.random.default_rng(0)
    Ledger.create(tmp_path / "ledger", epsilon=100.0, delta=1e-3)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", SCRIPT, "never"], cwd=tmp_path, check=True)
    typical = time.perf_counter() - start
    (tmp_path / "out").rename(tmp_path / "kept")
    outputs = 1
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, "never"], cwd=tmp_path)
        time.sleep(typical * rng.uniform(0.6, 1.05))
        process.kill()
        process.wait()
        if (tmp_path / "out").exists():
            assert privurn.verify(tmp_path / "out").valid
            outputs += 1
            (tmp_path / "out").rename(tmp_path / f"kept{outputs}")
        assert len(Ledger(tmp_path / "ledger").entries()) >= outputs


def test_concurrent_releases_never_overspend(tmp_path):
    Ledger.create(tmp_path / "ledger", epsilon=1.6, delta=1e-3)
    code = SCRIPT.replace('.save("out")', ".save(sys.argv[2])")
    racers = [
        subprocess.Popen([sys.executable, "-c", code, "never", f"out{i}"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        for i in range(5)
    ]
    errors = [racer.communicate()[1] for racer in racers]
    assert sum(racer.returncode == 0 for racer in racers) == 3
    assert sum("BudgetExceeded" in error for error in errors) == 2
    assert len(list(tmp_path.glob("out*"))) == 3
    assert Ledger(tmp_path / "ledger").remaining()["epsilon"] == pytest.approx(0.1)


def test_ctrl_c_leaves_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("x\n" + "\n".join(str(i % 7) for i in range(2_000_000)) + "\n")
    words = [
        "release",
        "t.csv",
        "--column",
        "x",
        "--grid",
        "0:6:1",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--records",
        "3e7",
        "--mechanism",
        "dirichlet-multinomial",  # whose records are what is paid for
        "-o",
        "out",
    ]
    ready = "from privurn.cli.main import run; print('ready', flush=True); run()"
    process = subprocess.Popen(
        [sys.executable, "-c", ready, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    code = process.returncode
    assert (code if code >= 0 else 128 - code) == 130, error  # as a shell counts: Python may end by the signal itself
    assert "interrupted" in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


def test_ctrl_c_while_the_command_is_imported_is_no_traceback(monkeypatch, capsys):
    from privurn import __main__ as entry

    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "privurn.cli.main", raising=False)
    monkeypatch.setattr("builtins.__import__", interrupted)
    with pytest.raises(SystemExit) as stopped:
        entry.main()
    monkeypatch.undo()
    assert stopped.value.code == 130
    assert "nothing was begun" in capsys.readouterr().err
