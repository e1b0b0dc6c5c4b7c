"""What was learned, to be taken away: a model that predicts with NumPy alone, as a file, as ONNX, or as C."""

from laconic.model.maps import FeatureMap
from laconic.model.model import Model

__all__ = ["FeatureMap", "Model"]
