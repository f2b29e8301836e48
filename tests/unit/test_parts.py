"""Releases in parts: written all of it or nothing that verifies, on file systems that copy too, and every edit convicts."""

import hashlib
import json
import random
import shutil
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import privurn
from privurn.certificates import folder as saving
from privurn.certificates import verify as verification
from privurn.counts import CountTable
from privurn.domain import Categories, Grid, JointDomain
from privurn.errors import FormatError
from privurn.inference.verified import Verified, verified
from privurn.mechanisms.registry import rebuild
from privurn.privacy.certificate import Certificate
from privurn.privacy.entropy import SeededEntropy, SystemEntropy
from privurn.releases.synthetic import _in_blocks
from privurn.tables.blocks import Blocks
from privurn.tables.here import Here
from privurn.tables.output import decode_rows
from privurn.tables.parts import read_manifest

DOMAIN = {"age": Grid(0, 4, 1), "region": Categories(["=north", "south"], outside="other")}
RECORDS = {"age": [0, 1, 1, 4, 4, 4], "region": ["=north", "south", "south", "elsewhere", "=north", "south"]}


def made(*, entropy=None):
    """A release in three blocks of 4, 4 and 2 records, from a cluster that is this process."""
    import pyarrow as pa

    entropy = entropy or SystemEntropy()
    out = privurn.release(
        pa.table(RECORDS), privurn.Urn(records=10, alpha=Fraction(20)), domain=DOMAIN, epsilon=2, delta=1e-3, entropy=entropy
    )
    domain = JointDomain(DOMAIN)
    from privurn.tables import count_cells, open_table

    with open_table(pa.table(RECORDS)) as source:
        counts = count_cells(source, domain)
    urn = rebuild(**out.certificate["mechanism"])
    first, *others = urn.draw_blocks(counts, size=4, entropy=entropy)
    drawn = reduce(CountTable.plus, others, first)
    made = Blocks.drawn([drawn], decode=lambda cells: decode_rows(cells, domain), words=entropy.words, tasks=Here())
    return replace(out, table=replace(made, lots=tuple(replace(each, size=4) for each in made.lots)))


