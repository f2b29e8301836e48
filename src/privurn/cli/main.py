"""`privurn`: the commands, and how errors become exit codes."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import typer

from privurn.cli import (
    account,
    audit,
    check,
    compare,
    example,
    infer,
    ledger,
    plan,
    privatise,
    profile,
    release,
    report,
    statistics,
    verify,
)
from privurn.cli.mechanism_options import AuditCommand, ChannelCommand, MechanismCommand, StatisticsCommand
from privurn.cli.streams import kept_streams
from privurn.errors import PrivurnError

EXIT_CODES = (
    "Exit codes: 0 done; 1 a release that does not verify, a mechanism that an audit convicts, a damaged ledger; 2 input that "
    "cannot be used, or packages that are not installed; 3 a guarantee that cannot be had (with what can); 4 the ledger "
    "refuses or cannot be read; 130 interrupted."
)

INTERRUPTED = 130

FIRST = """Differentially private releases with a certificate, and valid conclusions from them. To try it, type

  privurn example incomes.csv
  privurn release incomes.csv --column income --grid 0:200000:1000 --epsilon 1 --delta 1e-6 -o release
  privurn verify release
  privurn infer release

privurn --help lists all commands, privurn COMMAND --help their options."""
"""What `privurn` alone says."""

app = typer.Typer(
    name="privurn",
    help="Certified differentially private synthetic data from Bayesian nonparametric urns.",
    epilog=EXIT_CODES,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("example", epilog=example.EXAMPLES)(example.example)
app.command("plan", epilog=plan.EXAMPLES)(plan.plan)
app.command("check", epilog=check.EXAMPLES)(check.check)
app.command("release", cls=MechanismCommand, epilog=release.EXAMPLES)(release.release)
app.command("verify", epilog=verify.EXAMPLES)(verify.verify)
app.command("privatise", cls=ChannelCommand, epilog=privatise.EXAMPLES)(privatise.privatise)
app.command("statistics", cls=StatisticsCommand, epilog=statistics.EXAMPLES)(statistics.statistics)
app.command("infer", epilog=infer.EXAMPLES)(infer.infer)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.command("compare", epilog=compare.EXAMPLES)(compare.compare)
app.command("audit", cls=AuditCommand, epilog=audit.EXAMPLES)(audit.audit)
app.command("profile", epilog=profile.EXAMPLES)(profile.profile)
app.add_typer(ledger.app, name="ledger")
app.add_typer(account.app, name="account")


def _version(value: bool) -> None:
    if value:
        from privurn import __version__

        typer.echo(f"privurn {__version__}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version and stop."),
) -> None:
    """Certified differentially private synthetic data from Bayesian nonparametric urns."""
    if context.invoked_subcommand is None:
        typer.echo(FIRST)


@cache
def command() -> Any:
    """What typer makes of the functions; their help is folded by the terminal alone, not also as in the source."""
    made = typer.main.get_command(app)
    for each in _commands(made):
        each.help = "\n\n".join(" ".join(part.split()) for part in (each.help or "").split("\n\n"))
    return made


def _commands(command: Any) -> Iterator[Any]:
    """A command and those below it."""
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from _commands(each)


def spoken(error: PrivurnError, words: Sequence[str]) -> str:
    """An error in words of the command that was called by these words: the library's own speak Python."""
    from privurn.cli.flags import error_text

    called = command()
    for word in words:
        called = getattr(called, "commands", {}).get(word, called)
    return error_text(error, _option_names(called))


def mistyped(error: Any) -> str:
    """A word that the command line cannot read, and what to type: the command's own first example."""
    said, context, option = error.format_message(), getattr(error, "ctx", None), getattr(error, "param", None)
    shown = [said]
    if option is not None and re.search(r"valid (number|float|integer|int)\b", said):
        shown = [
            f"{option.opts[-1]} takes a number.",
            "  Numbers look like 0.5, 1e-6 or 1000: a point, no commas, no percent sign",
        ]
    if "extra argument" in said:
        shown.append("  A list is one word: a,b without blanks, or 'a, b' in quotes")
    if context is not None:
        examples = re.findall(r"^privurn .+$", context.command.epilog or "", re.MULTILINE)
        shown += [f"  For example {each}" for each in examples[:1]]
        shown.append(f"  {context.command_path} --help says more")
    return "\n".join(shown)


def _option_names(command: Any) -> Iterator[str]:
    """Of a command, those that come from the fields of recipes too."""
    for each in command.get_params(typer.Context(command)):
        yield from (name.removeprefix("--").replace("-", "_") for name in each.opts if name.startswith("--"))


def _interrupted() -> None:
    sys.stderr.write("interrupted: nothing is half-written; what a ledger had already paid stays paid\n")
    sys.exit(INTERRUPTED)


def run() -> None:
    """Entry point. No traceback is shown, because one could hold a confidential value; PRIVURN_DEBUG=1 shows it."""
    for name in ("COLUMNS", "LINES"):
        if not os.environ.get(name, "0").isdecimal():
            del os.environ[name]  # a raised 2 passes for a digit with what would read it, and then ends in an error
    with kept_streams():
        try:
            code = command()(standalone_mode=False)
            sys.stdout.flush()
            sys.exit(code if isinstance(code, int) else 0)
        except PrivurnError as error:
            sys.stderr.write(f"error: {spoken(error, sys.argv[1:])}\n")
            sys.exit(error.exit_code)
        except (KeyboardInterrupt, typer.Abort):
            _interrupted()
        except SystemExit as stop:
            if stop.code == INTERRUPTED:  # typer has caught Ctrl-C itself
                _interrupted()
            raise
        except Exception as error:
            _unexpected(error)


def _unexpected(error: Exception) -> None:
    """A mistake on the command line, or one of ours."""
    usage = getattr(error, "show", None)
    if usage is not None:
        if type(error).__name__ == "NoArgsIsHelpError":
            usage()
        else:
            sys.stderr.write(f"error: {mistyped(error)}\n")
        sys.exit(2)
    if os.environ.get("PRIVURN_DEBUG"):
        raise error
    sys.stderr.write(
        f"error: internal error ({type(error).__name__}); please report it.\n"
        "  Details are withheld because they could hold a confidential value; PRIVURN_DEBUG=1 shows them\n"
    )
    sys.exit(2)


if __name__ == "__main__":
    run()
