"""The tuner over a kernel that refuses on demand: every errno, several queues, trials, taking back, leaving."""

import errno
import os

import pytest
from fake_access import FakeAccess

from bqltop.tuning.journal import Journal
from bqltop.tuning.knobs import BadValue
from bqltop.tuning.planner import READ_ONLY
from bqltop.tuning.tuner import Tuner

KERNEL_SAYS = {
    errno.EPERM: "Operation not permitted", errno.EACCES: "Permission denied", errno.EINVAL: "Invalid argument",
    errno.ERANGE: "Numerical result out of range", errno.EOPNOTSUPP: "Operation not supported",
    errno.ENODEV: "No such device", errno.EBUSY: "Device or resource busy", errno.ENOMEM: "Cannot allocate memory",
    errno.EROFS: "Read-only file system", errno.ENOENT: "No such file or directory", errno.EIO: "Input/output error",
    errno.EINTR: "Interrupted system call", errno.ENETDOWN: "Network is down", errno.ETIMEDOUT: "Connection timed out",
}  # fmt: skip


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def journal(tmp_path):
    return Journal(str(tmp_path))


@pytest.fixture
def tuner(journal, clock):
    with Tuner("lo", journal=journal, clock=clock, access=FakeAccess) as tuner:
        yield tuner


def apply(tuner, trial=None, queue=None, **words):
    (plan,) = tuner.plan({name.replace("__", "-"): str(value) for name, value in words.items()}, queue)
    return tuner.apply(plan, trial)


def test_one_queue_and_all_queues(tuner):
    one = apply(tuner, queue=2, limit_min=8)
    assert one.changed
    assert one.sentence == "limit_min of queue 2: 0 -> 8; pending until the next completion"
    every = apply(tuner, limit_min=16)
    assert every.kept == (16,) * 4
    assert [reading.value for reading in every.old] == [0, 0, 8, 0]
    assert every.sentence.startswith("limit_min of 4 queues: 0..8 -> 16")
    tuner.undo()
    assert tuner.own.values["limit_min", 2] == 8
    tuner.undo()
    assert [tuner.own.values["limit_min", queue] for queue in range(4)] == [0] * 4
    assert tuner.undo() is None


def test_what_the_kernel_keeps_is_said(tuner):
    tuner.own.keeps = lambda value: value + 2
    change = apply(tuner, tx__usecs=30)
    assert change.note == "asked 30, kernel keeps 32"
    assert change.kept == (32,)


def test_a_limit_that_already_fits_is_not_pending(tuner):
    tuner.own.limits = dict.fromkeys(range(4), 500)
    assert not apply(tuner, limit_min=8).pending
    assert apply(tuner, limit_max=100).pending
    assert not apply(tuner, limit_max=600).pending


@pytest.mark.parametrize("number", KERNEL_SAYS)
def test_a_refusal_shows_errno_the_kernels_words_and_the_old_value(tuner, journal, number):
    tuner.own.refuse["tx-usecs", None] = OSError(number, os.strerror(number))
    change = apply(tuner, tx__usecs=99)
    assert change.refused
    assert not change.changed
    assert (change.errno, change.text) == (number, KERNEL_SAYS[number])
    assert change.sentence == f"tx-usecs stays 50: {KERNEL_SAYS[number]} (errno {number})"
    assert tuner.changes == []
    assert tuner.own.values["tx-usecs", None] == 50
    (entry,) = journal.entries()
    assert (entry.state, entry.errno, entry.text) == ("refused", number, KERNEL_SAYS[number])


def test_several_queues_are_all_or_none(tuner):
    tuner.own.refuse["limit_min", 2] = OSError(errno.EINVAL, "Invalid argument")
    change = apply(tuner, limit_min=8)
    assert change.refused
    assert change.note is None
    assert [tuner.own.values["limit_min", queue] for queue in range(4)] == [0] * 4


