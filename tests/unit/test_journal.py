"""The journal: what it holds after every way a write can end, and who is told what was left behind."""

import argparse
import errno
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bqltop.kernel import netns
from bqltop.tuning import journal as journals
from bqltop.tuning import journal_command
from bqltop.tuning.access import Identity, Reading, boot_id
from bqltop.tuning.journal import Entry, Journal, JournalError, fold

HERE = Identity(7, 1234, 99, boot_id())
DEAD = {"user": "root", "pid": 1, "started": 1}  # process 1 began at another time


@pytest.fixture
def journal(tmp_path):
    return Journal(str(tmp_path))


def entry(id="a", knob="limit_min", queue=0, old=0, asked=8, identity=HERE, undoes=None, raw=None, **who):
    return Entry(id=id, at="", device="veth0", ns=netns.current(), identity=identity, knob=knob, queue=queue,
                 old=Reading(old, raw), asked=asked, batch="b", via="veth0", undoes=undoes, **({**DEAD, **who}))  # fmt: skip


def state(journal, id="a"):
    return next(one.state for one in journal.entries() if one.id == id)


def test_a_change_goes_through_its_states(journal):
    journal.intend([entry()])
    assert state(journal) == "intended"
    journal.outcome(["a"], "done", [8])
    (one,) = journal.entries()
    assert (one.state, one.kept, one.old.value, one.asked) == ("done", 8, 0, 8)
    journal.settle(["a"], "kept")
    assert state(journal) == "kept"


def test_what_is_written_comes_back_as_it_was(journal):
    before = entry(id="z", knob="qdisc", queue=None, old="pfifo limit 5", asked="sfq", raw={"handle": 3, "options": "05"})
    journal.intend([before])
    (after,) = journal.entries()
    assert after.at
    assert journals.replace(after, at="") == before


def test_a_refused_change_is_not_left_behind(journal):
    journal.intend([entry()])
    journal.outcome(["a"], "refused", (), errno.EINVAL, "Invalid argument")
    assert journal.left_behind() == []
    assert journal.entries()[0].text == "Invalid argument"


@pytest.mark.parametrize(("outcome", "expected"), [(False, None), (True, 8)])
def test_a_dead_writers_change_is_left_behind_with_and_without_outcome(journal, outcome, expected):
    journal.intend([entry()])
    if outcome:
        journal.outcome(["a"], "done", [8])
    (left,) = journal.left_behind(HERE)
    assert (left.first.old.value, left.last.kept) == (0, expected)


def test_several_changes_of_one_value_are_one_leftover_back_to_the_first(journal):
    for id, old, asked in (("a", 0, 8), ("b", 8, 16), ("c", 16, 64)):
        journal.intend([entry(id, old=old, asked=asked)])
        journal.outcome([id], "done", [asked])
    journal.intend([entry("d", queue=1, old=3, asked=4)])
    latest, earliest = journal.left_behind()
    assert latest.first.queue == 1
    assert (earliest.first.old.value, earliest.last.kept, len(earliest.entries)) == (0, 64, 3)


def test_an_undo_settles_what_it_undoes_and_is_nothing_left_behind_itself(journal):
    journal.intend([entry()])
    journal.outcome(["a"], "done", [8])
    journal.intend([entry("u", old=8, asked=0, undoes="a")])
    assert [left.first.id for left in journal.left_behind()] == ["a"]  # killed in the middle of the undo
    journal.outcome(["u"], "done", [0])
    assert journal.left_behind() == []
    assert state(journal) == "undone"


def test_the_living_keep_theirs(journal):
    me = journals.writer()
    journal.intend([entry(**me)])
    journal.outcome(["a"], "done", [8])
    assert journal.left_behind() == []
    assert journal.others(HERE) == []  # ours, not another's
    parent = {"pid": os.getppid(), "started": journals.start_time(os.getppid())}
    journal.intend([entry("p", **parent)])
    assert [one.id for one in journal.others(HERE)] == ["p"]


def test_another_device_of_the_same_name_and_another_uptime_are_not_ours(journal):
    journal.intend([entry(), entry("old", identity=Identity(7, 1234, 99, "before the restart"))])
    assert [left.first.id for left in journal.left_behind()] == ["a"]
    assert journal.left_behind(Identity(7, 1235, 99, boot_id())) == []


def test_kept_on_purpose_is_offered_only_on_request(journal):
    journal.intend([entry()])
    journal.outcome(["a"], "done", [8])
    journal.settle(["a"], "kept")
    assert journal.left_behind() == []
    assert len(journal.left_behind(kept=True)) == 1


def test_a_torn_last_line_is_passed_over_and_the_next_record_can_be_read(journal):
    journal.intend([entry()])
    with open(journal.path, "ab") as file:
        file.write(b'{"v": 1, "event": "intent", "id": "torn", "de')
    journal.intend([entry("b", queue=1)])
    assert [one.id for one in journal.entries()] == ["a", "b"]


@pytest.mark.parametrize("cut", range(1, 400, 13))
def test_cut_anywhere_it_still_reads(journal, cut):
    journal.intend([entry(), entry("b", queue=1)])
    size = os.path.getsize(journal.path)
    os.truncate(journal.path, max(0, size - cut))
    assert len(journal.entries()) in (0, 1, 2)
    journal.intend([entry("c", queue=2)])
    assert journal.entries()[-1].id == "c"


