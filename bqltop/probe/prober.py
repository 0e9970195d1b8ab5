"""The thread that sends the echoes: a raw ICMP socket of the device's namespace, bound to the device."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import selectors
import socket
import struct
import threading
import time

from bqltop.fault import Fault
from bqltop.kernel import netns
from bqltop.model import Namespace, ProbeSample
from bqltop.probe import icmp
from bqltop.probe.echoes import Echo, Echoes

INTERVAL_S = 0.2
"""Five a second: enough for a median in a few seconds, too few to be a load."""
SHORTEST_S = 0.1
TIMEOUT_S = 3.0
AGAIN_S = 1.0
"""Pause before the socket is opened anew after the device or the way has gone."""
NO_ERROR_QUEUE = (errno.EAGAIN, errno.EWOULDBLOCK)
SOL_RAW, ICMP_FILTER, ICMP6_FILTER = 255, 1, 1


class ProbeError(Fault, ValueError):
    """An address that cannot be probed, or no right to: one plain line."""


class Prober:
    """Echoes to ``address`` through ``device``, ``interval_s`` apart, from ``start`` to ``close``. Everything else may
    be called from any thread. What goes wrong on the way is in ``sample().error``; it goes on trying."""

    def __init__(self, namespace: Namespace, device: str, address: str, interval_s: float = INTERVAL_S,
                 timeout_s: float = TIMEOUT_S):  # fmt: skip
        self.namespace, self.device, self.address = namespace, device, address
        self._family, self._target = _parse(address)
        self._interval = max(SHORTEST_S, interval_s)
        self._echoes = Echoes(round(timeout_s * 1e9))
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._error: str | None = None
        self._thread: threading.Thread | None = None
        self._identifier = int.from_bytes(os.urandom(2))
        self._token = os.urandom(8)

    def start(self) -> Prober:
        """Open the socket and begin. Raises ProbeError where it must not be opened, NetnsError."""
        sock = self._open()
        self._thread = threading.Thread(target=self._run, args=(sock,), name="bqltop-probe", daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """End it; returns when the thread has gone."""
        self._closing.set()
        if self._thread:
            self._thread.join()
            self._thread = None

    def __enter__(self) -> Prober:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def sample(self) -> ProbeSample:
        """The figures of the last minute."""
        with self._lock:
            return self._echoes.sample(self.address, self._error)

    def since(self, monotonic_ns: int) -> list[Echo]:
        """Echoes sent at or after this moment whose end is known."""
        with self._lock:
            return self._echoes.since(monotonic_ns)

    def _open(self) -> socket.socket:
        four = self._family == socket.AF_INET
        protocol = socket.IPPROTO_ICMP if four else socket.IPPROTO_ICMPV6
        try:
            sock = netns.socket_in(self.namespace, self._family, socket.SOCK_RAW, protocol)
        except PermissionError:
            raise ProbeError("the probe needs the right to open raw sockets (run it as root)") from None
        try:
            self._prepare(sock, four)
        except OSError as error:
            sock.close()
            raise ProbeError(f"{self.address} cannot be probed through {self.device}: {error.strerror}") from None
        return sock

    def _prepare(self, sock: socket.socket, four: bool) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, os.fsencode(self.device) + b"\0")
        sock.setsockopt(socket.SOL_SOCKET, icmp.SO_TIMESTAMPING, icmp.FLAGS)
        if four:
            passed = ~(1 << icmp.REPLY[socket.AF_INET]) & 0xFFFFFFFF
            sock.setsockopt(SOL_RAW, ICMP_FILTER, struct.pack("=I", passed))
        else:
            block = [0xFFFFFFFF] * 8
            block[icmp.REPLY[socket.AF_INET6] >> 5] &= ~(1 << (icmp.REPLY[socket.AF_INET6] & 31))
            sock.setsockopt(socket.IPPROTO_ICMPV6, ICMP6_FILTER, struct.pack("=8I", *block))

    def _run(self, sock: socket.socket | None) -> None:
        first = 0
        while not self._closing.is_set():
            if sock is None:
                try:
                    sock = self._open()
                except (ProbeError, netns.NetnsError, OSError) as error:
                    self._say(str(error))
                    self._closing.wait(AGAIN_S)
                    continue
            try:
                first = self._probe(sock, first)
            except OSError as error:
                self._say(f"{self.address} cannot be probed through {self.device}: {error.strerror}")
                self._closing.wait(AGAIN_S)
            finally:
                sock.close()
                sock = None

    def _say(self, error: str | None) -> None:
        with self._lock:
            self._error = error

    def _probe(self, sock: socket.socket, first: int) -> int:
        """Send and receive until the end or an error. The kernel numbers the requests of a socket from 0; ours go on
        from ``first``. Returns the next sequence number."""
        sequence, due = first, time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_READ)
            while not self._closing.is_set():
                now = time.monotonic()
                if now >= due:
                    self._send(sock, sequence)
                    sequence = (sequence + 1) & 0xFFFF
                    due = max(due + self._interval, now)
                selector.select(min(0.1, max(0.0, due - time.monotonic())))
                self._hear_stamps(sock, first)
                self._hear_replies(sock)
                with self._lock:
                    self._echoes.expire(time.monotonic_ns())
        return sequence

    def _send(self, sock: socket.socket, sequence: int) -> None:
        with self._lock:
            self._echoes.request(sequence, time.monotonic_ns())
        packet = icmp.request(self._family, self._identifier, sequence, self._token)
        try:
            sock.sendto(packet, self._target)
        except BlockingIOError:
            pass  # the qdisc holds all that this socket may have: lost, as it will turn out
        except OSError as error:
            if error.errno != errno.ENOBUFS:  # the qdisc dropped it: lost
                raise
        self._say(None)

    def _hear_stamps(self, sock: socket.socket, first: int) -> None:
        while True:
            try:
                _, ancillary, _, _ = sock.recvmsg(512, 512, socket.MSG_ERRQUEUE)
            except OSError as error:
                if error.errno in NO_ERROR_QUEUE:
                    return
                raise
            found = icmp.sent_at(ancillary)
            if found:
                with self._lock:
                    self._echoes.stamp((first + found.number) & 0xFFFF, found.time_ns, found.scheduled)

    def _hear_replies(self, sock: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                packet, ancillary, _, _ = sock.recvmsg(2048, 512)
                now = time.monotonic_ns()
                sequence = icmp.reply_sequence(self._family, packet, self._identifier, self._token)
                if sequence is not None:
                    with self._lock:
                        self._echoes.reply(sequence, now, icmp.received_at(ancillary))


def _parse(address: str) -> tuple[int, tuple]:
    """(family, what sendto takes). A zone (fe80::1%eth0) is not needed: the socket is bound to the device."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        raise ProbeError(f"{address!r} is not an IPv4 or IPv6 address") from None
    if parsed.is_multicast or parsed.is_unspecified:
        raise ProbeError(f"{address} is not the address of one host")
    if parsed.version == 4:
        return socket.AF_INET, (str(parsed), 0)
    return socket.AF_INET6, (str(parsed), 0, 0, 0)
