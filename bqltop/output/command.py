"""``bqltop export``: the arguments, and the loop that keeps Prometheus supplied."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from bqltop.arguments import seconds
from bqltop.fault import Fault
from bqltop.files import renew
from bqltop.format import printable
from bqltop.output import INTERRUPTED, Windows, prometheus
from bqltop.source import Source

DEFAULT_LISTEN = "127.0.0.1:9743"


class ExportError(Fault):
    """The export cannot start or go on; the message is one line for the user."""


def address(text: str) -> tuple[str, int]:
    """``127.0.0.1:9743``, ``[::1]:9743`` or ``:9743`` (loopback) as (host, port). Raises ArgumentTypeError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not ADDRESS:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``bqltop export``; the device's own are the caller's."""
    parser.add_argument("--prometheus", action="store_true", required=True,
                        help="metrics for Prometheus (docs/prometheus.md)")
    parser.add_argument("--listen", type=address, metavar="ADDRESS:PORT",
                        help=f"serve /metrics here (default {DEFAULT_LISTEN}, loopback only)")
    parser.add_argument("--textfile", type=Path, metavar="PATH",
                        help="write a file for node_exporter's textfile collector instead, renewed every --interval")
    parser.add_argument("--openmetrics", action="store_true", help="write that file as OpenMetrics")
    parser.add_argument("--interval", type=seconds, default=1.0, metavar="S", help="seconds between samples (default 1)")


def run(args: argparse.Namespace, make_source: Callable[[argparse.Namespace], AbstractContextManager[Source]]) -> int:
    """Export until the source ends or Ctrl-C. Exit status 0, 130 after Ctrl-C, 1 where a file cannot be renewed. Raises
    Fault where it cannot start; nothing is served before the device has been found."""
    registry, collector = _registry()
    with make_source(args) as source:
        publish, close = _publisher(args, registry)
        try:
            for sample, window in Windows(source.every(args.interval)):
                collector.update(sample, window)
                publish()
        except KeyboardInterrupt:
            return INTERRUPTED
        except ExportError as error:
            print(f"bqltop: {printable(str(error))}", file=sys.stderr)
            return 1
        finally:
            close()
    return 0


def _registry():
    try:
        from prometheus_client import CollectorRegistry
    except ImportError:
        raise ExportError(prometheus.MISSING) from None
    registry, collector = CollectorRegistry(), prometheus.Collector()
    registry.register(collector)
    return registry, collector


def _publisher(args, registry) -> tuple[Callable[[], None], Callable[[], None]]:
    """What to do after each sample and at the end, for a file, a server, or both."""
    actions = []
    if args.textfile:
        actions.append(lambda: write_textfile(args.textfile, registry, openmetrics=args.openmetrics))
    server = None
    if args.listen or not args.textfile:
        server = _serve(*(args.listen or address(DEFAULT_LISTEN)), registry)

    def close() -> None:
        if server:
            server.shutdown()
            server.server_close()

    return lambda: [action() for action in actions], close


def _serve(host: str, port: int, registry):
    from prometheus_client import start_http_server

    try:
        server, _thread = start_http_server(port, addr=host, registry=registry)
    except (OSError, OverflowError) as error:
        raise ExportError(f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}") from None
    print(f"bqltop: metrics at http://{host}:{server.server_port}/metrics", file=sys.stderr)
    return server


def write_textfile(path: Path, registry, *, openmetrics: bool = False) -> None:
    """Renew ``path`` in one step (a reader sees the old text or the new). ExportError where it cannot be written."""
    if openmetrics:
        from prometheus_client.openmetrics.exposition import generate_latest
    else:
        from prometheus_client import generate_latest
    try:
        renew(path, generate_latest(registry))
    except OSError as error:
        raise ExportError(f"cannot write {path}: {error.strerror}") from None
