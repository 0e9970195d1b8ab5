"""A veth pair, a flood and a slow consumer in namespaces of their own; needs root, leaves nothing behind."""

from bqltop.lab.devices import End, Pair, dummy, ifb, tun
from bqltop.lab.flooder import FloodResult
from bqltop.lab.lab import Lab, LabSpec
from bqltop.lab.scope import LabError, LabUnavailable, Scope, in_netns

__all__ = [
    "End",
    "FloodResult",
    "Lab",
    "LabError",
    "LabSpec",
    "LabUnavailable",
    "Pair",
    "Scope",
    "dummy",
    "ifb",
    "in_netns",
    "tun",
]
