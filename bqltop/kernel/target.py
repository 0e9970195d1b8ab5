"""Finding a device in the kernel's memory: the addresses that the measuring programs are specialised for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from bqltop.kernel.bpf import BpfError
from bqltop.kernel.btf import Btf, BtfError
from bqltop.kernel.memory import Memory
from bqltop.model import Namespace


class Ring(IntEnum):
    """The driver's ring as the snapshot program knows it (RING_* in programs/snapshot.c)."""

    NONE = 0
    VETH = 1
    TUN = 2
    USBNET = 3


@dataclass(frozen=True, slots=True)
class Target:
    """One net_device: addresses in kernel memory and what follows from its driver.

    ``net``, ``device``, ``txq``: its struct net, net_device and first netdev_queue; ``queues``: TX queues in use;
    ``peer``: the veth peer's net_device or 0; ``ring_base``/``ring_count``: where the rings are (veth: the peer's
    veth_rq array; tun: the tun_struct; usbnet: the struct usbnet). ``own_napi``: it has NAPI instances of its own.
    ``bql``: its driver was seen to use BQL.
    """

    net: int
    device: int
    ifindex: int
    txq: int
    queues: int
    ring: Ring = Ring.NONE
    ring_base: int = 0
    ring_count: int = 0
    peer: int = 0
    own_napi: bool = False
    bql: bool = False


def find(memory: Memory, namespace: Namespace, ifindex: int, driver: str | None, usb: bool = False) -> Target:
    """The device with this index in this namespace. Raises BpfError when there is none (any more)."""
    btf = Btf.vmlinux()
    net = memory.net(namespace)
    device = find_device(memory, btf, net, ifindex)

    def member(name: str) -> int:
        return memory.number(device + btf.offset("net_device", name), btf.member_size("net_device", name))

    txq, queues = member("_tx"), member("real_num_tx_queues")
    napi_list = device + btf.offset("net_device", "napi_list")
    ring, base, count, peer = _ring(memory, device, driver, usb)
    return Target(
        net=net,
        device=device,
        ifindex=ifindex,
        txq=txq,
        queues=queues,
        ring=ring,
        ring_base=base,
        ring_count=count,
        peer=peer,
        own_napi=memory.number(napi_list) != napi_list,
        bql=_charges_bql(memory, btf, txq, queues),
    )


def is_usbnet(driver: str) -> bool:
    """Whether a USB network driver is built on usbnet, whose list of submitted URBs we know: its module needs usbnet."""
    try:
        users = Path("/proc/modules").read_text()
    except OSError:
        users = ""  # a kernel without modules has no such file
    for line in users.splitlines():
        name, _, _, used_by, *_ = line.split()
        if name == "usbnet":
            return driver in used_by.split(",")
    return driver in USBNET_DRIVERS


USBNET_DRIVERS = {
    "aqc111", "asix", "ax88179_178a", "cdc_eem", "cdc_ether", "cdc_mbim", "cdc_ncm", "cdc_subset", "ch9200", "cx82310_eth",
    "dm9601", "gl620a", "huawei_cdc_ncm", "int51x1", "mcs7830", "net1080", "plusb", "qmi_wwan", "rndis_host",
    "sierra_net", "smsc75xx", "smsc95xx", "sr9700", "sr9800", "zaurus",
}  # fmt: skip
"""Drivers of drivers/net/usb built on usbnet, for kernels where they are built in and /proc/modules says nothing."""


def find_device(memory: Memory, btf: Btf, net: int, ifindex: int) -> int:
    """Walk the namespace's hash of interface indices (dev_index_hash, 256 lists: net/core/dev.h)."""
    link = btf.offset("net_device", "index_hlist")
    index = btf.offset("net_device", "ifindex")
    heads = memory.number(net + btf.offset("net", "dev_index_head"))
    node = memory.number(heads + (ifindex & 255) * 8)
    while node:
        if memory.number(node - link + index, 4) == ifindex:
            return node - link
        node = memory.number(node)
    raise BpfError(f"no device has index {ifindex} there any more")


def _charges_bql(memory: Memory, btf: Btf, txq: int, queues: int) -> bool:
    """Whether a packet was ever charged to any queue's BQL: drivers without BQL leave num_queued at 0."""
    size, offset = btf.size("netdev_queue"), btf.offset("netdev_queue", "dql.num_queued")
    return any(memory.number(txq + queue * size + offset, 4) for queue in range(queues))


def _private(btf: Btf, device: int) -> int:
    """The driver's data behind a net_device. Before net_device.priv existed (6.9) it began at the structure's size
    rounded up to 32 (netdev_priv(), NETDEV_ALIGN)."""
    if btf.has("net_device", "priv"):
        return device + btf.offset("net_device", "priv")
    return device + (btf.size("net_device") + 31) // 32 * 32


def _ring(memory: Memory, device: int, driver: str | None, usb: bool) -> tuple[Ring, int, int, int]:
    """(kind, address, number of rings, peer) of the rings the device's transmits go to."""
    try:
        if driver == "veth":
            return _veth_ring(memory, device)
        if driver == "tun":
            btf = Btf.module("tun")
            btf.offset("tun_file", "tx_ring")
            return Ring.TUN, _private(btf, device), 0, 0
        if usb:
            btf = Btf.module("usbnet")
            btf.offset("usbnet", "txq.qlen")
            return Ring.USBNET, _private(btf, device), 0, 0
    except BtfError:
        pass  # the module's types are not to be had: everything but the ring still is
    return Ring.NONE, 0, 0, 0


def _veth_ring(memory: Memory, device: int) -> tuple[Ring, int, int, int]:
    """A veth's packets go to the rings of its peer's receive queues."""
    btf = Btf.module("veth")
    peer = memory.number(_private(btf, device) + btf.offset("veth_priv", "peer"))
    if not peer:
        return Ring.NONE, 0, 0, 0
    rings = memory.number(_private(btf, peer) + btf.offset("veth_priv", "rq"))
    count = memory.number(peer + btf.offset("net_device", "num_rx_queues"), 4)
    return Ring.VETH, rings, count, peer
