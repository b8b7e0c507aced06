"""Run the command line: ``python -m inferencecache``."""

from inferencecache.cli import main

if __name__ == "__main__":
    main()
