"""`python -m privurn` is the same as `privurn`."""

from privurn.cli.main import run

if __name__ == "__main__":
    run()
