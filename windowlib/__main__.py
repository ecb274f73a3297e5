"""`python -m windowlib`."""

import sys

from windowlib.cli import main

if __name__ == "__main__":
    sys.exit(main())
