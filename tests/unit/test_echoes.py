"""Echoes without a network: messages, matching, figures."""

import ipaddress
import socket
import struct

import pytest

from bqltop.probe import icmp
from bqltop.probe.echoes import KEEP_S, Echoes, average, quantile
from bqltop.probe.prober import ProbeError, Prober
from bqltop.probe.target import choose

MS = 1_000_000
TOKEN = b"8 bytes."


def test_the_checksum_is_the_one_of_rfc_1071():
    assert icmp.checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0x220D
    packet = icmp.request(socket.AF_INET, 7, 1, TOKEN)
    assert icmp.checksum(packet) == 0


def reply(family: int, identifier: int, sequence: int, token: bytes) -> bytes:
    packet = bytearray(icmp.request(family, identifier, sequence, token))
    packet[0] = icmp.REPLY[family]
    return bytes(20 if family == socket.AF_INET else 0).replace(b"\0", b"\x45", 1) + bytes(packet)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_only_our_own_replies_are_taken(family):
    ours = reply(family, 7, 300, TOKEN)
    assert icmp.reply_sequence(family, ours, 7, TOKEN) == 300
    assert icmp.reply_sequence(family, ours, 8, TOKEN) is None
    assert icmp.reply_sequence(family, ours, 7, b"8 others") is None
    assert icmp.reply_sequence(family, ours[:12], 7, TOKEN) is None
    assert icmp.reply_sequence(family, b"", 7, TOKEN) is None
    assert icmp.reply_sequence(family, icmp.request(family, 7, 300, TOKEN), 7, TOKEN) is None


def stamp(info: int, number: int, time_ns: int, origin: int = icmp.SO_EE_ORIGIN_TIMESTAMPING) -> list:
    times = struct.pack("=qqqqqq", time_ns // 10**9, time_ns % 10**9, 0, 0, 0, 0)
    error = struct.pack("=IBBBBII", 42, origin, 0, 0, 0, info, number)
    return [(socket.SOL_SOCKET, icmp.SO_TIMESTAMPING, times), (socket.IPPROTO_IP, icmp.IP_RECVERR, error)]


def test_timestamps_of_the_error_queue():
    assert icmp.sent_at(stamp(1, 5, 1_000_000_007)) == icmp.Sent(5, 1_000_000_007, True)
    assert icmp.sent_at(stamp(0, 5, 3)) == icmp.Sent(5, 3, False)
    assert icmp.sent_at(stamp(0, 5, 3, origin=2)) is None  # an ICMP error
    assert icmp.sent_at([]) is None
    assert icmp.received_at(stamp(0, 5, 77)) == 77
    assert icmp.received_at([]) is None


def echoed(echoes: Echoes, sequence: int, sent_ms: int, rtt_ms: int, qdisc_ms: int = 1) -> None:
    echoes.request(sequence, sent_ms * MS)
    echoes.stamp(sequence, 5000 * MS, scheduled=True)
    echoes.stamp(sequence, (5000 + qdisc_ms) * MS, scheduled=False)
    echoes.reply(sequence, (sent_ms + rtt_ms + 1) * MS, (5000 + rtt_ms) * MS)


def test_figures_are_those_of_the_kernels_timestamps():
    echoes = Echoes(timeout_ns=1000 * MS)
    for sequence in range(100):
        echoed(echoes, sequence, sequence * 10, sequence + 1)
    sample = echoes.sample("198.18.0.2")
    assert (sample.sent, sample.received, sample.lost) == (100, 100, 0)
    assert (sample.rtt_min_ns, sample.rtt_avg_ns, sample.rtt_max_ns) == (MS, 50.5 * MS, 100 * MS)
    assert (sample.rtt_p50_ns, sample.rtt_p99_ns, sample.rtt_last_ns) == (50 * MS, 99 * MS, 100 * MS)
    assert (sample.qdisc_avg_ns, sample.qdisc_p99_ns) == (MS, MS)
    assert len(echoes.since(500 * MS)) == 50


def test_a_step_of_the_kernels_clock_is_no_round_trip():
    echoes = Echoes(timeout_ns=1000 * MS)
    echoes.request(1, 0)
    echoes.stamp(1, 3_600_000 * MS, scheduled=True)
    echoes.stamp(1, 10 * MS, scheduled=False)
    found = echoes.reply(1, 7 * MS, 5 * MS)
    assert (found.rtt_ns, found.qdisc_ns) == (7 * MS, None)


def test_the_last_hand_over_to_a_busy_driver_ends_the_wait():
    echoes = Echoes(timeout_ns=1000 * MS)
    echoes.request(1, 0)
    echoes.stamp(1, 100 * MS, scheduled=True)
    for ms in (101, 104, 109):
        echoes.stamp(1, ms * MS, scheduled=False)
    assert echoes.reply(1, 20 * MS, 119 * MS).qdisc_ns == 9 * MS


def test_what_has_no_reply_in_time_is_lost_and_a_late_reply_is_nothing():
    echoes = Echoes(timeout_ns=100 * MS)
    echoes.request(1, 0)
    assert echoes.expire(100 * MS) == 0
    assert echoes.expire(101 * MS) == 1
    assert echoes.reply(1, 102 * MS, None) is None
    assert (echoes.sent, echoes.received, echoes.lost) == (1, 0, 1)
    assert [echo.rtt_ns for echo in echoes.since(0)] == [None]


def test_only_the_last_minute_is_in_the_figures():
    echoes = Echoes(timeout_ns=100 * MS)
    echoed(echoes, 1, 0, 50)
    echoes.expire(round(KEEP_S * 1e9) + MS)
    sample = echoes.sample("::1", "why")
    assert (sample.received, sample.rtt_max_ns, sample.error) == (1, None, "why")


def test_quantiles_by_nearest_rank():
    assert quantile([], 0.5) is None
    assert quantile([7], 0.99) == 7
    assert quantile([1, 2, 3, 4], 0.5) == 2
    assert quantile(range(1, 1001), 0.99) == 990
    assert average([]) is None


def interfaces(*words: str) -> list:
    return [ipaddress.ip_interface(word) for word in words]


def test_the_peers_address_is_one_that_can_be_reached():
    ours = interfaces("fe80::1/64", "10.0.0.1/24")
    assert choose(ours, interfaces("fe80::2/64", "192.168.0.2/24", "10.0.0.2/24")) == "10.0.0.2"
    assert choose(ours, interfaces("192.168.0.2/24", "fe80::2/64")) == "fe80::2"
    assert choose(ours, interfaces("192.168.0.2/24", "10.0.0.1/24")) is None
    assert choose([], interfaces("10.0.0.2/24")) is None


@pytest.mark.parametrize("address", ["nonsense", "10.0.0.256", "", "224.0.0.1", "0.0.0.0", "ff02::1"])
def test_what_is_no_address_of_a_host_is_refused(address):
    with pytest.raises(ProbeError):
        Prober(None, "eth0", address)
