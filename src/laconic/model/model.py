"""A model apart from the agents that learned it: inputs in, predictions out, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from laconic import _validate
from laconic._files import written_whole
from laconic._validate import Array
from laconic._worded import ArgumentError
from laconic.losses import LOSSES, expit
from laconic.model import as_c, as_onnx, files
from laconic.model.maps import FeatureMap

_NUMBERS_AT_A_TIME = 1 << 22  # features that exist at once while many rows are predicted
_PLAIN = (str, bool, int, float)
#: The loss whose margins are log-odds.
_ODDS = "logistic"
#: The loss whose margins are twice a probability less one, where labels are -1 and +1.
_SIGNS = "squared"


@final
class Model:
    """What was learned: y(x) = centre + scale * theta.phi(x), or the class that theta.phi(x) stands for.

    Models come from ``trace.model()``, ``estimator.model_``, ``agent.model()`` and ``laconic export``; they need NumPy
    alone, and as C or ONNX not even that.

    Parameters
    ----------
    feature_map : FeatureMap
        phi, the scaling of inputs included.
    weights : array (n_features,) or (n_features, n_outputs)
        theta, a column for each output.
    loss : str
        Name of the loss that it was learned with.
    centre, scale : float
        Of the labels, where these were centred and scaled to be learned.
    classes : sequence, optional
        The labels that the outputs stand for, words or numbers. Two of them for a single output, which is above 0 for
        the second; else one for each output, of which the largest wins. Default: -1 and +1 for a loss of such labels.
    inputs : sequence of str, optional
        Names of the inputs.
    target : str, optional
        Name of what is predicted.
    about : mapping, optional
        What it was learned from, in plain values.

    Attributes
    ----------
    feature_map, weights, loss, centre, scale, classes, inputs, target, about
        As above.

    Examples
    --------
    >>> import numpy as np, laconic as lc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(1000, 5, 2))
    >>> y = np.sin(4 * X[..., 0]) * X[..., 1]
    >>> features = lc.RandomFeatures.gaussian(n_inputs=2, n_frequencies=30, bandwidth=0.5, seed=0)
    >>> model = lc.simulate(lc.ODKLA(rho=0.2, eta=1.0), features, lc.Network.ring(5), X, y).model()
    >>> model
    Model(2 inputs -> waves -> 60 features -> 1 output, squared loss, ODKLA)
    >>> new = np.array([[0.2, 0.9], [0.8, 0.1]])
    >>> bool(abs(model.predict(new) - np.sin(4 * new[:, 0]) * new[:, 1]).max() < 0.2)
    True
    >>> "double" in model.to_c()
    True
    """

    def __init__(
        self,
        feature_map: FeatureMap,
        weights: object,
        *,
        loss: str = "squared",
        centre: float = 0.0,
        scale: float = 1.0,
        classes: Sequence[Any] | None = None,
        inputs: Sequence[str] | None = None,
        target: str | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        _validate.instance("feature_map", feature_map, FeatureMap, "a laconic.model.FeatureMap")
        self.feature_map = feature_map
        self.weights = _checked_weights(weights, feature_map.n_features)
        _validate.instance("loss", loss, str, "the name of a loss")
        self.loss = loss
        if classes is None and loss in LOSSES and LOSSES[loss].binary and self.weights.ndim == 1:
            classes = (-1, 1)
        self.classes = None if classes is None else _checked_classes(classes, self.n_outputs)
        self.centre, self.scale = _validate.number("centre", centre), _validate.number("scale", scale)
        if self.classes is not None and (self.centre, self.scale) != (0.0, 1.0):
            raise ArgumentError("classes", "are for labels that are neither centred nor scaled.")
        self.inputs = None if inputs is None else _checked_names(inputs, feature_map.n_inputs)
        if target is not None:
            _validate.instance("target", target, str, "a name")
        self.target = target
        self.about = dict(about or {})

    @property
    def n_inputs(self) -> int:
        """Length of an input."""
        return self.feature_map.n_inputs

    @property
    def n_outputs(self) -> int:
        """Number of outputs; of two classes there is one."""
        return 1 if self.weights.ndim == 1 else int(self.weights.shape[1])

    # Predictions ------------------------------------------------------------------------------------------------

    def decision(self, X: object) -> Array:
        """theta.phi(x) of inputs (..., n_inputs): shape (...), or (..., n_outputs) if the weights have columns."""
        rows = self._rows(X)
        flat = rows.reshape(-1, self.n_inputs)
        values = np.empty((len(flat), *self.weights.shape[1:]))
        step = max(1, _NUMBERS_AT_A_TIME // max(self.feature_map.n_features, *self.feature_map.sizes))
        for start in range(0, len(flat), step):
            values[start : start + step] = self.feature_map(flat[start : start + step]) @ self.weights
        return values.reshape((*rows.shape[:-1], *self.weights.shape[1:]))

    def predict(self, X: object) -> Array:
        """Predict the labels of inputs (..., n_inputs), or of a table with named columns.

        Where there are classes, their labels; else numbers, of shape (...), or (..., n_outputs) if there are several.
        """
        margins = self.decision(X)
        if self.classes is None:
            return self.centre + self.scale * margins
        winners = (margins > 0).astype(int) if self.weights.ndim == 1 else margins.argmax(axis=-1)
        labels: Array = np.array(self.classes)[winners]
        return labels

    def predict_proba(self, X: object) -> Array:
        """The probability of each of ``classes``, (..., n_classes); with the logistic or the squared loss.

        1/(1 + e^-m) of the logistic loss, (1 + m)/2 within [0, 1] of the squared one, which estimates 2 p - 1; of
        several outputs, each one's share of the sum of these.
        """
        if self.classes is None:
            raise ValueError("this model predicts numbers: there are no classes to have probabilities.")
        if self.loss not in (_ODDS, _SIGNS):
            raise ValueError(
                f"probabilities need the logistic or squared loss; this model was learned with {self.loss!r}."
            )
        margins = self.decision(X)
        if self.weights.ndim == 1:
            margins = np.stack([-margins, margins], axis=-1)
        odds = expit(margins) if self.loss == _ODDS else np.clip((1 + margins) / 2, 0, 1)
        total = odds.sum(axis=-1, keepdims=True)
        shares: Array = np.where(total > 0, odds / np.where(total > 0, total, 1.0), 1 / margins.shape[-1])
        return shares

    def _rows(self, X: object) -> Array:
        """Inputs as numbers; of a table with names, those of the model in its order."""
        columns = getattr(X, "columns", None)
        if columns is not None and self.inputs is not None:
            named = [str(name) for name in columns]
            missing = [name for name in self.inputs if name not in named]
            if missing:
                raise ArgumentError("X", f"must have a column {missing[0]!r}; its columns are {', '.join(named)}.")
            X = X[list(self.inputs)]  # type: ignore[index]
        rows = _validate.real_array("X", X, f"(..., {self.n_inputs})").astype(np.float64, copy=False)
        if rows.ndim == 0 or rows.shape[-1] != self.n_inputs:
            raise ArgumentError("X", f"must have shape (..., {self.n_inputs}), got {rows.shape}.")
        return _validate.finite("X", rows)

    # Files ------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the model as one ``.npz`` file, complete or not at all."""
        path = _validate.path("path", path)
        with written_whole(path) as file:
            file.write(self.to_bytes())
        return path

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read what ``save`` wrote.

        Files from anywhere may be read: nothing in them is executed, and what is damaged or no model is refused with a
        ValueError of one sentence.
        """
        path = _validate.path("path", path)
        with path.open("rb") as file:
            return cls._made(files.read(file, str(path)), str(path))

    def to_bytes(self) -> bytes:
        """The model as the content of a file."""
        header = {
            "loss": self.loss,
            "centre": self.centre,
            "scale": self.scale,
            "classes": None if self.classes is None else list(self.classes),
            "inputs": None if self.inputs is None else list(self.inputs),
            "target": self.target,
            "about": self.about,
        }
        return files.pack(header, self.weights, self.feature_map)

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        """The model in the content of a file; ValueError if there is none."""
        _validate.instance("data", data, (bytes, bytearray, memoryview), "the bytes of a model's file")
        return cls._made(files.read_bytes(bytes(data)), "data")

    @classmethod
    def _made(cls, stored: files.Stored, where: str) -> Model:
        with files.blamed(where):
            about = stored.header.pop("about")
            if not isinstance(about, dict):
                raise ValueError("it does not say what it was learned from")
            return cls(stored.feature_map, stored.weights, about=about, **stored.header)

    def to_c(self, name: str = "laconic") -> str:
        """The model as one C file that needs nothing but the mathematical library of C99.

        It has ``void NAME_predict(const double *x, double *y)``, and where there are classes ``int NAME_class(x)`` and,
        with the logistic loss, ``NAME_proba``. Compiled with ``-DNAME_MAIN`` (in capitals) it is a program that reads
        inputs and writes predictions, a line each:

            cc -O2 -DLACONIC_MAIN model.c -lm -o model
        """
        return as_c.write(self, name)

    def to_onnx(self, dtype: str = "float64") -> Any:
        """The model as an ``onnx.ModelProto``, for any runtime; ``laconic export -o model.onnx`` writes its file.

        Its input is ``X`` (n, n_inputs), its outputs ``prediction``, and where there are classes ``label``,
        ``decision`` and, with the logistic loss, ``probability``. In single precision, which small runtimes prefer,
        large phases lose digits.
        """
        return as_onnx.write(self, _validate.choice("dtype", dtype, ("float64", "float32")))

    def __repr__(self) -> str:
        outputs = "1 output" if self.n_outputs == 1 else f"{self.n_outputs} outputs"
        kinds = "" if self.classes is None else f", {len(self.classes)} classes"
        source = f", {self.about['name']}" if isinstance(self.about.get("name"), str) else ""
        inside = repr(self.feature_map)[len("FeatureMap(") : -1]
        return f"Model({inside} -> {outputs}{kinds}, {self.loss} loss{source})"


def _checked_weights(weights: object, n_features: int) -> Array:
    array = _validate.real_array("weights", weights, f"({n_features},) or ({n_features}, n_outputs)")
    if array.ndim not in (1, 2) or len(array) != n_features or 0 in array.shape:
        raise ArgumentError("weights", f"must have shape ({n_features},) or ({n_features}, n), got {array.shape}.")
    return np.array(_validate.finite("weights", array), dtype=np.float64, order="C")


def _checked_classes(classes: Sequence[Any], n_outputs: int) -> tuple[Any, ...]:
    """The labels of the classes as plain values, all of one kind."""
    _validate.instance("classes", classes, (list, tuple, np.ndarray), "a list of labels")
    labels = tuple(label.item() if isinstance(label, np.generic) else label for label in classes)
    expected = 2 if n_outputs == 1 else n_outputs
    if len(labels) != expected:
        raise ArgumentError("classes", f"must be {expected}, got {len(labels)}.")
    plain = all(isinstance(label, _PLAIN) for label in labels) and all(
        math.isfinite(label) for label in labels if isinstance(label, float)
    )
    if not plain or len({isinstance(label, str) for label in labels}) != 1 or len(set(labels)) < len(labels):
        shown = _validate.shown(list(classes))
        raise ArgumentError("classes", f"must be different words, or different numbers, got {shown}.")
    return labels


def _checked_names(inputs: Sequence[str], n_inputs: int) -> tuple[str, ...]:
    _validate.instance("inputs", inputs, (list, tuple, np.ndarray), "a list of names")
    names = tuple(str(name) for name in inputs if isinstance(name, str))
    if len(names) != n_inputs or len(set(names)) < n_inputs:
        shown = _validate.shown(list(inputs))
        raise ArgumentError("inputs", f"must be {n_inputs} different names, got {shown}.")
    return names
