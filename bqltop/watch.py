"""Watch the transmit path of a network device: BQL, the driver's ring, the qdisc and NAPI, live and per TX queue."""

from __future__ import annotations

import argparse
import contextlib
import errno
from functools import partial

from bqltop.arguments import (
    SCREEN_INTERVAL_S,
    add_output,
    add_place,
    add_sources,
    check_output,
    headless,
    place,
    start_probe,
    write_lines,
)
from bqltop.discovery.find import again, hint
from bqltop.fault import Fault
from bqltop.many import Many
from bqltop.model import Namespace, Sample
from bqltop.presence import NoSuchDevice
from bqltop.recording.options import add_record, recorded
from bqltop.sampler import Sampler
from bqltop.tuning import session


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("devices", metavar="DEV", nargs="+", help="name or index of a device; several share one screen")
    add_place(parser)
    add_sources(parser)
    add_output(parser)
    add_record(parser)
    session.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    check_output(arguments)
    with open_source(arguments) as source, recorded(source, arguments) as recording:
        return show(recording, arguments)


def open_source(arguments: argparse.Namespace) -> Sampler | Many:
    """The live source that the arguments name. Raises Fault."""
    names, where = list(dict.fromkeys(arguments.devices)), place(arguments)
    if len(names) == 1:
        return open_sampler(names[0], where, arguments)
    with contextlib.ExitStack() as stack:
        samplers = [stack.enter_context(open_sampler(name, where, arguments)) for name in names]
        stack.pop_all()
    return Many(samplers)


def open_sampler(device: str, where: Namespace, arguments: argparse.Namespace) -> Sampler:
    """One device. Raises Fault, saying where the device is when it is elsewhere."""
    try:
        where_again = partial(again, arguments.netns, arguments.container)
        sampler = Sampler(device, where, not arguments.no_bpf, where_again, arguments.sojourn)
    except NoSuchDevice as error:
        elsewhere = hint(device)
        raise Fault(f"{error}; {elsewhere}" if elsewhere else str(error)) from None
    return start_probe(sampler, arguments)


def show(source: Sampler | Many, arguments: argparse.Namespace) -> int:
    """Samples to the screen or to standard output; the exit status."""
    if headless(arguments):
        return write_lines(source, arguments)
    from bqltop.tui.app import BqltopApp
    from bqltop.tui.app import run as run_app

    source.interval = arguments.interval or SCREEN_INTERVAL_S
    tuner = session.maker(arguments, partial(namespace_of, source))
    return run_app(BqltopApp(source, tuner=tuner, policy=arguments.policy, read_only=arguments.read_only))


def namespace_of(source: Sampler | Many, sample: Sample) -> Namespace:
    """Where the device of a sample is. Raises OSError when it is not watched any more."""
    sampler = source.sampler(sample.stream) if isinstance(source, Many) else source
    if sampler is None:
        raise OSError(errno.ENODEV, f"{sample.device.name} is not watched any more")
    return sampler.namespace