@pytest.fixture(scope="module", params=["parquet", "csv"])
def released(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts") / "out"
    return made().save(folder, file_format=request.param), folder, request.param


@pytest.fixture
def copied(released, tmp_path):
    _, folder, file_format = released
    shutil.copytree(folder, tmp_path / "out")
    return tmp_path / "out", file_format


def test_a_folder_of_parts_verifies_and_holds_the_records_in_order(released):
    out, folder, file_format = released
    assert privurn.verify(folder) == privurn.verify(folder / "certificate.json")
    assert privurn.verify(folder).valid
    assert sorted(each.name for each in folder.iterdir()) == ["certificate.json", "data", "manifest.json"]
    parts = read_manifest(folder / "manifest.json")
    assert [(each.file, each.rows) for each in parts] == [
        (f"part-00000{i}.{file_format}", rows) for i, rows in enumerate((4, 4, 2))
    ]
    assert out.certificate["output"]["rows"] == 10
    assert out.certificate["output"]["sha256"] == hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
    with verified(folder).open() as source:
        read = source.connection.sql("SELECT * FROM t").to_arrow_table()
    published = out.table.to_arrow()
    assert [str(each) for each in read.columns[0].to_pylist()] == [str(each) for each in published["age"].to_pylist()]
    assert read.columns[1].to_pylist() == published["region"].to_pylist()
    assert any(("behind an apostrophe" in remark) for remark in out.remarks) is (file_format == "csv")
    if file_format == "parquet":  # programs that know nothing of privurn read the folder of parts
        assert pq.read_table(folder / "data").equals(published)


def test_records_that_are_not_saved_yet_can_be_looked_at():
    out = made()
    assert out.data.num_rows == 10
    assert out.data.equals(out.data)  # blocks have an order of their own, which is not drawn again
    with Verified(
        certificate=out.certificate, mechanism=rebuild(**out.certificate["mechanism"]), data=out.table
    ).open() as source:
        assert source.rows() == 10


def write(folder, name, text):
    (folder / "data" / name).write_bytes(text)


def swapped(folder, file_format):
    first, second = (folder / "data" / f"part-00000{i}.{file_format}" for i in (0, 1))
    held = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(held)


def relisted(folder, change):
    """Another manifest, with the certificate made to fit: what a careful forger would do."""
    data = json.loads((folder / "manifest.json").read_text())
    change(data["parts"])
    raw = (json.dumps(data, indent=1) + "\n").encode()
    (folder / "manifest.json").write_bytes(raw)
    certificate = Certificate.read(folder)
    output = {**certificate["output"], "sha256": hashlib.sha256(raw).hexdigest()}
    (folder / "certificate.json").write_text(certificate.with_fields(output=output).to_json())


def one_row_moved(parts):
    parts[0]["rows"] -= 1
    parts[1]["rows"] += 1


EDITS = {
    "a part is missing": (lambda folder, kind: (folder / "data" / f"part-000001.{kind}").unlink(), "missing or were changed"),
    "a part was edited": (lambda folder, kind: write(folder, f"part-000002.{kind}", b"x"), "part-000002"),
    "a file too many": (lambda folder, kind: write(folder, f"part-000003.{kind}", b""), "does not list"),
    "a hidden file too many": (lambda folder, kind: write(folder, ".notes", b"PLANTED"), "does not list"),
    "two parts were exchanged": (swapped, "missing or were changed: part-000000"),
    "no folder of parts": (lambda folder, kind: shutil.rmtree(folder / "data"), "is missing"),
    "no manifest": (lambda folder, kind: (folder / "manifest.json").unlink(), "not finished"),
    "half a manifest": (
        lambda folder, kind: (folder / "manifest.json").write_bytes((folder / "manifest.json").read_bytes()[:50]),
        "hash does not fit",
    ),
    "parts listed in another order": (lambda folder, kind: relisted(folder, list.reverse), "parts in order"),
    "a part left out of the list": (lambda folder, kind: relisted(folder, lambda parts: parts.pop()), "rows that are stated"),
    "other numbers of rows": (lambda folder, kind: relisted(folder, one_row_moved), "rows that are stated"),
    "a part from outside the folder": (
        lambda folder, kind: relisted(folder, lambda parts: parts[0].update(file=f"../data/part-000000.{kind}")),
        "parts in order",
    ),
}


class Elsewhere(Here):
    """In place of Spark."""

    def __init__(self, session):
        self.asked = session().__enter__()  # what is given as a session

    def answers(self, task, number):
        self.asked.append(number)
        return super().answers(task, number)


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_of_a_folder_of_parts_convicts(copied, edit, monkeypatch):
    folder, file_format = copied
    change, said = EDITS[edit]
    asked = []
    monkeypatch.setattr(verification, "SparkTasks", Elsewhere)
    assert privurn.verify(folder, spark=asked).valid
    assert asked == [3, 3]  # hashes, then what is in the parts
    change(folder, file_format)
    found = privurn.verify(folder)
    assert privurn.verify(folder, spark=asked) == found  # by other computers
    assert not found.valid
    assert any(said in reason for reason in found.reasons), found.reasons
    assert "PLANTED" not in str(found)


def test_what_is_in_a_part_is_checked_though_its_hash_fits(copied, monkeypatch):
    folder, file_format = copied
    part = folder / "data" / f"part-000001.{file_format}"
    table = pyarrow.csv.read_csv(part) if file_format == "csv" else pq.read_table(part)
    wrong = table.set_column(0, "age", [np.full(table.num_rows, 77)])
    (pyarrow.csv.write_csv if file_format == "csv" else pq.write_table)(wrong, part)
    digest = hashlib.sha256(part.read_bytes()).hexdigest()
    relisted(folder, lambda parts: parts[1].update(sha256=digest))
    assert any("values outside the domain" in reason for reason in privurn.verify(folder).reasons)
    monkeypatch.setattr(verification, "SparkTasks", Elsewhere)
    assert privurn.verify(folder, spark=[]) == privurn.verify(folder)


class DiedError(BaseException):
    """In place of a kill: nothing is cleaned up afterwards."""


@pytest.mark.parametrize("seed", [1, 2])
def test_a_death_on_a_file_system_that_copies_leaves_nothing_that_verifies(tmp_path, monkeypatch, seed):
    """A rename that copies file after file, in any order, and may end anywhere; then the manifest, which may not be written."""
    out, steps = made(), 0

    def copying(allowed):
        def move(partial: Path, target: Path) -> None:
            files = sorted(each for each in partial.rglob("*") if each.is_file())
            random.Random(seed).shuffle(files)
            for done, each in enumerate(files):
                if done == allowed:
                    raise DiedError
                copy = target / each.relative_to(partial)
                copy.parent.mkdir(parents=True, exist_ok=True)
                content = each.read_bytes()
                copy.write_bytes(content[: len(content) // 2] if done + 1 == allowed else content)
            if allowed == len(files):
                raise DiedError
            nonlocal steps
            steps = len(files)

        return move

    def dying(*_, **__):
        raise DiedError

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda *_, **__: None)
        for allowed in range(5):
            patched.setattr(saving, "move_folder", copying(allowed))
            with pytest.raises(DiedError):
                out.save(tmp_path / f"died-{allowed}")
        patched.setattr(saving, "move_folder", copying(99))
        patched.setattr(saving, "write_file", dying)
        with pytest.raises(DiedError):
            out.save(tmp_path / "died-5")
    assert steps == 4  # three parts and the certificate
    for each in range(6):
        assert not privurn.verify(tmp_path / f"died-{each}").valid
    monkeypatch.setattr(saving, "move_folder", copying(99))
    out.save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").valid


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    def failing(*_, **__):
        raise OSError

    monkeypatch.setattr(saving, "write_file", failing)
    with pytest.raises(OSError):
        made().save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


class Lost(Here):
    """Tasks whose files are on another computer."""

    def answers(self, task, number):
        return [("nowhere.csv", 1, "0" * 64)] * number


class Short(Here):
    """Tasks that lose records."""

    def answers(self, task, number):
        return [(name, rows - 1, sha256) for name, rows, sha256 in map(task, range(number))]


class Failing(Here):
    """A cluster that is gone."""

    def answers(self, task, number):
        raise FormatError("Spark cannot write the release.", hint="")


@pytest.mark.parametrize(
    ("tasks", "said"), [(Lost(), "not written where"), (Short(), "do not hold its records"), (Failing(), "cannot write")]
)
def test_what_a_cluster_cannot_write_is_written_here_and_is_the_same(tmp_path, tasks, said):
    out = made()
    out.save(tmp_path / "here")
    with pytest.warns(UserWarning, match=said):
        replace(out, table=replace(out.table, tasks=tasks)).save(tmp_path / "out")
    assert privurn.verify(tmp_path / "out").valid
    assert (tmp_path / "out" / "manifest.json").read_bytes() == (tmp_path / "here" / "manifest.json").read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["here", "out"]


def test_a_lost_task_that_still_writes_is_not_in_the_way(tmp_path, monkeypatch):
    """What it writes while leftovers are removed would keep their folder, and the release that was paid for would fail."""
    remove, late = shutil.rmtree, []

    def removing(path, **options):
        for work in Path(path).parent.glob("work"):
            late.append(work)
        remove(path, **options)

    monkeypatch.setattr(shutil, "rmtree", removing)
    made().save(tmp_path / "out")
    assert not late
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["certificate.json", "data", "manifest.json"]


def test_parts_that_hold_too_few_records_are_no_release(tmp_path, monkeypatch):
    monkeypatch.setattr(Here, "answers", Short.answers)
    with pytest.raises(FormatError, match="do not hold its records"), pytest.warns(UserWarning, match="instead"):
        made().save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_before_the_manifest_leaves_nothing_under_the_name(tmp_path, monkeypatch):
    flush = saving.flush

    def interrupted(path):
        if path == tmp_path:
            raise KeyboardInterrupt
        flush(path)

    monkeypatch.setattr(saving, "flush", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made().save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_copies_from_a_posterior_come_in_blocks_of_their_own(monkeypatch):
    domain = JointDomain({"age": Grid(0, 4, 1)})
    tables = [np.array([3, 0, 2, 0, 4]), np.array([1, 1, 1, 1, 3])]
    monkeypatch.setattr("privurn.tables.blocks.SIZE", 4)
    blocks = _in_blocks(tables, domain=domain, seed=1, tasks=Here())
    table = blocks.to_arrow()
    assert blocks.sizes == [4, 4, 1, 4, 3]
    assert table["copy"].to_pylist() == [1] * 9 + [2] * 7
    found = [np.bincount(table.filter(np.equal(table["copy"], copy))["age"].to_numpy(), minlength=5) for copy in (1, 2)]
    assert [each.tolist() for each in found] == [each.tolist() for each in tables]
    alone = _in_blocks(tables[:1], domain=domain, seed=1, tasks=Here())
    assert alone.column_names == ["age"]


def test_a_seed_gives_the_same_parts_again(tmp_path):
    for name in "ab":
        made(entropy=SeededEntropy(5)).save(tmp_path / name, file_format="parquet")
    assert (tmp_path / "a" / "manifest.json").read_bytes() == (tmp_path / "b" / "manifest.json").read_bytes()
