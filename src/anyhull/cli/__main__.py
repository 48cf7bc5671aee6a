"""`python -m anyhull.cli`."""

import sys

from anyhull.cli import main

sys.exit(main())
