"""``python -m cohegraph.models [NAME …]`` trains ready-made models again and puts them into the package."""

import sys

from cohegraph.models import READY

for name in sys.argv[1:] or READY:
    READY[name].rebuild(READY[name].folder)
