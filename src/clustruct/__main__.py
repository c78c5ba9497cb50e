"""``python -m clustruct`` is the command line."""

import sys

from clustruct.cli import main

if __name__ == "__main__":
    sys.exit(main())
