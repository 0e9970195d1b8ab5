"""Renewing and moving away files: only ordinary ones, and never a trace of a failure."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from bqltop.files import must_be_ordinary, renew
from bqltop.recording import RecordingError
from bqltop.recording.writer import LineFile, Recorder


@pytest.fixture
def fifo(tmp_path):
    """What stands for /dev/null here, which a test as root must not put at risk."""
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def test_new_and_old_contents(tmp_path):
    path = tmp_path / "file"
    renew(path, b"one")
    renew(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_a_symbolic_link_stays_one(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    renew(link, b"one")
    assert link.is_symlink()
    assert (tmp_path / "file").read_bytes() == b"one"


def test_what_is_no_ordinary_file_stays_as_it_is(tmp_path, fifo):
    for path in (fifo, tmp_path, tmp_path / "..", tmp_path / "."):
        with pytest.raises(OSError, match=r"ordinary|directory"):
            renew(path, b"one")
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert list(tmp_path.iterdir()) == [fifo]
    must_be_ordinary(tmp_path / "not-there-yet")


def test_a_failing_rename_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        renew(tmp_path / "no" / "where", b"one")
    assert list(tmp_path.iterdir()) == []


def test_a_rotation_moves_neither_a_folder_nor_a_device_away(tmp_path, fifo):
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (fifo, folder):
        with pytest.raises(RecordingError, match="cannot record to"):
            Recorder(path, max_bytes=1000)
    assert sorted(tmp_path.iterdir()) == [fifo, folder]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_recording_that_cannot_be_begun_leaves_no_empty_file(tmp_path, monkeypatch):
    def full(self, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(LineFile, "_write", full)
    with pytest.raises(RecordingError, match="No space left"):
        Recorder(tmp_path / "x.gz")
    assert list(tmp_path.iterdir()) == []
