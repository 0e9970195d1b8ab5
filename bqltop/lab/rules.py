"""Filter rules that make the receiver slow: every packet is compared with each of them and matches none."""

from __future__ import annotations

from bqltop.lab.scope import LabError, LabUnavailable, Scope

NEVER = "192.0.2.1"  # RFC 5737, TEST-NET-1: nobody sends from there


def iptables_text(count: int) -> str:
    """Input for iptables-restore: the raw table with `count` rules in PREROUTING and nothing else.

    raw PREROUTING is the first thing that NAPI's packets meet in the IP layer, so the poll itself pays for it.
    """
    return "*raw\n" + f"-A PREROUTING -s {NEVER}/32 -j DROP\n" * count + "COMMIT\n"


def nft_text(count: int) -> str:
    """The same for `nft -f -`: deletes and makes one table, in one transaction."""
    rules = f"ip saddr {NEVER} drop\n" * count
    chain = f"chain prerouting {{\ntype filter hook prerouting priority raw;\n{rules}}}"
    return f"add table ip bqltop\ndelete table ip bqltop\ntable ip bqltop {{\n{chain}\n}}\n"


def iptables_loop(count: int, netns: str) -> str:
    """What `iptables_text` comes to, for a person to type."""
    lines = f"echo '*raw'; yes -- '-A PREROUTING -s {NEVER}/32 -j DROP' | head -n {count}; echo COMMIT"
    return f"( {lines} ) | ip netns exec {netns} iptables-legacy-restore"


def nft_line(count: int, netns: str) -> str:
    """What `nft_text` comes to, in words."""
    return f"ip netns exec {netns} nft -f -  # {count} times `ip saddr {NEVER} drop` in a prerouting chain of priority raw"


def set_rules(scope: Scope, netns: str, count: int) -> None:
    """Replaces the rules in the namespace by `count` new ones, in one go.

    iptables-legacy first: its rules are compared one after the other with very little work each, so their number steers the
    cost finely. Raises LabUnavailable when neither iptables nor nft works here.
    """
    why = f"slow consumer: {count} rules to compare each packet with"
    reasons = []
    for argv, text, shown in (
        (["iptables-legacy-restore", "-w", "5"], iptables_text(count), iptables_loop(count, netns)),
        (["nft", "-f", "-"], nft_text(count), nft_line(count, netns)),
    ):
        try:
            scope.inside(netns, *argv, text=text, why=why, shown=shown)
        except LabError as error:
            reasons.append(str(error))
        else:
            return
    raise LabUnavailable(f"The slow consumer needs iptables or nft (apt install iptables): {'; '.join(reasons)}.")
