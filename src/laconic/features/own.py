"""Features of one's own: a fitted scikit-learn transformer, a frozen neural network, any function of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, final

import numpy as np

from laconic import _validate
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.features.maps import RandomFeatures

_PROBES = 8  # inputs that a map is tried with
_DIGITS = 5  # by which two machines' outputs for them are compared


@final
class OwnFeatures(RandomFeatures):
    """A feature map that is a function of one's own; it must always give the same for the same input.

    Parameters
    ----------
    function : callable, or fitted transformer
        From rows (n, n_inputs) to features (n, n_features). Of an object with ``transform``, that is the function.
    n_inputs : int, optional
        Where the function has no ``n_inputs`` or ``n_features_in_`` of its own.
    n_features : int, optional
        Where it has no ``n_features``; by default as many as it returns for a first input.
    name : str, optional
        By which agents recognise that they have the same map. Without a name they compare what their maps return for
        eight fixed inputs, to five digits.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> from sklearn.kernel_approximation import Nystroem
    >>> X = np.random.default_rng(0).uniform(size=(300, 4, 2))
    >>> nystroem = Nystroem(gamma=4.0, n_components=20, random_state=0).fit(X[:20].reshape(-1, 2))
    >>> trace = lc.simulate(lc.ODKLA(eta=1.0), nystroem, lc.Network.ring(4), X, X[..., 0] * X[..., 1])
    >>> trace.weights.shape
    (4, 20)
    """

    def __init__(
        self,
        function: Any,
        n_inputs: int | None = None,
        n_features: int | None = None,
        *,
        name: str | None = None,
    ) -> None:
        call: Any = function if not hasattr(function, "transform") else function.transform
        if not callable(call):
            raise ArgumentError("features", f"must be a function of rows, got {_validate.shown(function)}.")
        if n_inputs is None:
            n_inputs = getattr(function, "n_inputs", getattr(function, "n_features_in_", None))
        if n_inputs is None:
            if hasattr(function, "fit") and hasattr(function, "transform"):
                raise ArgumentError("features", "must be fitted before they are passed on: see their method `fit`.")
            raise ArgumentError("n_inputs", "must be given: these features do not say how many inputs they take.")
        n_inputs = _validate.integer("n_inputs", n_inputs, least=1)
        super().__init__(np.zeros((1, n_inputs)))  # no frequencies; their shape tells the number of inputs
        if name is not None:
            _validate.instance("name", name, str, "text")
        self.name = name
        self._function: Callable[[Array], Any] = call
        self._description = f"OwnFeatures({name or type(function).__name__})"
        probes = np.random.default_rng(0).uniform(-1.0, 1.0, size=(_PROBES, n_inputs))
        if n_features is None:
            told = getattr(function, "n_features", None)
            n_features = np.shape(call(probes))[-1] if told is None else told
        self._n_features = _validate.integer("n_features", n_features, least=1)
        self._tried = self(probes)
        if not np.array_equal(self._tried, self(probes), equal_nan=True):
            raise ArgumentError("features", "must return the same for the same input, every time.")

    @property
    def n_features(self) -> int:
        """Length of phi(x), and so of every model and message."""
        return self._n_features

    @property
    def unit(self) -> bool:
        """Whether phi(x) has norm 1, whatever x: of a map of one's own nobody knows."""
        return False

    def mark(self) -> bytes:
        """What agents compare: the name, or what the map returns for fixed inputs."""
        if self.name is not None:
            return b"name " + self.name.encode()
        largest = float(np.abs(self._tried).max()) or 1.0
        rounded = np.round(self._tried / largest, _DIGITS) + 0.0
        return hashlib.blake2b(rounded.astype("<f8").tobytes(), digest_size=16).digest()

    def __call__(self, X: object) -> Array:
        """Map inputs of shape (..., n_inputs) to features of shape (..., n_features)."""
        inputs = _validate.finite("X", self._checked("X", X))
        return self.join(inputs, inputs)

    def phases(self, X: Array) -> Array:
        """The inputs themselves: there are no frequencies."""
        return X

    def join(self, phases: Array, X: Array) -> Array:
        """Phi of inputs, checked: as many numbers as were promised, all of them finite."""
        rows = np.reshape(X, (-1, self.n_inputs))
        found = np.asarray(self._function(rows))
        if found.shape != (len(rows), self._n_features) or found.dtype.kind not in "fiub":
            raise ArgumentError(
                "features",
                f"must return real numbers of shape (n, {self._n_features}), for {len(rows)} rows they returned "
                f"{found.dtype} of shape {found.shape}.",
            )
        if not np.isfinite(found).all():
            raise ArgumentError("features", "must return finite numbers for finite inputs, and did not.")
        return np.ascontiguousarray(found, dtype=X.dtype).reshape(*X.shape[:-1], self._n_features)


def read(value: object, X: object = None) -> RandomFeatures:
    """``features`` as people pass them: a map of the house, or a callable or transformer that becomes one.

    How many inputs it takes, if it does not say so itself, is seen from ``X``: an array (..., n_inputs), or a list of
    them.
    """
    if isinstance(value, RandomFeatures):
        return value
    own = hasattr(value, "transform") or (callable(value) and hasattr(value, "n_features"))
    if isinstance(value, type) or not own:
        raise ArgumentError(
            "features",
            "must be a laconic RandomFeatures, a fitted transformer, or a callable with n_inputs and n_features, got "
            f"{_validate.shown(value)}.",
        )
    told = any(hasattr(value, name) for name in ("n_inputs", "n_features_in_", "transform"))
    return OwnFeatures(value, n_inputs=None if told else _width(X))


def _width(X: object) -> int:
    """The number of inputs that a stream has."""
    first = X[0] if isinstance(X, (list, tuple)) and X else X
    shape: tuple[int, ...] = getattr(first, "shape", ())
    if len(shape) < 2 or not shape[-1]:
        raise ArgumentError(
            "features",
            "must say how many inputs they take: by n_inputs, or as laconic.OwnFeatures(function, n_inputs).",
        )
    return int(shape[-1])
