"""The command: a thin skin. Each subcommand parses its arguments, calls the package and prints."""

import io
import os
import signal
import sys
import time
from typing import Any

BAD_INPUT, INTERRUPTED = 2, 130
_AGAIN = 2.0
_last_signal = -_AGAIN


def main() -> None:
    """Run the command; bad input ends with one sentence and exit code 2."""
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        print("cohegraph: Interrupted.", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader has seen enough. Python would complain once more when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _interrupted(*_: Any) -> None:
    """SIGTERM interrupts like Ctrl+C. Signals in quick succession count once, so that the clean-up can finish."""
    global _last_signal
    now = time.monotonic()
    if now - _last_signal < _AGAIN:
        return
    _last_signal = now
    raise KeyboardInterrupt


def _run() -> int:
    # Imported here, so that an interruption while they load is met as any other.
    import typer

    from cohegraph.cli.app import app
    from cohegraph.cli.output import complain
    from cohegraph.errors import CohegraphError

    _mend_streams()
    try:
        code = app(standalone_mode=False, prog_name="cohegraph")
        sys.stdout.flush()
    except CohegraphError as error:
        complain(str(error))
        return BAD_INPUT
    except typer.Abort:
        raise KeyboardInterrupt from None
    except BrokenPipeError:
        raise
    except OSError as error:
        complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.")
        return BAD_INPUT
    except Exception as error:
        # A usage error: of Click, or of the copy of Click inside newer versions of Typer.
        if not hasattr(error, "format_message") or not hasattr(error, "exit_code"):
            raise
        context = getattr(error, "ctx", None)
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message(), file=sys.stderr)
        else:
            command = context.command_path if context is not None else "cohegraph"
            sentence = " ".join(error.format_message().split()).rstrip(".").replace(": Value error, ", ": ")
            complain(f"{sentence}{' See' if sentence.endswith('?') else '; see'} '{command} --help'.")
        return int(error.exit_code)
    return int(code or 0)


def _mend_streams() -> None:
    """Make all three streams usable: a caller may have closed them, or want an encoding that lacks most letters."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: PTH123, SIM115 (they stay open as long as the process lives)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
