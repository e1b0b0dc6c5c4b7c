"""A number by which agents recognise that their messages mean the same to each other.

It is a digest of values, not of how Python prints them: numbers by their exact bits, whatever type they came in;
objects by the name of their class and their public fields. Two agents with the same settings have the same
fingerprint on any machine and with any version of Python or NumPy; a last digit that differs changes it.
"""

from __future__ import annotations

import hashlib
import math
import struct
import types
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from laconic.features import OwnFeatures, RandomFeatures
from laconic.features.scaling import REACH
from laconic.learners import Learner, Speech
from laconic.losses import Loss
from laconic.protocol.wire import VERSION
from laconic.waves.message import CODE

_ROUNDS = (1, 2, 3, 10, 100, 1000)  # in which a function of the round is asked for its value
_DEEPEST = 20
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, partial)


def fingerprint(
    features: RandomFeatures, learner: Learner, n_agents: int, dtype: np.dtype[Any], clock: str = "lockstep"
) -> int:
    """A number of 32 bits that differs between agents whose messages would not mean the same to each other."""
    waves = (CODE,) if learner.speech is Speech.OWN else ()
    map_of = features.mark() if isinstance(features, OwnFeatures) else features.frequencies
    settings = (VERSION, clock, learner, n_agents, dtype.name, map_of, *_scaling(features), *waves)
    return int.from_bytes(hashlib.blake2b(canonical(settings), digest_size=4).digest(), "little")


def _scaling(features: RandomFeatures) -> tuple[object, ...]:
    """What a map does besides its frequencies: nothing, or a scaling before them and a linear block behind."""
    scaling = features.scaling
    if scaling is None:
        return ()
    unusual = () if scaling.reach == REACH else (scaling.reach,)
    return scaling.centre, scaling.scale, features.linear, *unusual


def canonical(value: object, depth: int = 0) -> bytes:
    """A value as bytes that are the same wherever the value is.

    None, whole and real numbers, text, bytes, lists, mappings and arrays by what they hold; a learner by its
    parameters, a loss by its name and fields, any other object by its public fields, each with the name of its class; a
    plain function, whose name says nothing, by its values in rounds 1, 2, 3, 10, 100 and 1000.

    Examples
    --------
    >>> import numpy as np
    >>> canonical(np.float64(0.5)) == canonical(0.5) != canonical(np.nextafter(0.5, 1.0))
    True
    >>> canonical({"a": 1, "b": (2, None)}) == canonical({"b": [2.0, None], "a": np.int32(1)})
    True
    """
    if depth > _DEEPEST:
        raise ValueError("learner must have parameters that do not contain themselves.")
    if value is None:
        return _framed(b"n", b"")
    if isinstance(value, (bool, np.bool_)):
        return _framed(b"b", bytes((bool(value),)))
    if isinstance(value, Integral):
        return _number(int(value))
    if isinstance(value, Real):
        return _number(float(value))
    if isinstance(value, str):
        return _framed(b"s", value.encode())
    if isinstance(value, (bytes, bytearray)):
        return _framed(b"y", bytes(value))
    if isinstance(value, np.ndarray):
        return _array(value, depth)
    if isinstance(value, Mapping):
        pairs = sorted((canonical(key, depth + 1), canonical(item, depth + 1)) for key, item in value.items())
        return _framed(b"m", b"".join(key + item for key, item in pairs))
    if isinstance(value, (list, tuple)):
        return _framed(b"l", b"".join(canonical(item, depth + 1) for item in value))
    if isinstance(value, (set, frozenset)):
        return _framed(b"u", b"".join(sorted(canonical(item, depth + 1) for item in value)))
    return _object(value, depth)


def _framed(kind: bytes, content: bytes) -> bytes:
    """A kind and a length before the content, so that no two values share their bytes."""
    return kind + struct.pack("<Q", len(content)) + content


def _number(value: float) -> bytes:
    """1 and 1.0 are one number; a whole number too large for a float keeps all its digits."""
    try:
        real = float(value)
    except OverflowError:
        real = None
    if real is None or (real != value and not math.isnan(real)):
        return _framed(b"i", str(value).encode())
    return _framed(b"f", struct.pack("<d", real if real else 0.0))  # minus zero is zero


def _array(array: np.ndarray[Any, Any], depth: int) -> bytes:
    if array.dtype.kind not in "fiub":
        return canonical(array.tolist(), depth + 1)
    numbers = np.ascontiguousarray(array, dtype="<f8") + 0.0  # minus zero is zero
    return _framed(b"a", canonical(array.shape, depth + 1) + numbers.tobytes())


def _object(value: object, depth: int) -> bytes:
    if isinstance(value, _FUNCTIONS):
        return _framed(b"c", canonical(_values(value), depth + 1))
    named = value.__name__ if isinstance(value, type) else type(value).__name__
    return _framed(b"o", canonical(named, depth + 1) + canonical(_fields(value), depth + 1))


def _fields(value: object) -> dict[str, Any]:
    """What an object is made of, as far as it is public."""
    if isinstance(value, type):
        return {}
    if isinstance(value, Learner):
        try:
            return value.parameters()
        except AttributeError:  # it keeps some argument under another name
            pass
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    fields = {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(value, "__dict__", {})
    if isinstance(value, Loss):
        fields["name"] = value.name
    return {name: item for name, item in fields.items() if not name.startswith("_")}


def _values(function: Callable[..., Any]) -> list[Any]:
    """What a function of the round returns; its name, if it is one of something else."""
    try:
        return [float(function(t)) for t in _ROUNDS]
    except Exception:  # a person's function, and no schedule
        return [getattr(function, "__name__", "")]
