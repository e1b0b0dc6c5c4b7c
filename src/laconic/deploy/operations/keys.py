"""One key that is heard without Return: while a screen is on a terminal, ``q`` leaves it."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def heard_keys(on_key: Callable[[str], object]) -> Iterator[bool]:
    """Hand each key that is pressed meanwhile to ``on_key``, on a thread of its own; whether there is a keyboard.

    The terminal is left as it was found, however this ends. Ctrl-C stays a signal.
    """
    try:
        import termios
        import tty

        keyboard = sys.stdin.fileno()
        before = termios.tcgetattr(keyboard)
        alone = os.tcgetpgrp(keyboard) != os.getpgrp()  # in the background, where reading would stop the process
    except (ImportError, OSError, ValueError, AttributeError):
        yield False
        return
    except Exception as error:  # termios.error, which is no OSError
        if type(error).__name__ != "error":
            raise
        yield False
        return
    if alone:
        yield False
        return
    done, wake = os.pipe()

    def listen() -> None:
        while True:
            ready, _, _ = select.select([keyboard, done], [], [])
            if done in ready:
                return
            pressed = os.read(keyboard, 16)
            if not pressed:  # the terminal is gone
                return
            on_key(pressed[:1].decode(errors="replace"))

    thread = threading.Thread(target=listen, name="hears keys", daemon=True)
    try:
        tty.setcbreak(keyboard)
        thread.start()
        yield True
    finally:
        os.write(wake, b"!")
        thread.join()
        os.close(done)
        os.close(wake)
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
