"""Who holds the queues of a tun or tap, and whether packets are taken out, looked at now and then."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bqltop.kernel import tun
from bqltop.model import Device, LinkStats, Namespace, QueueSample, TunQueueSample

EVERY_S = 1.0
SHARE = 100
"""A look costs more the more processes there are: it may take one part in this many of a CPU."""


class Holders:
    """The holders of one device's queues; empty for what is no tun or tap."""

    def __init__(self):
        self._due = 0.0
        self._found: tuple[TunQueueSample, ...] = ()
        self._taken: int | None = None

    def read(
        self, device: Device, where: Namespace, link: LinkStats, queues: Sequence[QueueSample]
    ) -> tuple[TunQueueSample, ...]:
        """What was found at the latest look, which may be now."""
        started = time.thread_time()
        if device.kind != "tun" or time.monotonic() < self._due:
            return self._found if device.kind == "tun" else ()
        takes = None
        if self._taken is not None:
            takes = tun.takes_packets(self._taken, link.tx_packets, sum(queue.ring_used or 0 for queue in queues))
        self._taken = link.tx_packets
        self._found = tuple(
            TunQueueSample(
                pid=queue.pid,
                process=queue.process,
                state=queue.state,
                vhost=queue.vhost,
                attached=queue.attached,
                takes=takes,
                flags=tuple(tun.flag_words(queue.flags or device.tun_flags or 0)),
                certain=queue.certain,
            )
            for queue in tun.owners(device.name, where.inode)
        )
        self._due = time.monotonic() + max(EVERY_S, (time.thread_time() - started) * SHARE)
        return self._found
