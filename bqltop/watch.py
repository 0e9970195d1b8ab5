"""Watch the transmit path of a network device: BQL, the driver's ring, the qdisc and NAPI, live and per TX queue."""

from __future__ import annotations

import argparse
import contextlib
import errno
import sys
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
from bqltop.source import Source
from bqltop.tuning import session


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("devices", metavar="DEV", nargs="*",
                        help="name or index of a device; several share one screen; none: a list of all there are")
    add_place(parser)
    add_sources(parser)
    add_output(parser)
    add_record(parser)
    session.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    check_output(arguments)
    if not arguments.devices:
        check_list(arguments)
        if headless(arguments):
            return write_list(arguments)
    with open_source(arguments) as source:
        return show(source, arguments)


def check_list(arguments: argparse.Namespace) -> None:
    """Refuse what needs a device. Raises Fault."""
    for option in ("netns", "pid", "container", "csv", "count", "probe"):
        if getattr(arguments, option, None) not in (None, False):
            raise Fault(f"--{option} goes with a device: bqltop DEV --{option} ...")


def write_list(arguments: argparse.Namespace) -> int:
    """All devices, once, to standard output; the exit status."""
    from bqltop.output import device_lines, quiet_exit

    roll = device_lines.look(not arguments.no_bpf)
    try:
        sys.stdout.write((device_lines.as_json if arguments.json else device_lines.as_text)(roll))
        sys.stdout.flush()
    except BrokenPipeError:
        quiet_exit(sys.stdout)
    return 0


def open_source(arguments: argparse.Namespace) -> Sampler | Many:
    """The live source that the arguments name. Raises Fault."""
    names, where = list(dict.fromkeys(arguments.devices)), place(arguments)
    if len(names) == 1 and headless(arguments):
        return open_sampler(names[0], where, arguments)
    with contextlib.ExitStack() as stack:
        samplers = [stack.enter_context(open_sampler(name, where, arguments)) for name in names]
        stack.pop_all()
    return Many(samplers)


def open_sampler(device: str, where: Namespace, arguments: argparse.Namespace) -> Sampler:
    """One device. Raises Fault, saying where the device is when it is elsewhere."""
    try:
        where_again = partial(again, arguments.netns, arguments.container)
        sampler = Sampler(device, where, not arguments.no_bpf, where_again, arguments.sojourn, arguments.completions)
    except NoSuchDevice as error:
        elsewhere = hint(device)
        raise Fault(f"{error}; {elsewhere}" if elsewhere else str(error)) from None
    return start_probe(sampler, arguments)


def show(source: Sampler | Many, arguments: argparse.Namespace) -> int:
    """Samples to the screen or to standard output, and with --record to a file; the exit status."""
    if headless(arguments):
        with recorded(source, arguments) as recording:
            return write_lines(recording, arguments)
    many = source if isinstance(source, Many) else Many([source])
    with recorded(many, arguments) as recording:
        return show_screen(recording, many, arguments)


def show_screen(recording: Source, many: Many, arguments: argparse.Namespace) -> int:
    """``recording`` hands on the samples of ``many``, to which devices may be added from the screen."""
    from bqltop.roster import Roster
    from bqltop.tui.app import BqltopApp
    from bqltop.tui.app import run as run_app

    def open_another(which: str | int, where: Namespace) -> Sampler:
        return Sampler(which, where, not arguments.no_bpf, sojourn=arguments.sojourn, completions=arguments.completions)

    many.interval = arguments.interval or SCREEN_INTERVAL_S
    tuner = session.maker(arguments, partial(namespace_of, many))
    with contextlib.closing(Roster(many, open_another, not arguments.no_bpf)) as roster:
        app = BqltopApp(recording, tuner=tuner, policy=arguments.policy, read_only=arguments.read_only,
                        devices=roster, start_with_list=not many.samplers)
        return run_app(app)


def namespace_of(many: Many, sample: Sample) -> Namespace:
    """Where the device of a sample is. Raises OSError when it is not watched any more."""
    sampler = many.sampler(sample.stream)
    if sampler is None:
        raise OSError(errno.ENODEV, f"{sample.device.name} is not watched any more")
    return sampler.namespace
