"""``gymkit`` and ``python -m gymkit``."""

from __future__ import annotations


def main() -> None:
    """Run the command line; the process ends with its exit status."""
    from gymkit.cli.app import app

    app(prog_name="gymkit")


if __name__ == "__main__":
    main()
