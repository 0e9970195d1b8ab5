"""The project's own lab (bqltop/lab), with a consumer that is slow enough even where the whole machine is emulated."""

from bqltop.lab import Lab, LabSpec

from .shell import load_modules

SLOW = 300
"""Filter rules at the receiver. On a real machine it takes 5000 for a full ring."""


def veth_lab(**spec) -> Lab:
    """A Lab, to be entered; arguments as of LabSpec, with `rules` at SLOW unless given."""
    load_modules("veth", "ip_tables", "iptable_raw", "nf_tables")
    return Lab(LabSpec(**{"rules": SLOW} | spec))
