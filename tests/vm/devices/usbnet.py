"""A usbnet device: a gadget and its host on the kernel's virtual USB bus (dummy_hcd), put together through configfs."""

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .shell import load_modules, namespace, read_sysfs, sh, wait_for, works

HOST_ADDRESS, GADGET_ADDRESS = "10.83.0.1", "10.83.0.2"
NET_CLASS, UDC_CLASS = Path("/sys/class/net"), Path("/sys/class/udc")
CONFIGFS = Path("/sys/kernel/config")

# The gadget function, and the module and USB product id (drivers/usb/gadget/legacy/ether.c) that bring its host driver.
FUNCTIONS = {
    "ecm": ("usb_f_ecm", "0xa4a1"),  # host: cdc_ether
    "ncm": ("usb_f_ncm", "0xa4a1"),  # host: cdc_ncm
    "eem": ("usb_f_eem", "0xa4a1"),  # host: cdc_eem
    "rndis": ("usb_f_rndis", "0xa4a2"),  # host: rndis_host
    "geth": ("usb_f_ecm_subset", "0xa4a2"),  # host: cdc_subset
}


@dataclass(frozen=True)
class UsbPair:
    """`device` (a usbnet driver, namespace of this process) sends to `gadget` in `gadget_netns` at `address`."""

    device: str
    gadget: str
    gadget_netns: str = "gadget"
    address: str = GADGET_ADDRESS


def available() -> str | None:
    """None when the kernel can make such a pair, else what is missing."""
    load_modules("usbnet", "cdc_ether", "cdc_ncm", "cdc_eem", "cdc_subset", "rndis_host", "dummy_hcd", "libcomposite")
    if not UDC_CLASS.is_dir() or not any(UDC_CLASS.iterdir()):
        return "the kernel has no dummy_hcd"
    if not CONFIGFS.is_dir():
        return "the kernel has no configfs"
    return None


@contextmanager
def usb_gadget(function: str):
    """Plug in a gadget with one network function; gives (host's device, gadget's device), both down and without address."""
    module, product = FUNCTIONS[function]
    load_modules(module)
    if not os.path.ismount(CONFIGFS):
        sh(f"mount -t configfs configfs {CONFIGFS}")
    with ExitStack() as stack:
        gadget = _folder(stack, CONFIGFS / "usb_gadget/bqltop")
        (gadget / "idVendor").write_text("0x0525")
        (gadget / "idProduct").write_text(product)
        part = _folder(stack, gadget / "functions" / f"{function}.0")
        (part / "host_addr").write_text("02:00:00:00:83:01")
        (part / "dev_addr").write_text("02:00:00:00:83:02")
        configuration = _folder(stack, gadget / "configs/c.1")
        (configuration / part.name).symlink_to(part)
        stack.callback((configuration / part.name).unlink)
        (gadget / "UDC").write_text(next(UDC_CLASS.iterdir()).name)
        stack.callback((gadget / "UDC").write_text, "\n")
        device = wait_for(_host_device, 10, "usbnet device")
        yield device, (part / "ifname").read_text().strip()


def _folder(stack: ExitStack, path: Path) -> Path:
    """Make a configfs folder that goes when the stack does."""
    path.mkdir()
    stack.callback(path.rmdir)
    return path


def _host_device() -> str | None:
    """The network device that a driver on the USB bus made."""
    for path in NET_CLASS.iterdir():
        if "/usb/drivers/" in str((path / "device/driver").resolve()):
            return path.name
    return None


def _connect(device: str, gadget: str, netns: str) -> None:
    """
    Bring both ends up until the host has carrier.

    The host side goes first, and the gadget's one "connected" notice is sometimes lost: then it is toggled.
    """
    sh(f"ip link set {device} up")

    def carrier() -> bool:
        sh(f"ip -n {netns} link set {gadget} down")
        sh(f"ip -n {netns} link set {gadget} up")
        try:
            wait_for(lambda: read_sysfs(device, "carrier") == ["1"], 1, "carrier")
        except AssertionError:
            return False
        return True

    wait_for(carrier, 20, f"carrier on {device}")


@contextmanager
def usb_pair(function: str = "ecm", qdisc: str = "pfifo limit 1000"):
    """Make the pair, connected and with addresses; RuntimeError where the kernel has no virtual USB bus."""
    if missing := available():
        raise RuntimeError(missing)
    netns = UsbPair.gadget_netns
    with namespace(netns), usb_gadget(function) as (device, gadget):
        sh(f"ip link set {gadget} netns {netns}")
        sh(f"ip -n {netns} addr add {GADGET_ADDRESS}/24 dev {gadget}")
        works(f"sysctl -qw net.ipv6.conf.{device}.disable_ipv6=1")  # or it sends by itself while a test counts
        sh(f"ip addr add {HOST_ADDRESS}/24 dev {device}")
        _connect(device, gadget, netns)
        sh(f"tc qdisc replace dev {device} root {qdisc}")
        yield UsbPair(device, gadget)
