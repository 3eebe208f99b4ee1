"""``python -m hardmask.conformance``: the same command line."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="hardmask")
