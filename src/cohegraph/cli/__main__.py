"""``python -m cohegraph.cli`` is the command."""

from cohegraph.cli import main

main()
