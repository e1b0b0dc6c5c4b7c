"""A model as an ONNX graph of plain operators, which any runtime knows in double and in single precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from laconic import _extras
from laconic._validate import Array
from laconic._version import __version__

if TYPE_CHECKING:
    from laconic.model.model import Model

#: The operators are those of 2022: runtimes of then and now read it.
OPSET, IR_VERSION = 17, 8


@final
class Graph:
    """An ONNX graph that is being written; results are named by the order in which they come."""

    def __init__(self, dtype: str) -> None:
        self.onnx = _extras.need("onnx", "to_onnx")
        self._extras = _extras.need("onnx.numpy_helper", "to_onnx")
        self.dtype = np.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Array) -> str:
        """A tensor of constants; its name. Real numbers get the precision of the graph."""
        array = np.asarray(values)
        named = f"c{len(self.constants)}"
        if array.dtype.kind == "f":
            array = array.astype(self.dtype)
        self.constants.append(self._extras.from_array(np.ascontiguousarray(array).reshape(array.shape), named))
        return named

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Apply an operator; the name of its result."""
        named = f"t{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [named], **attributes))
        return named

    def call(self, name: str, what: str) -> None:
        """Give a result the ``name`` of an output."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [what], [name]))


def write(model: Model, dtype: str) -> Any:
    """The ONNX model of a model; see ``Model.to_onnx``."""
    graph = Graph(dtype)
    vector = "X"
    for stage in model.feature_map.stages:
        vector = stage.write_onnx(graph, vector)
    blocks = [block.write_onnx(graph, vector) for block in model.feature_map.blocks]
    phi = blocks[0] if len(blocks) == 1 else graph.node("Concat", *blocks, axis=1)
    single = model.weights.ndim == 1
    # The scale of labels goes into the weights: runtimes would make it part of the product, in single precision.
    weights = model.weights.reshape(-1, model.n_outputs) * model.scale
    margins = graph.node("MatMul", phi, graph.constant(weights))
    flat = graph.node("Squeeze", margins, graph.constant(np.array([1], dtype=np.int64))) if single else margins
    helper, proto = graph.onnx.helper, graph.onnx.TensorProto
    real = proto.DOUBLE if dtype == "float64" else proto.FLOAT
    shape: list[Any] = ["n"] if single else ["n", model.n_outputs]
    if model.classes is None:
        graph.call("prediction", graph.node("Add", flat, graph.constant(np.array(model.centre))))
        outputs = [helper.make_tensor_value_info("prediction", real, shape)]
    else:
        outputs = _classes(model, graph, margins, flat, shape, real)
    made = helper.make_graph(
        graph.nodes,
        "laconic",
        [helper.make_tensor_value_info("X", real, ["n", model.n_inputs])],
        outputs,
        graph.constants,
    )
    opset = helper.make_opsetid("", OPSET)
    proto_model = helper.make_model(
        made, opset_imports=[opset], ir_version=IR_VERSION, producer_name="laconic", producer_version=__version__
    )
    described = {"model": repr(model), **{f"about.{key}": str(value) for key, value in model.about.items()}}
    if model.inputs is not None:
        described["inputs"] = ", ".join(model.inputs)
    helper.set_model_props(proto_model, described)
    graph.onnx.checker.check_model(proto_model)
    return proto_model


def _classes(model: Model, graph: Graph, margins: str, flat: str, shape: list[Any], real: Any) -> list[Any]:
    """The outputs of a model of classes: label, decision and, with the logistic loss, probability."""
    assert model.classes is not None
    helper, proto = graph.onnx.helper, graph.onnx.TensorProto
    if model.weights.ndim == 1:
        above = graph.node("Greater", flat, graph.constant(np.array(0.0)))
        winner = graph.node("Cast", above, to=proto.INT64)
    else:
        winner = graph.node("ArgMax", margins, axis=1, keepdims=0)
    labels = np.array(model.classes)
    labels = labels.astype(object) if labels.dtype.kind == "U" else labels
    graph.call("label", graph.node("Gather", graph.constant(labels), winner, axis=0))
    kind = {"O": proto.STRING, "b": proto.BOOL, "i": proto.INT64, "f": real}[labels.dtype.kind]
    graph.call("decision", flat)
    outputs = [helper.make_tensor_value_info("label", kind, ["n"])]
    outputs.append(helper.make_tensor_value_info("decision", real, shape))
    if model.loss == "logistic":
        if model.weights.ndim == 1:
            both = graph.node("Concat", graph.node("Neg", margins), margins, axis=1)
            odds = _expit(graph, both)
        else:
            odds = _expit(graph, margins)
            axis = graph.constant(np.array([1], dtype=np.int64))
            odds = graph.node("Div", odds, graph.node("ReduceSum", odds, axis, keepdims=1))
        graph.call("probability", odds)
        outputs.append(helper.make_tensor_value_info("probability", real, ["n", len(model.classes)]))
    return outputs


def _expit(graph: Graph, margins: str) -> str:
    one = graph.constant(np.array(1.0))
    return graph.node("Div", one, graph.node("Add", one, graph.node("Exp", graph.node("Neg", margins))))
