"""The command `berth` from its first line on: Ctrl-C while Python reads the program ends it in words."""

from __future__ import annotations

from berth.ctrl_c import end, end_in_words


def main() -> None:
    """Run the command line and end the process with the exit code of the table."""
    try:
        end_in_words()
        from berth.cli.main import main as command_line
    except KeyboardInterrupt:
        end()
    command_line()
