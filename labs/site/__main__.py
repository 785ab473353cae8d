"""The book's commands: `python -m labs.site build | serve | book | refresh`."""

import argparse
import sys
from pathlib import Path

from labs.site import build, environment, refresh


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m labs.site", description="Build, read and refresh the book."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("build", help="execute the notebooks and write the site into _build/html")
    for name, says in (("serve", "serve the built site on this machine"), ("book", "build, then serve")):
        command = commands.add_parser(name, help=says)
        command.add_argument(
            "--port", type=port, default=8000, help="the port (8000); if it is busy, another one is used"
        )
    command = commands.add_parser("refresh", help="run notebooks and store their outputs")
    command.add_argument("notebooks", nargs="*", type=Path, help="the notebooks (all of book/)")
    return parser.parse_args(arguments)


def port(text: str) -> int:
    """The port that an argument names."""
    if not (text.isascii() and text.isdigit() and int(text) < 2**16):
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to 65535, got {text!r}")
    return int(text)


def run(options: argparse.Namespace) -> None:
    """Carry out one command."""
    if options.command != "serve":
        environment.leave_home_alone()
    if options.command in ("build", "book"):
        site = build.build()
        print(f"The site is in {site}", flush=True)
        if options.command == "build":
            print("Read it: open index.html there, or run `python -m labs.site serve`.")
    if options.command in ("serve", "book"):
        build.serve(port=options.port)
    if options.command == "refresh":
        refresh.refresh([path.resolve() for path in options.notebooks] or None)


def main(arguments: list[str] | None = None) -> int:
    """Carry out a command line; returns the process's exit code."""
    try:
        run(parse(arguments))
    except environment.SiteError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(
            f"{error.filename or 'A file'} cannot be read or written: {error.strerror or error}. "
            "Check its permissions and the space left on the disk, then run the command again.",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; nothing is half done: run it again.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
