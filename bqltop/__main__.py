"""`python -m bqltop` is the same as `bqltop`."""

import sys

from bqltop.cli import main

if __name__ == "__main__":
    sys.exit(main())
