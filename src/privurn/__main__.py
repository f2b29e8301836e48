"""`privurn` and `python -m privurn`."""

import sys


def main() -> None:
    """The command line; Ctrl-C while it is still being imported is no traceback either."""
    try:
        from privurn.cli.main import run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: nothing was begun\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
