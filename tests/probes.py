"""Single functions of the core, as Python calls them."""

import numpy as np

from laconic.channel import longest_message
from laconic.native.arrays import aligned, padded
from laconic.native.binding import INTEGER, POINTER, REAL, function
from laconic.native.run import LOSSES, RISE, TREAD, Run, add_agents

ROUNDINGS = {"rise": RISE, "tread": TREAD}


def call(name, *arguments, result=INTEGER):
    """Call a probe: arrays go by their address, whole numbers and floats as they are."""
    kinds = {np.ndarray: POINTER, int: INTEGER, float: REAL, Run: POINTER}
    given = [getattr(one, "ctypes", None) and one.ctypes.data for one in arguments]
    given = [
        one.address if isinstance(one, Run) else (place or one) for one, place in zip(arguments, given, strict=True)
    ]
    return function(f"probe_{name}_f64", *(kinds[type(one)] for one in arguments), result=result)(*given)


def run_of(n_features, **numbers):
    """A run of one agent with these numbers."""
    run = Run.of(n_features=n_features, n_agents=1, **numbers)
    add_agents(run, 1, 0, 1, np.float64, clips=False, half=False)
    return run


def loss_of(name, margin, label, a, c):
    """(value, slope, proximal slope)."""
    found = np.empty((3, 1))
    call("loss", LOSSES[name], 1, *(np.array([float(one)]) for one in (margin, label, a, c)), found, result=None)
    return tuple(found[:, 0].tolist())


def scale_of(peak):
    """The float that travels for a peak."""
    return call("scale", float(peak), result=REAL)


def quantized(quantizer, h):
    """Q(h), and the bytes of its message."""
    low, high = (0.0, 0.0) if quantizer.adaptive else quantizer.range
    cells, bits = quantizer.cells, quantizer.bits
    run = run_of(len(h), rounding=ROUNDINGS[quantizer.rounding], cells=cells, bits=bits, low=low, high=high)
    scale, hat = scale_of(np.abs(h).max()), aligned(1, len(h), np.float64)
    packed = np.zeros(-(-len(h) * bits // 8), dtype=np.uint8)
    length = call("quantize", run, padded(h[None], np.float64), hat, scale, packed)
    assert length == packed.size
    assert not hat[0, len(h) :].any()  # the padding stays zero, which need not be a value
    heard = aligned(1, len(h), np.float64)
    assert call("unpack", run, packed, scale, heard)
    assert np.array_equal(hat, heard)  # the sender knows what its neighbours will have
    return hat[0, : len(h)], packed


def encoded(quantizer, h):
    """The bytes of an entropy code, its codes, and how many entries are beyond the largest."""
    run = run_of(len(h), coarseness=quantizer.coarseness, dead_zone=quantizer.dead_zone)
    codes, beyond = np.zeros(len(h), dtype=np.int64), np.zeros(1, dtype=np.int64)
    written = np.zeros(longest_message(len(h)), dtype=np.uint8)
    length = call("encode", run, np.array(h, dtype=np.float64), codes, written, beyond)
    return written[:length].tobytes(), codes, int(beyond[0])


def decoded(data, n):
    """The codes in these bytes; None if they are no message."""
    codes, data = np.zeros(n, dtype=np.int64), np.frombuffer(bytes(data), dtype=np.uint8)
    return codes if call("decode", data, data.size, n, codes) else None
