"""``python -m pcg``: one sub-command a module, imported only when it is asked for."""

from __future__ import annotations

import argparse
import importlib
import sys

from pcg.errors import PcgError

COMMANDS = {
    "demo": "watch SD, SSD and PCG on toy tables, without weights",
    "say": "speak a text in a voice and write the audio",
    "compare": "every rule on the same text, voice and seed",
    "sweep": "expected acceptance and speed over theta from one run",
    "swap": "swap tokens inside their groups (the paper's Table 2)",
    "evaluate": "the paper's tables and figures with significance",
    "listening": "blind listening tests: create, serve, analyse, export",
    "train": "make the bundled voice, or a draft for any model",
    "bench": "measure what this machine does",
    "publish": "assemble a Space and upload it",
}


def build_parser(arguments: list[str]) -> argparse.ArgumentParser:
    """The parser for ``arguments``: only the sub-command they name is imported.

    Raises:
        PcgError: when a package that the sub-command needs is not installed.
    """
    parser = argparse.ArgumentParser(prog="python -m pcg", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    asked = next((word for word in arguments if not word.startswith("-")), None)
    for name, about in COMMANDS.items():
        if name != asked:
            subparsers.add_parser(name, help=about, add_help=False)
            continue
        try:
            module = importlib.import_module(f"pcg.commands.{name}")
        except ModuleNotFoundError as error:
            raise PcgError(
                f"`{name}` needs {error.name}: pip install -r requirements-dev.txt."
            ) from error
        module.add_parser(subparsers)
        subparsers.choices[name].set_defaults(run=module.run)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Runs one sub-command; returns the exit status (2 for a mistake in the request)."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        args = build_parser(arguments).parse_args(arguments)
        return int(args.run(args))
    except PcgError as error:
        print(f"pcg: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
