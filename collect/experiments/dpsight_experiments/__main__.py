"""Entry point: refuses old interpreters, then hands over to the command line."""

import sys

if sys.version_info < (3, 10):  # noqa: UP036 - the other modules do not even parse there
    sys.stderr.write("error: python 3.10 or later is needed, this is {}.{}\n".format(*sys.version_info[:2]))
    sys.exit(2)

from dpsight_experiments.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
