"""``python -m laconic`` is the ``laconic`` command."""

from laconic.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
