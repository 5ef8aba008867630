"""`python -m swink.cli`: the command without its script."""

import os
import sys

if sys.path[:1] in ([""], [os.getcwd()]):
    del sys.path[0]  # where `python -m` puts the working directory: before the library and every package

from swink.cli import main

sys.exit(main())
