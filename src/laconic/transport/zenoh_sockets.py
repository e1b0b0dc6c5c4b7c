"""A setting of zenoh's sockets that zenoh has no setting for."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket

_ZENOH = (1, 10)  # zenoh has the system wait for 10 seconds


def stop_lingering() -> None:
    """Have the system not wait when zenoh closes a connection.

    Zenoh asks it to wait for up to 10 seconds until the other side has got all that was sent. Where the other side is
    cut off, that never happens, and zenoh's receiving thread would hear nobody else for all that time.

    Zenoh's connections are told from others of this process by the very setting. Systems that do not list the files of
    a process keep it.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"  # noqa: PTH112
        for entry in os.listdir(folder):  # noqa: PTH208
            value, size = (ctypes.c_int * 2)(), ctypes.c_uint(ctypes.sizeof(ctypes.c_int) * 2)
            option = (int(entry), socket.SOL_SOCKET, socket.SO_LINGER)
            # What is no socket, or not open any more, answers with an error.
            if library.getsockopt(*option, value, ctypes.byref(size)) == 0 and tuple(value) == _ZENOH:
                library.setsockopt(*option, (ctypes.c_int * 2)(0, 0), size)
