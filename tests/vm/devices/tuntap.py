"""tun and tap devices with a reader in this process, slow on demand."""

import fcntl
import os
import struct
import threading
import time
from contextlib import contextmanager

from .shell import load_modules, sh, works

# linux/if_tun.h
TUNSETIFF, TUNGETIFF, TUNGETFEATURES = 0x400454CA, 0x800454D2, 0x800454CF
IFF_TUN, IFF_TAP, IFF_NO_PI, IFF_MULTI_QUEUE = 0x0001, 0x0002, 0x1000, 0x0100
IFF_BACKPRESSURE = 0x0080
"""A full ring stops the TX queue instead of dropping (since 7.3; needs a qdisc)."""

ADDRESS, FAR_ADDRESS = "10.82.0.1", "10.82.0.2"


def features() -> int:
    """IFF_* flags that the kernel's tun driver knows."""
    load_modules("tun")
    descriptor = os.open("/dev/net/tun", os.O_RDWR)
    try:
        return struct.unpack("I", fcntl.ioctl(descriptor, TUNGETFEATURES, bytes(4)))[0]
    finally:
        os.close(descriptor)


class Reader(threading.Thread):
    """Reads packets from the device's descriptor, waiting `delay` seconds before each."""

    def __init__(self, descriptor: int, delay: float):
        super().__init__(daemon=True)
        self.descriptor = descriptor
        self.delay = delay
        self.packets = 0
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.is_set():
            if self.delay:
                time.sleep(self.delay)
            try:
                os.read(self.descriptor, 65536)
                self.packets += 1
            except BlockingIOError:
                time.sleep(0.001)

    def stop(self) -> None:
        self.stopping.set()
        self.join(10)


class TunDevice:
    """The open device: its name, what the kernel says its flags are, and the reader's count."""

    def __init__(self, name: str, kind: str, backpressure: bool, delay: float):
        self.name = name
        self.address = FAR_ADDRESS
        self.descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        flags = (IFF_TAP if kind == "tap" else IFF_TUN) | IFF_NO_PI | (IFF_BACKPRESSURE if backpressure else 0)
        fcntl.ioctl(self.descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
        self.flags = struct.unpack("16sH22x", fcntl.ioctl(self.descriptor, TUNGETIFF, bytes(40)))[1]
        self.reader = Reader(self.descriptor, delay)

    def close(self) -> None:
        """Stop reading; the device goes with its last descriptor."""
        self.reader.stop()
        os.close(self.descriptor)


@contextmanager
def tun_device(
    kind: str = "tun",
    backpressure: bool = False,
    delay: float = 0.002,
    ring: int = 100,
    qdisc: str = "pfifo limit 1000",
    name: str | None = None,
):
    """
    A tun or tap, up, with an address, in the namespace of this process; packets to `.address` go out through it.

    `delay`: seconds the reader sleeps before each packet. `ring`: tx_queue_len, which is the size of tun's ring.
    """
    load_modules("tun")
    device = TunDevice(name or f"{kind}0", kind, backpressure, delay)
    try:
        works(f"sysctl -qw net.ipv6.conf.{device.name}.disable_ipv6=1")
        sh(f"ip link set {device.name} txqueuelen {ring} up")
        sh(f"ip addr add {ADDRESS}/24 dev {device.name}")
        sh(f"tc qdisc replace dev {device.name} root {qdisc}")
        if kind == "tap":
            sh(f"ip neigh replace {FAR_ADDRESS} lladdr 02:00:00:00:82:02 dev {device.name} nud permanent")
        device.reader.start()
        yield device
    finally:
        device.close()
