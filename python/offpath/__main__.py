import sys

from offpath.cli import main

sys.exit(main())