def test_a_roll_back_that_fails_is_said(tuner):
    def refuse_the_way_back(name):
        if name == "after write 0":
            tuner.own.refuse |= {("limit_min", queue): OSError(errno.EIO, "Input/output error") for queue in (0, 1)}

    tuner._step = refuse_the_way_back
    change = apply(tuner, limit_min=8)
    assert change.refused
    assert change.note == "queue 0 could not be set back: Input/output error"


def test_a_device_that_goes_away_between_plan_and_change(tuner):
    (plan,) = tuner.plan({"tx-usecs": "99"})
    tuner.own.gone = True
    change = tuner.apply(plan)
    assert (change.refused, change.errno) == (True, errno.ENODEV)


def test_a_device_that_goes_away_between_reading_and_writing(tuner):
    def vanish(name):
        tuner.own.gone = tuner.own.gone or name == "after intent"

    tuner._step = vanish
    change = apply(tuner, tx__usecs=99)
    assert (change.refused, change.errno, change.text) == (True, errno.ENODEV, "No such device")


def test_a_device_that_goes_away_between_writing_and_reading_back(tuner):
    def vanish(name):
        tuner.own.gone = tuner.own.gone or name == "after write 0"

    tuner._step = vanish
    change = apply(tuner, tx__usecs=99)
    assert not change.refused
    assert change.note == "written, but not read back: No such device"
    assert change.sentence == "tx-usecs: 50 -> 99 (not read back); written, but not read back: No such device"
    back = tuner.undo()
    assert back.errno == errno.ENODEV
    assert tuner.changes == []


def test_without_a_journal_that_can_be_written_nothing_is_changed(tuner, journal):
    os.rmdir(journal.folder)
    with open(journal.folder, "w"):
        pass
    change = apply(tuner, tx__usecs=99)
    assert change.refused
    assert "journal" in change.text
    assert "\n" not in change.text
    assert tuner.own.writes == []


def test_a_journal_that_breaks_after_the_write_is_said_and_taking_back_still_works(tuner, journal, monkeypatch):
    def broken(name):
        if name == "after write 0":
            monkeypatch.setattr(journal, "path", "/proc/no/such/file")

    tuner._step = broken
    change = apply(tuner, tx__usecs=99)
    assert change.changed
    assert "cannot be written" in change.note
    assert not tuner.undo().refused
    assert tuner.own.values["tx-usecs", None] == 50


def test_what_somebody_else_set_since_is_left_alone_unless_forced(tuner):
    apply(tuner, tx__usecs=99)
    tuner.own.values["tx-usecs", None] = 7
    back = tuner.undo()
    assert back.refused
    assert back.text == "it has been set to 7 since"
    assert len(tuner.changes) == 1
    assert not tuner.undo(force=True).refused
    assert tuner.own.values["tx-usecs", None] == 50


def test_undo_all_takes_the_latest_back_first(tuner):
    apply(tuner, tx__usecs=60)
    apply(tuner, tx__usecs=70)
    apply(tuner, ring__tx=512)
    assert [one.plan.knob.id for one in tuner.undo_all()] == ["ring-tx", "tx-usecs", "tx-usecs"]
    assert tuner.own.values["tx-usecs", None] == 50


def test_setting_what_it_is_already_writes_nothing(tuner, journal):
    change = apply(tuner, tx__usecs=50)
    assert (change.changed, change.note) == (False, "that is what it was")
    assert tuner.own.writes == []
    assert journal.entries() == []


def test_a_trial_reverts_by_itself_unless_kept(tuner, clock):
    first, second = apply(tuner, trial=10, tx__usecs=60), apply(tuner, trial=10, ring__tx=512)
    assert first.trial_until == 110.0
    assert tuner.tick() == []
    tuner.keep(second)
    clock.now = 110.0
    (back,) = tuner.tick()
    assert back.plan.knob.id == "tx-usecs"
    assert tuner.own.values["tx-usecs", None] == 50
    assert tuner.own.values["ring-tx", None] == 512
    assert tuner.tick() == []


