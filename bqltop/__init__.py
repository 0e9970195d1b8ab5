"""bqltop: a live view of the Linux network transmit path, from the qdisc to the driver's ring."""

__version__ = "0.1.0"