def test_damaged_and_foreign_records_are_passed_over():
    records = [{}, {"event": "intent"}, {"event": "outcome", "id": "?"}, {"event": "settled", "ids": ["?"], "how": "kept"},
               {"event": "a later invention", "id": "a"}]  # fmt: skip
    assert fold(records) == []


def test_any_line_that_is_not_ours_is_passed_over(journal):
    journal.intend([entry()])
    with open(journal.path, "ab") as file:
        for line in (b"{}", b"[]", b"null", b'"x"', b"1", b"\xff\x00", b"[" * 100_000, b"9" * 10_000):
            file.write(line + b"\n")
    journal.intend([entry("b", queue=1)])
    assert [one.id for one in journal.entries()] == ["a", "b"]


def test_a_journal_that_is_no_file_is_refused_and_not_waited_for(journal):
    os.makedirs(journal.folder, exist_ok=True)
    os.mkfifo(journal.path)
    with pytest.raises(OSError, match="ordinary"):
        journal.entries()
    with pytest.raises(JournalError, match="cannot be written: not an ordinary file"):
        journal.intend([entry()])


def test_names_of_any_bytes(journal):
    name = os.fsdecode(b"\xff\xe9[red]")
    journal.intend([journals.replace(entry(), device=name)])
    assert journal.entries()[0].device == name


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    broken = Journal(str(tmp_path / "file" / "below"))
    with pytest.raises(JournalError) as caught:
        broken.intend([entry()])
    assert "\n" not in str(caught.value)
    assert broken.outcome(["a"], "done", [8]) == str(caught.value)
    assert broken.settle(["a"], "kept")
    assert broken.settle([], "kept") is None
    assert broken.left_behind() == []


def test_a_failed_write_leaves_no_half_line(journal, monkeypatch):
    journal.intend([entry()])
    before = Path(journal.path).read_bytes()
    real = os.write

    def short(fd, data):
        return real(fd, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(JournalError, match="No space left"):
        journal.intend([entry("b")])
    assert Path(journal.path).read_bytes() == before


def test_a_lock_that_is_not_let_go_is_one_sentence(journal, monkeypatch):
    journal.intend([entry()])
    monkeypatch.setattr(journals, "LOCK_S", 0.05)
    with open(os.path.join(journal.folder, journals.LOCK)) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(JournalError, match="another process holds its lock"):
            journal.intend([entry("b")])
    journal.intend([entry("c")])


def test_it_does_not_grow_for_ever_and_keeps_what_is_outstanding(journal, monkeypatch):
    monkeypatch.setattr(journals, "ROTATE_BYTES", 20_000)
    monkeypatch.setattr(journals, "RECORDS_KEPT", 10)
    journal.intend([entry("first")])
    for number in range(200):
        journal.intend([entry(f"n{number}", queue=1)])
        journal.outcome([f"n{number}"], "refused", (), 22, "Invalid argument")
    assert os.path.getsize(journal.path) < 40_000
    assert [left.first.id for left in journal.left_behind()] == ["first"]


WRITE_MANY = """
import sys
from pathlib import Path
from test_journal import Journal, entry
for number in range(50):
    Journal(sys.argv[1]).intend([entry(f"{sys.argv[2]}{number}")])
"""


def test_several_processes_write_whole_lines(journal):
    here = os.path.dirname(__file__)
    writers = [subprocess.Popen([sys.executable, "-c", WRITE_MANY, journal.folder, name], cwd=here) for name in "xyz"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    lines = Path(journal.path).read_text().splitlines()
    assert len(lines) == 150
    assert len({json.loads(line)["id"] for line in lines}) == 150


def test_where_it_is(monkeypatch):
    monkeypatch.delenv("BQLTOP_STATE_DIR", raising=False)
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    assert journals.default_folder() == "/var/lib/bqltop"
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/x:/var/lib/y")
    assert journals.default_folder() == "/var/lib/x"
    monkeypatch.setenv("BQLTOP_STATE_DIR", "/here")
    assert journals.default_folder() == "/here"


def test_who_is_at_the_keyboard(monkeypatch):
    monkeypatch.setenv("SUDO_USER", "ann")
    assert journals.user() == "ann"
    monkeypatch.delenv("SUDO_USER")
    assert journals.user()


def test_ids_are_unique_and_a_process_is_known_by_its_start():
    assert len({journals.new_id() for _ in range(100)}) == 100
    assert journals.alive(os.getpid(), journals.start_time(os.getpid()))
    assert not journals.alive(os.getpid(), 1)
    assert journals.start_time(2**22 + 1) is None


@pytest.mark.parametrize(
    ("found", "device", "said"),
    [(None, None, "is empty"), (b"", None, "is empty"), (b"\xff\x00\x9c" * 50, None, "has no line that can be read as a change"),
     ("an entry", "veth7", "has no change of veth7")],
)  # fmt: skip
def test_listing_nothing_says_why(found, device, said, tmp_path, monkeypatch, capsys):
    journal = Journal(str(tmp_path))
    if found == "an entry":
        journal.intend([entry()])
    elif found is not None:
        Path(journal.path).write_bytes(found)
    monkeypatch.setattr(journal_command, "Journal", lambda: journal)
    assert journal_command.run(argparse.Namespace(device=device, json=False)) == 0
    assert capsys.readouterr().out == f"{journal.path} {said}\n"
