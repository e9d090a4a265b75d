"""The command: a thin skin. Each subcommand parses its arguments, calls the package and prints."""

from __future__ import annotations

import os
import sys

BAD_INPUT, INTERRUPTED = 2, 130


def main() -> None:
    """Run the command; bad input ends with one sentence and exit code 2."""
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        print("cohegraph: Interrupted.", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader has seen enough. Python would complain once more when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _run() -> int:
    # Imported here, so that an interruption while they load is met as any other.
    import typer

    from cohegraph.cli.app import app
    from cohegraph.cli.output import complain
    from cohegraph.errors import CohegraphError

    try:
        code = app(standalone_mode=False)
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
        if not hasattr(error, "show") or not hasattr(error, "exit_code"):
            raise
        error.show()
        return int(error.exit_code)
    return int(code or 0)
