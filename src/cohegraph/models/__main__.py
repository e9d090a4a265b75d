"""``python -m cohegraph.models [NAME …]`` trains ready-made models again and puts them into the package."""

import sys

from cohegraph.models import READY

names = sys.argv[1:] or list(READY)
if unknown := [name for name in names if name not in READY]:
    print(f"There is no ready-made model '{unknown[0]}': choose from {', '.join(READY)}.", file=sys.stderr)
    raise SystemExit(2)
for name in names:
    READY[name].rebuild(READY[name].folder)
    print(f"{name} is in {READY[name].folder}")
