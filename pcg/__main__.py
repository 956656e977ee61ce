"""`python -m pcg <command>`: each sub-command is a module of its own, imported only when named."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from types import ModuleType

from pcg.errors import PcgError

COMMANDS = {
    "demo": "a round-by-round account of SD, SSD and PCG on toy tables, no weights needed",
    "say": "speak a text in a voice, with one acceptance rule",
    "compare": "speak a text with several rules from the same seed",
    "sweep": "acceptance and speed over theta, beta or lookahead",
    "swap": "swap tokens inside their groups and listen (Table 2)",
    "evaluate": "error rates and similarity over a corpus (Tables 1 and 3, Figure 4)",
    "train": "make the bundled model, or a draft for another one",
    "bench": "measure speed: judge, engine",
    "listening": "prepare and score listening tests",
    "publish": "publish the application as a Space",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 on success, 2 for a mistake that the message explains."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        name = arguments[0] if arguments else ""
        if name not in COMMANDS:
            return _usage(name)
        parser = argparse.ArgumentParser(prog="python -m pcg")
        module = _load(name)
        module.add_parser(parser.add_subparsers(dest="command", required=True))
        options = parser.parse_args(arguments)
        return int(module.run(options) or 0)
    except PcgError as error:
        print(f"pcg: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pcg: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0


def _usage(name: str) -> int:
    lines = [f"  {command:<10} {about}" for command, about in COMMANDS.items()]
    text = "usage: python -m pcg <command> [--help]\n\n" + "\n".join(lines)
    if name in ("", "-h", "--help"):
        print(text)
        return 0
    print(f"pcg: no command is called {name!r}.\n\n{text}", file=sys.stderr)
    return 2


def _load(name: str) -> ModuleType:
    module = f"pcg.commands.{name}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or "a module"
        if missing == module:
            raise PcgError(f"The command {name!r} is not part of this installation.") from error
        raise PcgError(f"The command {name!r} needs {missing}; install it and retry.") from error


if __name__ == "__main__":
    sys.exit(main())
