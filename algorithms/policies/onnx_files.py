"""The networks of ONNX files: `[N, size]` in, with or without an `[N, A]` mask; `[N, A]` out.

An ONNX graph can loop forever or grow to any size. So only operators are allowed whose cost follows
from the shapes of their inputs, and the shapes of all values are computed and added up before
onnxruntime sees the graph. The batch has a fixed number of rows, so that all shapes are known.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
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

# The operators that are allowed: the cost of each follows from the shapes of its inputs.
_ARITHMETIC = """
    Abs Add Clip Div Erf Exp Log Max Mean Min Mul Neg Pow Reciprocal Sqrt Sub Sum
"""
_LOGIC = """
    And Equal Greater GreaterOrEqual Less LessOrEqual Not Or Where
"""
_SHAPES = """
    Cast Concat Constant Flatten Identity Reshape Squeeze Transpose Unsqueeze
"""
_LAYERS = """
    BatchNormalization Dropout Gemm LayerNormalization MatMul ReduceMax ReduceMean ReduceSum
"""
_ACTIVATIONS = """
    Celu Elu Gelu HardSigmoid HardSwish LeakyRelu LogSoftmax Mish PRelu Relu Selu Sigmoid
    Softmax Softplus Softsign Tanh ThresholdedRelu
"""
OPERATORS = {
    *_ARITHMETIC.split(),
    *_LOGIC.split(),
    *_SHAPES.split(),
    *_LAYERS.split(),
    *_ACTIVATIONS.split(),
}
_PLAIN_ATTRIBUTES = {
    onnx.AttributeProto.FLOAT,
    onnx.AttributeProto.INT,
    onnx.AttributeProto.STRING,
    onnx.AttributeProto.TENSOR,
    onnx.AttributeProto.FLOATS,
    onnx.AttributeProto.INTS,
}

TensorTypes: TypeAlias = dict[str, Any]  # the types of inputs, by name; ONNX has no Python types


def read_onnx(path: Path, *, trust: bool = False) -> tuple[str | None, Network]:
    """The game that an ONNX file names, and its network; errors do not name the file.

    With `trust` all operators and sizes are allowed.
    """
    content = path.read_bytes() if trust else read_bytes(path, max_bytes=MAX_BYTES)
    try:
        model = onnx.load_model_from_string(content)
        if not trust:
            _require_few_parts(model)
        metadata = {entry.key: entry.value for entry in model.metadata_props}
        inputs = _input_types(model.graph)
        rows = _fix_batch(inputs)
        if not trust:
            model = _bounded(model, rows)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return metadata.get("game"), _network(session, inputs, rows)
    except BridgeError:
        raise
    except Exception as error:  # the errors of these libraries have no common base
        raise PolicyError(f"onnxruntime cannot run it ({first_line(error)})") from None


def _require_few_parts(model: onnx.ModelProto) -> None:
    """Raise an error if a parsed model has too many parts to look at one by one."""
    graph = model.graph
    lists = (
        graph.node,
        graph.initializer,
        graph.input,
        graph.output,
        model.metadata_props,
        model.opset_import,
    )
    too_many = any(len(parts) > MAX_NODES for parts in lists)
    if too_many or sum(node.ByteSize() for node in graph.node) > MAX_NODE_BYTES:
        raise _needs_trust(f"more than {MAX_NODES:,} nodes or {MAX_NODE_BYTES:,} bytes of nodes")


def _input_types(graph: onnx.GraphProto) -> TensorTypes:
    """The types of the inputs, by name; an error unless all are matrices of known width."""
    weights = {tensor.name for tensor in graph.initializer}
    types = {
        graph_input.name: graph_input.type.tensor_type
        for graph_input in graph.input
        if graph_input.name not in weights
    }
    for kind in types.values():
        if len(kind.shape.dim) != 2 or not kind.shape.dim[1].dim_value:
            raise PolicyError("its inputs must be [N, size of an observation] and [N, actions]")
    if not types:
        raise PolicyError("its inputs must be [N, size of an observation] and [N, actions]")
    return types


def _fix_batch(inputs: TensorTypes) -> int:
    """The number of rows that all inputs now have: the file's own, or `BATCH`."""
    numbers_of_rows = [kind.shape.dim[0].dim_value for kind in inputs.values()]
    rows = next((number for number in numbers_of_rows if number), BATCH)
    for kind in inputs.values():
        kind.shape.dim[0].dim_value = rows
    return rows


def _bounded(model: onnx.ModelProto, rows: int) -> onnx.ModelProto:
    """A copy with only nodes and weights, all within the limits."""
    graph = model.graph
    for node in graph.node:
        attribute_types = {attribute.type for attribute in node.attribute}
        is_plain = attribute_types <= _PLAIN_ATTRIBUTES
        if node.op_type not in OPERATORS or node.domain or not is_plain:
            raise _needs_trust(f"the operator {short_repr(node.op_type)}")
    constants = [attribute.t for node in graph.node for attribute in node.attribute]
    if any(uses_external_data(tensor) for tensor in (*graph.initializer, *constants)):
        raise PolicyError("its weights must be in the file itself")
    weights = {tensor.name for tensor in graph.initializer}
    copied_graph = helper.make_graph(
        nodes=graph.node,
        name="policy",
        inputs=[graph_input for graph_input in graph.input if graph_input.name not in weights],
        outputs=[helper.make_empty_tensor_value_info(output.name) for output in graph.output],
        initializer=[
            numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name)
            for tensor in graph.initializer
        ],
    )
    copy = helper.make_model(
        copied_graph,
        opset_imports=[entry for entry in model.opset_import if not entry.domain],
        ir_version=max(4, model.ir_version),  # from 4 on weights need not be inputs too
    )
    inferred = shape_inference.infer_shapes(copy, strict_mode=True, data_prop=True)
    _require_small(inferred.graph, rows)
    return inferred


