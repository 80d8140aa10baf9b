"""Entry point: refuses old Python versions, then calls the command line."""

import sys

if sys.version_info < (3, 10):  # noqa: UP036 - the other modules do not even parse there
    sys.stderr.write("error: python 3.10 or later is needed, this is {}.{}\n".format(*sys.version_info[:2]))
    sys.exit(2)

from dpsight_experiments.cli import main

_report = sys.excepthook


def _quietly(kind: type, value: BaseException, traceback: object) -> None:
    """Prints nothing for an interrupt, since the user caused it. Python still ends by the signal, and the agent, whose
    hook calls this one, still writes its data. Ending the process here would prevent that."""
    if not issubclass(kind, KeyboardInterrupt):
        _report(kind, value, traceback)  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.excepthook = _quietly
    sys.exit(main(sys.argv[1:]))