def test_a_trial_on_a_trial_leads_back_to_before_the_first(tuner, clock, journal):
    apply(tuner, trial=10, tx__usecs=60)
    clock.now = 105.0
    apply(tuner, trial=10, tx__usecs=70)
    clock.now = 111.0
    assert tuner.tick() == []
    clock.now = 115.0
    (back,) = tuner.tick()
    assert back.kept == (50,)
    assert {entry.state for entry in journal.entries() if not entry.undoes} == {"undone"}


def test_a_trial_that_cannot_be_taken_back_is_tried_once(tuner, clock):
    apply(tuner, trial=10, tx__usecs=60)
    tuner.own.refuse["tx-usecs", None] = OSError(errno.EBUSY, "Device or resource busy")
    clock.now = 111.0
    (back,) = tuner.tick()
    assert back.refused
    assert tuner.tick() == []
    assert len(tuner.changes) == 1


@pytest.mark.parametrize(
    ("policy", "usecs", "ring", "states"),
    [("revert", 50, 256, {"undone"}), ("keep", 60, 256, {"kept", "undone"}), (None, 60, 256, {"done", "undone"})],
)
def test_leaving(tuner, journal, policy, usecs, ring, states):
    apply(tuner, tx__usecs=60)
    apply(tuner, trial=10, ring__tx=512)
    tuner.leave(policy)
    assert tuner.leave("revert") == []
    assert tuner.own.values["tx-usecs", None] == usecs
    assert tuner.own.values["ring-tx", None] == ring
    assert {entry.state for entry in journal.entries() if not entry.undoes} == states


def test_read_only_is_readable_and_refuses_with_the_reason(journal):
    with Tuner("lo", journal=journal, access=FakeAccess, read_only=True) as tuner:
        assert {setting.why_not for setting in tuner.knobs()} == {READ_ONLY}
        change = apply(tuner, tx__usecs=60)
        assert change.text == READ_ONLY
        assert tuner.own.writes == []


def test_a_knob_the_driver_lacks_is_refused_before_the_write(tuner):
    change = apply(tuner, rx__usecs=5)
    assert change.sentence == "rx-usecs: the driver does not have it"


@pytest.mark.parametrize(
    ("assignment", "queue", "words"),
    [
        ({"limitmin": "8"}, None, "did you mean limit_min"),
        ({"limit_min": "0x8"}, None, "whole number"),
        ({"limit_min": "8"}, 9, "no TX queue 9"),
        ({"peer-gro": "on"}, None, "no peer"),
    ],
)
def test_bad_input_is_one_line(tuner, assignment, queue, words):
    with pytest.raises(BadValue, match=words) as caught:
        tuner.plan(assignment, queue)
    assert "\n" not in str(caught.value)


def test_limit_min_above_limit_max_is_warned_of_also_within_one_plan(tuner):
    (plan,) = tuner.plan({"limit_min": "2000"})
    assert "above limit_max 1000" in plan.warnings[0]
    assert tuner.plan({"limit_min": "8"})[0].warnings == ()
    lower, _ = tuner.plan({"limit_min": "8", "limit_max": "4"})
    assert "above limit_max 4" in lower.warnings[0]
    raise_both = tuner.plan({"limit_min": "2000", "limit_max": "max"})
    assert all(not plan.warnings for plan in raise_both)


def test_adaptive_and_cutting_are_said(tuner):
    tuner.own.values["adaptive-tx", None] = 1
    assert "by itself" in tuner.plan({"tx-usecs": "9"})[0].warnings[0]
    assert "reset the link" in tuner.plan({"ring-tx": "512"})[0].cuts_traffic
    assert tuner.plan({"tx-usecs": "9"})[0].cuts_traffic is None


def test_somebody_elses_changes_are_events_and_ours_are_not(tuner):
    assert tuner.poll_foreign() == []
    apply(tuner, tx__usecs=60)
    assert tuner.poll_foreign() == []
    tuner.own.values["tx-usecs", None] = 7
    (event,) = tuner.poll_foreign()
    assert (event.kind, event.text) == ("setting", "somebody set tx-usecs: 60 -> 7")
    assert tuner.poll_foreign() == []