def _require_small(graph: onnx.GraphProto, rows: int) -> None:
    """Raise an error if the values or the operations of a batch exceed the limits."""
    # The number of elements and the length of a row of every value, by name.
    sizes = {tensor.name: math.prod(tensor.dims) for tensor in graph.initializer}
    row_lengths = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        shape = [size.dim_value if size.HasField("dim_value") else -1 for size in kind.shape.dim]
        is_known = kind.HasField("shape") and min(shape, default=0) >= 0
        if is_known and kind.elem_type != TensorProto.STRING:
            sizes[value.name] = math.prod(shape)
            row_lengths[value.name] = shape[-1] if shape else 1

    elements = sum(sizes.get(graph_input.name, 0) for graph_input in graph.input)
    operations = 0
    for node in graph.node:
        names = [name for name in (*node.input, *node.output) if name]
        for name in names:
            if name not in sizes:
                raise _needs_trust(f"the value {short_repr(name)} of unknown shape")
        elements += sum(sizes[name] for name in node.output if name)
        operations += sum(sizes[name] for name in names)
        if node.op_type in ("Gemm", "MatMul"):  # each row of the output takes all of the weights
            output = node.output[0]
            output_rows_times_weights = sizes[output] * sizes[node.input[1]]
            operations += output_rows_times_weights // max(1, row_lengths[output])
    if elements > MAX_ELEMENTS or operations > MAX_OPERATIONS * max(rows, MIN_ROWS):
        raise _needs_trust("a graph that takes so much memory or time")


@dataclass(frozen=True, slots=True)
class _Session:
    """A session, and what its inputs are like."""

    session: onnxruntime.InferenceSession
    inputs: TensorTypes
    rows: int  # of every input

    @property
    def widths(self) -> dict[str, int]:
        """The number of columns of each input."""
        return {name: kind.shape.dim[1].dim_value for name, kind in self.inputs.items()}

    def run(self, outputs: Sequence[str], given: Mapping[str, npt.NDArray[Any]]) -> list[Any]:
        """These outputs of the graph, whose inputs are converted to its own types."""
        converted = {}
        for name, array in given.items():
            dtype = helper.tensor_dtype_to_np_dtype(self.inputs[name].elem_type)
            converted[name] = array.astype(dtype)
        return list(self.session.run(list(outputs), converted))


def _network(session: onnxruntime.InferenceSession, inputs: TensorTypes, rows: int) -> Network:
    """The `Network` of a session with inputs of these types, which have `rows` rows.

    Its output is the one called `logits` or `probabilities`, or else the first `[N, A]`. Under
    another name it is logits, unless all rows of a trial are probabilities.
    """
    graph = _Session(session, inputs, rows)
    outputs = _trial(graph)
    named = [name for name in ("logits", "probabilities") if name in outputs]
    chosen = [*named, *outputs][0]
    values = outputs[chosen]
    actions = values.shape[1]
    observation, mask = _roles_of_inputs(graph.widths, actions)

    def evaluate(observed: Float32Array, legal: BoolArray) -> npt.ArrayLike:
        parts = []
        for start in range(0, len(observed), rows):
            batch: dict[str, npt.NDArray[Any]] = {observation: observed[start : start + rows]}
            if mask is not None:
                batch[mask] = legal[start : start + rows]
            missing = rows - len(batch[observation])
            padded = {name: np.pad(array, ((0, missing), (0, 0))) for name, array in batch.items()}
            [part] = graph.run([chosen], padded)
            parts.append(part)
        return np.concatenate(parts)[: len(observed)]

    if chosen in ("logits", "probabilities"):
        output: Output = "logits" if chosen == "logits" else "probabilities"
    else:
        sums_to_one = np.allclose(values.sum(axis=1), 1, atol=1e-4)
        output = "probabilities" if (values >= 0).all() and sums_to_one else "logits"
    return Network(evaluate, graph.widths[observation], actions, output)


def _trial(graph: _Session) -> dict[str, npt.NDArray[Any]]:
    """The outputs `[N, A]` of a graph for random inputs, by name; an error if there are none."""
    random = np.random.default_rng(0)
    inputs = {
        # Numbers from 1 to 3: as a mask they allow all actions.
        name: random.integers(1, 4, (graph.rows, width))
        for name, width in graph.widths.items()
    }
    names = [output.name for output in graph.session.get_outputs()]
    outputs = {}
    for name, values in zip(names, graph.run(names, inputs), strict=True):
        if np.ndim(values) == 2 and len(values) == graph.rows and values.shape[1] > 1:
            outputs[name] = values
    if not outputs:
        raise PolicyError(f"no output is [N, actions]; they are {short_repr(names)}")
    return outputs


def _roles_of_inputs(widths: Mapping[str, int], actions: int) -> tuple[str, str | None]:
    """The names of the observation and of the action mask, if there is one."""
    masks = [name for name, width in widths.items() if width == actions]
    masks.sort(key=lambda name: "mask" not in name.lower())  # those called masks first
    mask = masks[0] if masks and len(widths) > 1 else None
    observations = [name for name in widths if name != mask]
    if len(observations) != 1:
        want = f"want one observation and at most one action mask, [N, {actions}]"
        raise PolicyError(f"its inputs have {short_repr([*widths.values()])} columns; {want}")
    return observations[0], mask


def _needs_trust(what: str) -> PolicyError:
    how = "trust=True, or --trust of a command"
    return PolicyError(f"{what} is not allowed in an ONNX file unless you trust it ({how})")
