"""Ctrl-C before a verb can catch it, and after its end: the process ends in words, or without any.

Until a verb can catch it nothing has been asked of anybody and nothing was spent, so the process may end at
once, wherever it stands in an import.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

INTERRUPTED = 130
WORDS = "error: interrupted\nnext: run it again; it looks before it does anything\nnothing was spent\n"
DOCUMENT = """{
  "schema": "berth.failure/1",
  "exit_code": 130,
  "error": "interrupted",
  "next": "run it again; it looks before it does anything",
  "money": {
    "spent": "nothing",
    "amount": null,
    "order": null
  }
}
"""
"""What `berth.cli.output` says of an interrupted command; it may not be imported yet."""


def end_in_words() -> None:
    """From here on Ctrl-C ends the process at once, and says so. A job that ignores Ctrl-C still does."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)


def let_ctrl_c_raise() -> None:
    """From here on Ctrl-C raises KeyboardInterrupt: whoever calls this catches it."""
    import signal

    if signal.getsignal(signal.SIGINT) is end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def let_ctrl_c_end() -> None:
    """From here on Ctrl-C ends the process without a word: all has been told."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def end(*_: object) -> NoReturn:
    """The end of an interrupted command, with nothing that is not loaded yet."""
    said = [(2, WORDS), *([(1, DOCUMENT)] if "--json" in sys.argv[1:] else [])]
    for stream, text in said:
        try:
            os.write(stream, text.encode())
        except OSError:  # nobody can be told; the exit code still says what it was
            continue
    os._exit(INTERRUPTED)
