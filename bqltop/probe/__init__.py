"""Round trips on demand: ICMP echo from inside the device's namespace, timed by the kernel."""

from bqltop.probe.echoes import Echo, Echoes
from bqltop.probe.prober import ProbeError, Prober
from bqltop.probe.target import resolve_address

__all__ = ["Echo", "Echoes", "ProbeError", "Prober", "resolve_address"]
