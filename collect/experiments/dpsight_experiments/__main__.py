"""Entry point: refuses old interpreters, then hands over to the command line."""

import sys

if sys.version_info < (3, 10):  # noqa: UP036 - the other modules do not even parse there
    sys.stderr.write("error: python 3.10 or later is needed, this is {}.{}\n".format(*sys.version_info[:2]))
    sys.exit(2)

from dpsight_experiments.cli import main

_report = sys.excepthook


def _quietly(kind: type, value: BaseException, traceback: object) -> None:
    """Says nothing of an interrupt: the user has made it, and where it came is nobody's fault. Python still ends by the
    signal, and the agent, which chains to this, still writes what it has; ending the process here would not let it."""
    if not issubclass(kind, KeyboardInterrupt):
        _report(kind, value, traceback)  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.excepthook = _quietly
    sys.exit(main(sys.argv[1:]))
