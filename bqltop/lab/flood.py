"""A UDP flood in a process of its own, as fast as `sendmmsg` goes, which knows exactly how many packets it sent.

Run by path (`python -I -S flood.py NETNS '{"address": ...}'`), so it imports nothing but the standard library and starts
in a few milliseconds. It says `ready` on its standard output, begins when a byte arrives on its standard input, stops after
`seconds`, on a second byte or when its standard input is closed (so it never outlives the process that holds the other
end), and then writes one JSON object: sent (packets), errors (calls that failed), seconds.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import threading
import time

BATCH = 64  # messages per sendmmsg: beyond this the cost of the system call no longer shows
SEND_BUFFER = 1 << 28  # bytes of skb memory a socket may hold: the qdisc shall drop, not the socket wait
CLONE_NEWNET = 0x40000000  # linux/sched.h

libc = ctypes.CDLL(None, use_errno=True)


class IoVec(ctypes.Structure):
    """struct iovec."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class MsgHdr(ctypes.Structure):
    """struct msghdr of 64-bit and 32-bit Linux alike (size_t and pointers are the native ones)."""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("namelen", ctypes.c_uint32),
        ("iov", ctypes.POINTER(IoVec)),
        ("iovlen", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("controllen", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


class MMsgHdr(ctypes.Structure):
    """struct mmsghdr."""

    _fields_ = [("hdr", MsgHdr), ("len", ctypes.c_uint)]


def enter_netns(path: str) -> None:
    """Moves this process into a network namespace. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(fd, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {path}")
    finally:
        os.close(fd)


def message_vector(packet_size: int, count: int) -> ctypes.Array:
    """`count` messages that all point to the same payload of `packet_size` bytes; for connected sockets."""
    payload = ctypes.create_string_buffer((b"bqltop" * (packet_size // 6 + 1))[:packet_size], max(1, packet_size))
    iov = IoVec(ctypes.cast(payload, ctypes.c_void_p), packet_size)
    vector = (MMsgHdr * count)()
    for message in vector:
        message.hdr.iov = ctypes.pointer(iov)
        message.hdr.iovlen = 1
    vector.keep_alive = (payload, iov)  # ctypes keeps what a pointer came from, not what a cast address points to
    return vector


def flow_sockets(address: str, first_port: int, flows: int) -> list[socket.socket]:
    """One connected socket per flow: connected, because the route is then looked up once and not per packet."""
    sockets = []
    for flow in range(flows):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, 32, SEND_BUFFER)  # SO_SNDBUFFORCE, asm-generic/socket.h
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        sock.connect((address, first_port + flow))
        sockets.append(sock)
    return sockets


class Flood:
    """Sends until told to stop, and counts.

    options: address, first_port, flows, packet_size (bytes of payload), burst (packets, 0 = no pauses),
    pause_ms (between bursts), pps (packets per second, 0 = unlimited), seconds (null = until stopped).
    """

    def __init__(self, options: dict) -> None:
        self.options = options
        self.sockets = flow_sockets(options["address"], options["first_port"], options["flows"])
        self.vector = message_vector(options["packet_size"], BATCH)
        self.stopping = threading.Event()
        self.sent = 0
        self.errors = 0
        self._flow = 0

    def send(self, count: int) -> None:
        """Sends up to `count` (at most BATCH) packets on the next flow."""
        fd = self.sockets[self._flow].fileno()
        self._flow = (self._flow + 1) % len(self.sockets)
        done = libc.sendmmsg(fd, self.vector, count, 0)
        if done > 0:
            self.sent += done
        else:
            self.errors += 1

    def continuous(self, deadline: float) -> None:
        """No pauses."""
        while not self.stopping.is_set() and time.monotonic() < deadline:
            self.send(BATCH)

    def bursts(self, deadline: float) -> None:
        """`burst` packets in a row over the flows in turn, then `pause_ms` of silence."""
        burst, pause = self.options["burst"], self.options["pause_ms"] / 1000
        share = max(1, min(BATCH, burst // len(self.sockets)))
        while not self.stopping.is_set() and time.monotonic() < deadline:
            left = burst
            while left > 0 and not self.stopping.is_set():
                self.send(min(share, left))
                left -= share
            self.stopping.wait(min(pause, max(0.0, deadline - time.monotonic())))

    def paced(self, deadline: float) -> None:
        """`pps` packets per second, in batches about a millisecond apart."""
        pps = self.options["pps"]
        start, due = time.monotonic(), 0
        while not self.stopping.is_set() and (now := time.monotonic()) < deadline:
            # After being descheduled, at most 10 ms of packets are made up for: a pacer must not turn into a burst.
            target = int((now - start) * pps)
            due = max(due, target - max(BATCH, pps // 100))
            while due < target and not self.stopping.is_set():
                count = min(BATCH, target - due)
                self.send(count)
                due += count
            self.stopping.wait(min(0.001, max(0.0, deadline - time.monotonic())))

    def run(self) -> dict:
        """Floods, and returns what was sent."""
        seconds = self.options["seconds"]
        start = time.monotonic()
        deadline = float("inf") if seconds is None else start + seconds
        kind = self.bursts if self.options["burst"] else self.paced if self.options["pps"] else self.continuous
        kind(deadline)
        return {"sent": self.sent, "errors": self.errors, "seconds": time.monotonic() - start}


def stop_on_input(flood: Flood) -> None:
    """Waits for one more byte on standard input, or for its other end to close."""
    os.read(0, 1)
    flood.stopping.set()


def main() -> None:
    enter_netns(sys.argv[1])
    flood = Flood(json.loads(sys.argv[2]))
    os.write(1, b"ready\n")
    if not os.read(0, 1):
        return
    threading.Thread(target=stop_on_input, args=(flood,), daemon=True).start()
    result = flood.run()
    try:
        os.write(1, json.dumps(result).encode() + b"\n")
    except BrokenPipeError:
        return  # nobody left who wants to know


if __name__ == "__main__":
    main()
