"""The networks of ONNX files: `[N, size]` in, with or without an `[N, A]` mask; `[N, A]` out.

An ONNX graph can loop forever or grow to any size. So only operators are allowed whose cost follows
from the shapes of their inputs, and the shapes of all values are computed and added up before
onnxruntime sees the graph. The batch has a fixed number of rows, so that all shapes are known.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, shape_inference
from onnx.external_data_helper import uses_external_data

from algorithms.policies.network import Network, Output
from algorithms.support.arrays import BoolArray, Float32Array
from algorithms.support.errors import first_line
from algorithms.support.files import read_bytes
from kuhn_bridge.errors import BridgeError, PolicyError, short_repr

MAX_BYTES = 16 * 2**20  # of the file; empty messages take 80 times their size when parsed
MAX_NODES = 1_000  # also of inputs, outputs, weights and metadata
MAX_NODE_BYTES = 2**20  # of all nodes, their constants included
MAX_ELEMENTS = 2**26  # of all values of a batch
MAX_OPERATIONS = 2**23  # per row: multiplications, and elements read or written
MIN_ROWS = 16  # small batches may use as many operations as this many rows
BATCH = 1_024  # rows, if the file leaves the number open

OPERATORS = {
    *("Abs", "Add", "And", "BatchNormalization", "Cast", "Celu", "Clip", "Concat", "Constant"),
    *("Div", "Dropout", "Elu", "Equal", "Erf", "Exp", "Flatten", "Gelu", "Gemm", "Greater"),
    *("GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity", "LayerNormalization", "LeakyRelu"),
    *("Less", "LessOrEqual", "Log", "LogSoftmax", "MatMul", "Max", "Mean", "Min", "Mish", "Mul"),
    *("Neg", "Not", "Or", "PRelu", "Pow", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceSum"),
    *("Relu", "Reshape", "Selu", "Sigmoid", "Softmax", "Softplus", "Softsign", "Sqrt", "Squeeze"),
    *("Sub", "Sum", "Tanh", "ThresholdedRelu", "Transpose", "Unsqueeze", "Where"),
}
_PLAIN_ATTRIBUTES = {
    getattr(onnx.AttributeProto, kind)
    for kind in ("FLOAT", "INT", "STRING", "TENSOR", "FLOATS", "INTS")
}


def read_onnx(path: Path, *, trust: bool = False) -> tuple[str | None, Network]:
    """The game that an ONNX file names, and its network; errors do not name the file.

    With `trust` all operators and sizes are allowed.
    """
    content = path.read_bytes() if trust else read_bytes(path, max_bytes=MAX_BYTES)
    try:
        model = onnx.load_model_from_string(content)
        if not trust:
            _require_few_parts(model)
        game = {entry.key: entry.value for entry in model.metadata_props}.get("game")
        inputs, rows = _fix_batch(model.graph)
        if not trust:
            model = _bounded(model, rows)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        content, providers = model.SerializeToString(), ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(content, options, providers)
        return game, _network(session, inputs, rows)
    except BridgeError:
        raise
    except Exception as error:  # the errors of these libraries have no common base
        raise PolicyError(f"onnxruntime cannot run it ({first_line(error)})") from None


def _require_few_parts(model: Any) -> None:
    """Raise an error if a parsed model has too many parts to look at one by one."""
    graph, others = model.graph, (model.metadata_props, model.opset_import)
    parts = (graph.node, graph.initializer, graph.input, graph.output, *others)
    if max(map(len, parts)) > MAX_NODES or sum(n.ByteSize() for n in graph.node) > MAX_NODE_BYTES:
        raise _needs_trust(f"more than {MAX_NODES:,} nodes or {MAX_NODE_BYTES:,} bytes of nodes")


def _fix_batch(graph: Any) -> tuple[dict[str, Any], int]:
    """The types of the inputs, by name, and the number of rows that all of them now have."""
    weights = {tensor.name for tensor in graph.initializer}
    kinds = {i.name: i.type.tensor_type for i in graph.input if i.name not in weights}
    shapes = [kind.shape.dim for kind in kinds.values()]
    if not shapes or any(len(shape) != 2 or not shape[1].dim_value for shape in shapes):
        raise PolicyError("its inputs must be [N, size of an observation] and [N, actions]")
    rows = next((shape[0].dim_value for shape in shapes if shape[0].dim_value), BATCH)
    for shape in shapes:
        shape[0].dim_value = rows
    return kinds, rows


def _bounded(model: Any, rows: int) -> Any:
    """A copy with only nodes and weights, all within the limits."""
    graph = model.graph
    for node in graph.node:
        kinds = {attribute.type for attribute in node.attribute}
        if node.op_type not in OPERATORS or node.domain or kinds - _PLAIN_ATTRIBUTES:
            raise _needs_trust(f"the operator {short_repr(node.op_type)}")
    constants = (attribute.t for node in graph.node for attribute in node.attribute)
    if any(map(uses_external_data, (*graph.initializer, *constants))):
        raise PolicyError("its weights must be in the file itself")
    weights = {tensor.name for tensor in graph.initializer}
    copy = helper.make_model(
        helper.make_graph(
            graph.node,
            "policy",
            [given for given in graph.input if given.name not in weights],
            [helper.make_empty_tensor_value_info(output.name) for output in graph.output],
            [numpy_helper.from_array(numpy_helper.to_array(t), t.name) for t in graph.initializer],
        ),
        opset_imports=[entry for entry in model.opset_import if not entry.domain],
        ir_version=max(4, model.ir_version),  # from 4 on weights need not be inputs too
    )
    inferred = shape_inference.infer_shapes(copy, strict_mode=True, data_prop=True)
    _require_small(inferred.graph, rows)
    return inferred


def _require_small(graph: Any, rows: int) -> None:
    """Raise an error if the values or the operations of a batch exceed the limits."""
    sizes = {tensor.name: math.prod(tensor.dims) for tensor in graph.initializer}
    last = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim]
        is_known = kind.HasField("shape") and min(shape, default=0) >= 0
        if is_known and kind.elem_type != TensorProto.STRING:
            sizes[value.name], last[value.name] = math.prod(shape), [1, *shape][-1]
    elements, operations = sum(sizes.get(given.name, 0) for given in graph.input), 0
    for node in graph.node:
        names = [name for name in (*node.input, *node.output) if name]
        if unknown := [name for name in names if name not in sizes]:
            raise _needs_trust(f"the value {short_repr(unknown[0])} of unknown shape")
        elements += sum(sizes[name] for name in node.output if name)
        operations += sum(sizes[name] for name in names)
        if node.op_type in ("Gemm", "MatMul"):  # each row of the output takes all of the weights
            output = node.output[0]
            operations += sizes[output] * sizes[node.input[1]] // max(1, last[output])
    if elements > MAX_ELEMENTS or operations > MAX_OPERATIONS * max(rows, MIN_ROWS):
        raise _needs_trust("a graph that takes so much memory or time")


def _network(session: Any, inputs: dict[str, Any], rows: int) -> Network:
    """The `Network` of a session with inputs of these types, which have `rows` rows.

    Its output is the one called `logits` or `probabilities`, or else the first `[N, A]`. Under
    another name it is logits, unless all rows of a trial are probabilities.
    """
    names = [output.name for output in session.get_outputs()]
    sizes = {name: kind.shape.dim[1].dim_value for name, kind in inputs.items()}

    def run(names: list[str], given: dict[str, Any]) -> list[Any]:
        dtypes = {n: helper.tensor_dtype_to_np_dtype(inputs[n].elem_type) for n in given}
        return list(session.run(names, {n: array.astype(dtypes[n]) for n, array in given.items()}))

    random = np.random.default_rng(0)  # numbers from 1 to 3: as a mask they allow all actions
    trial = {name: random.integers(1, 4, (rows, size)) for name, size in sizes.items()}
    outputs = {
        name: found
        for name, found in zip(names, run(names, trial), strict=True)
        if np.ndim(found) == 2 and len(found) == rows and found.shape[1] > 1
    }
    if not outputs:
        raise PolicyError(f"no output is [N, actions]; they are {short_repr(names)}")
    chosen = next((n for n in ("logits", "probabilities") if n in outputs), next(iter(outputs)))
    values = outputs[chosen]
    actions = values.shape[1]
    masks = [name for name, size in sizes.items() if size == actions]
    masks.sort(key=lambda name: "mask" not in name.lower())
    mask = masks[0] if masks and len(inputs) > 1 else None
    observations = [name for name in inputs if name != mask]
    if len(observations) != 1:
        want = f"want one observation and at most one action mask, [N, {actions}]"
        raise PolicyError(f"its inputs have {short_repr([*sizes.values()])} columns; {want}")

    def evaluate(observed: Float32Array, legal: BoolArray) -> Any:
        found = []
        for start in range(0, len(observed), rows):
            part = slice(start, start + rows)
            feed = {observations[0]: observed[part], **({mask: legal[part]} if mask else {})}
            missing = ((0, rows - len(observed[part])), (0, 0))
            padded = {name: np.pad(array, missing) for name, array in feed.items()}
            found += run([chosen], padded)
        return np.concatenate(found)[: len(observed)]

    sums_to_one = (values >= 0).all() and np.allclose(values.sum(axis=1), 1, atol=1e-4)
    is_logits = chosen == "logits" or (chosen != "probabilities" and not sums_to_one)
    output: Output = "logits" if is_logits else "probabilities"
    return Network(evaluate, sizes[observations[0]], actions, output)


def _needs_trust(what: str) -> PolicyError:
    return PolicyError(f"{what} is not allowed in an ONNX file unless you trust it")
