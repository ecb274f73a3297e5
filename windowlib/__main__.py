"""`python -m windowlib`."""

import sys

from windowlib.tools.command_line import main

if __name__ == "__main__":
    sys.exit(main())
