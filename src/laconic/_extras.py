"""Packages that not everybody has: imported where they are used, and missed in one sentence that says what to install.

``pip install .`` in a clone brings whatever simulations, estimators and pictures need, an extra the rest. A small
device has only NumPy and zenoh (``docs/agents.md``, thin devices), and whatever it does not use it does not miss.

No sentence names ``laconic`` as what pip is to install: on the package index that name is another project's, with the
same import and the same command. The missing package alone is enough, however laconic itself was installed.
"""

from __future__ import annotations

import importlib
from typing import Any

#: Packages by the module that is imported, with the extra that brings them; None: they come with laconic itself.
_PACKAGES: dict[str, tuple[str, str | None]] = {
    "cbor2": ("cbor2", "agents"),
    "cryptography": ("cryptography", "agents"),
    "h5py": ("h5py", "data"),
    "jinja2": ("jinja2", None),
    "joblib": ("joblib", None),
    "matplotlib": ("matplotlib", None),
    "mpi4py": ("mpi4py", "mpi"),
    "networkx": ("networkx", None),
    "onnx": ("onnx", "onnx"),
    "paho": ("paho-mqtt", "agents"),
    "polars": ("polars", None),
    "pooch": ("pooch", None),
    "prometheus_client": ("prometheus-client", "agents"),
    "pymetis": ("pymetis", "mpi"),
    "rich": ("rich", None),
    "river": ("river", "river"),
    "scipy": ("scipy", None),
    "sklearn": ("scikit-learn", None),
    "starlette": ("starlette", "dashboard"),
    "tqdm": ("tqdm", None),
    "uvicorn": ("uvicorn", "dashboard"),
    "websockets": ("websockets", "dashboard"),
    "zenoh": ("eclipse-zenoh", "agents"),
}


class MissingPackage(ModuleNotFoundError, ValueError):
    """A package that is needed for what was asked, and is not installed."""


def need(module: str, what: str) -> Any:
    """Import ``module``; if its package is not there, say that ``what`` needs it.

    Examples
    --------
    >>> need("numpy.linalg", "a norm").__name__
    'numpy.linalg'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise explain(error, what) from None


def explain(error: ModuleNotFoundError, what: str) -> ModuleNotFoundError:
    """The error of an import in one sentence, if it is about a package that laconic may do without; else itself.

    Examples
    --------
    >>> print(explain(ModuleNotFoundError(name="paho.mqtt"), "MQTT"))
    MQTT needs paho-mqtt: pip install paho-mqtt, or, in a clone, pip install '.[agents]'.
    >>> print(explain(ModuleNotFoundError(name="scipy"), "a test"))
    a test needs scipy: pip install scipy, or, in a clone, pip install '.'.
    """
    package = _PACKAGES.get((error.name or "").split(".")[0])
    if package is None or isinstance(error, MissingPackage):
        return error
    name, extra = package
    whole = "'.'" if extra is None else f"'.[{extra}]'"
    words = f"{what} needs {name}: pip install {name}, or, in a clone, pip install {whole}."
    return MissingPackage(words, name=error.name)
