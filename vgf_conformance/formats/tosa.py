"""Read a serialized TOSA graph (flatbuffers, ``*.tosa``) into plain Python and numpy.

The accessors that flatc generates from TOSA's schema (``tosa_schema.py``) are read
generically: a vector field has the companion methods ``XAsNumpy`` and ``XLength``,
a scalar field has none, so that a new operator's attributes need no code here.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from vgf_conformance.formats import tosa_schema
from vgf_conformance.formats.budget import Budget
from vgf_conformance.untrusted import Malformed

#: TOSA's name of an element type -> ours: a numpy name, or the name that TOSA alone has.
DTYPES = {
    "BOOL": "bool",
    "INT4": "int4",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT48": "int48",
    "INT64": "int64",
    "FP32": "float32",
    "FP16": "float16",
    "BF16": "bfloat16",
    "SHAPE": "shape",
    "FP8E4M3": "float8_e4m3fn",
    "FP8E5M2": "float8_e5m2",
}

#: Attributes whose number names a member of one of the schema's enumerations.
ENUMERATIONS = {
    "nan_mode": "NanPropagationMode",
    "rounding_mode": "RoundingMode",
    "mode": "ResizeMode",
    "acc_type": "DType",
}

CONSTANTS = frozenset({"CONST", "CONST_SHAPE"})

#: Attributes of control flow that name a region: a branch, or a loop's condition or body.
_REGIONS = {"COND_IF": ("then_graph", "else_graph"), "WHILE_LOOP": ("cond_graph", "body_graph")}
#: The region that a run starts with.
_MAIN = "main"

#: Operators whose second input may have a dtype of its own.
_DOT_PRODUCTS = frozenset({"CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D", "MATMUL"})


@dataclass(frozen=True)
class TosaTensor:
    """A tensor or shape of the graph; ``data`` is its content where it is constant.

    ``dtype`` is a numpy name, or ``int4``, ``int48`` or ``shape``, whose data comes
    as int8, int64 and int64.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    data: NDArray[Any] | None = None


@dataclass(frozen=True)
class TosaOperator:
    """One operator; inputs and outputs name tensors of the graph.

    Enumerations among the attributes are given by name (``acc_type`` in our dtype
    names), and CLAMP's ``min_val`` and ``max_val`` as numbers. ``location`` is what the
    compiler noted about where the operator comes from.
    """

    name: str
    attributes: dict[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    location: str = ""


@dataclass(frozen=True)
class TosaGraph:
    """A graph of one basic block, operators in an order in which they can run.

    ``regions`` are the branches and the loops' conditions and bodies that COND_IF and WHILE_LOOP name,
    wherever they are nested: each is a graph of its own, with its own tensors and without regions.
    """

    version: str
    tensors: dict[str, TosaTensor]
    operators: tuple[TosaOperator, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    regions: Mapping[str, TosaGraph] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[TosaGraph, ...]:
        """The graph itself and its regions."""
        return (self, *self.regions.values())

    def operator_counts(self) -> dict[str, int]:
        """How often each operator occurs, by name, regions included; constants are left out."""
        names = (operator.name for part in self.parts for operator in part.operators)
        return dict(sorted(Counter(name for name in names if name not in CONSTANTS).items()))

    def operator_dtypes(self) -> dict[str, dict[str, int]]:
        """As operator_counts, with each operator's count divided by the dtype that it works on."""
        found: dict[str, Counter[str]] = {name: Counter() for name in self.operator_counts()}
        for part in self.parts:
            for operator in part.operators:
                if operator.name in found:
                    found[operator.name][part._dtype_of(operator)] += 1
        return {name: dict(sorted(counts.items())) for name, counts in found.items()}

    def _dtype_of(self, operator: TosaOperator) -> str:
        """That of the operator's first tensor; a dot product of two types says both: ``int8 x int4``."""
        # The first input of these is the condition, whatever the values are.
        inputs = operator.inputs[1:] if operator.name in ("SELECT", "COND_IF") else operator.inputs
        dtypes = [self.tensors[name].dtype for name in (*inputs, *operator.outputs)]
        if operator.name in _DOT_PRODUCTS and dtypes[1] != dtypes[0]:
            return f"{dtypes[0]} x {dtypes[1]}"
        return dtypes[0] if dtypes else ""


def read_graph(data: bytes) -> TosaGraph:
    """Read a TOSA flatbuffer.

    What the graph says holds together as far as its form goes: names are declared once, constants have all
    the bytes of their shape, operators have their own attributes. What the operators make of it is looked
    at by ``tosa_rules``. Raises Malformed ("not a TOSA flatbuffer: ...") on corrupt data, and where a region
    has several blocks: the backend emits one in each, and only such graphs are read.
    """
    if data[4:8] != b"TOSA":
        raise Malformed(f"not a TOSA flatbuffer: file identifier is {data[4:8]!r}")
    try:
        root = schema("TosaGraph").GetRootAs(bytearray(data))
        return _Reader(Budget(len(data))).whole(root)
    except Malformed as error:
        raise Malformed(f"not a TOSA flatbuffer: {error}") from error
    except Exception as error:  # flatbuffers does not verify: anything may be raised on corrupt data
        raise Malformed(f"not a TOSA flatbuffer: {type(error).__name__}: {error}") from error


def _version(version: Any) -> str:
    text = f"{version._Major()}.{version._Minor()}.{version._Patch()}"
    return f"{text}-draft" if version._Draft() else text


class _Reader:
    """Reads the parts of one graph, none of them larger than the file can hold."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def whole(self, root: Any) -> TosaGraph:
        """The graph of the main region, with the others as its regions; raises Malformed."""
        version, found = _version(root.Version()), self._items(root, "Regions")
        names = [self._text(region.Name()) for region in found]
        if len(set(names)) < len(names):
            raise Malformed(f"the region {Counter(names).most_common(1)[0][0]!r} is there twice")
        graphs = {
            name: self.graph(self._block(name, region), version)
            for name, region in zip(names, found, strict=True)
        }
        # A graph of one region has been read whatever its name is.
        first = names[0] if len(names) == 1 else _MAIN
        if first not in graphs:
            raise Malformed(f"none of its {len(names)} regions is called {_MAIN!r}")
        main = graphs.pop(first)
        _require_regions(main, graphs)
        return replace(main, regions=graphs)

    def _block(self, name: str, region: Any) -> Any:
        blocks = self._items(region, "Blocks")
        if len(blocks) != 1:
            raise Malformed(f"the region {name!r} has {len(blocks)} blocks: only one is supported")
        return blocks[0]

    def graph(self, block: Any, version: str) -> TosaGraph:
        """The graph of a block; raises Malformed."""
        found = [*map(self._tensor, self._items(block, "Tensors"))]
        found += map(self._shape, self._items(block, "Shapes"))
        tensors = {tensor.name: tensor for tensor in found}
        if len(tensors) < len(found):
            twice = Counter(tensor.name for tensor in found).most_common(1)[0][0]
            raise Malformed(f"the tensor {twice!r} is declared twice")
        operators = tuple(self._operator(item, tensors) for item in self._items(block, "Operators"))
        graph = TosaGraph(
            version, tensors, operators, self._names(block, "Inputs"), self._names(block, "Outputs")
        )
        _require_declared(graph)
        return graph

    def _tensor(self, item: Any) -> TosaTensor:
        shape = tuple(int(item.Shape(axis)) for axis in range(self._count(item.ShapeLength())))
        dtype, data = _dtype(item.Type()), self._bytes(item, "Data")
        name = self._text(item.Name())
        return TosaTensor(name, shape, dtype, _constant(name, data, dtype, shape) if data else None)

    def _shape(self, item: Any) -> TosaTensor:
        shape = (int(item.Rank()),)
        data, name = self._bytes(item, "Data"), self._text(item.Name())
        # A shape of rank 0 is constant too, and serialized as one unused number.
        constant = bool(data) or shape == (0,)
        return TosaTensor(name, shape, "shape", _constant(name, data, "shape", shape) if constant else None)

    def _operator(self, item: Any, tensors: dict[str, TosaTensor]) -> TosaOperator:
        name, inputs = _member("Op", item.Op()), self._names(item, "Inputs")
        kind = _member("Attribute", item.AttributeType())
        if kind not in ("NONE", attribute_kind(name)):
            raise Malformed(f"an operator {name} has the attributes of another: {kind}")
        attributes = {} if kind == "NONE" else self._attributes(item, kind)
        for bound in {"min_val", "max_val"} & attributes.keys():
            attributes[bound] = _limit(attributes[bound], name, inputs, tensors)
        place = item.Location()
        location = self._text(place.Text()) if place is not None else ""
        return TosaOperator(name, attributes, inputs, self._names(item, "Outputs"), location)

    def _attributes(self, item: Any, kind: str) -> dict[str, Any]:
        held = item.Attribute()
        if held is None:
            raise Malformed(f"{kind} is missing")
        table = schema(kind)()
        table.Init(held.Bytes, held.Pos)
        scalars, vectors = _fields(kind)
        found = {_snake(name): _scalar(_snake(name), getattr(table, name)()) for name in scalars}
        return found | {_snake(name): self._vector(table, name) for name in vectors}

    def _vector(self, table: Any, method: str) -> Any:
        length = self._count(getattr(table, f"{method}Length")())
        values = getattr(table, f"{method}AsNumpy")() if length else np.zeros(0, np.uint8)
        return values if values.dtype == np.uint8 else tuple(int(value) for value in values)

    def _items(self, table: Any, field: str) -> list[Any]:
        count = self._count(getattr(table, f"{field}Length")())
        return [getattr(table, field)(index) for index in range(count)]

    def _names(self, table: Any, field: str) -> tuple[str, ...]:
        return tuple(map(self._text, self._items(table, field)))

    def _bytes(self, item: Any, field: str) -> bytes:
        length = self._budget.spend(getattr(item, f"{field}Length")())
        return bytes(getattr(item, f"{field}AsNumpy")().tobytes()) if length else b""

    def _text(self, text: bytes | None) -> str:
        self._budget.spend(len(text or b""))
        return (text or b"").decode()

    def _count(self, length: int) -> int:
        # An entry of a list takes a byte at least, and some hundred of them once it is read.
        self._budget.spend(4 * length)
        return length


def _require_declared(graph: TosaGraph) -> None:
    used = {name for operator in graph.operators for name in operator.inputs + operator.outputs}
    unknown = used.union(graph.inputs, graph.outputs) - graph.tensors.keys()
    if unknown:
        raise Malformed(f"tensors used but not declared: {', '.join(sorted(unknown))}")


def _require_regions(main: TosaGraph, regions: Mapping[str, TosaGraph]) -> None:
    """Raise Malformed where control flow names a region that is not there, or one that it is in."""
    named = {
        name: {
            str(operator.attributes.get(attribute))
            for operator in graph.operators
            for attribute in _REGIONS.get(operator.name, ())
        }
        for name, graph in {_MAIN: main, **regions}.items()
    }
    if unknown := set().union(*named.values()) - regions.keys():
        raise Malformed(f"control flow names regions that are not there: {', '.join(sorted(unknown))}")
    # Regions that name none are taken away until none is left: those in a circle stay.
    while leaves := [name for name, used in named.items() if not used & named.keys()]:
        for name in leaves:
            del named[name]
    if named:
        raise Malformed(f"control flow goes round in a circle: {', '.join(sorted(named))}")


def _constant(name: str, data: bytes, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """The content of a tensor; raises Malformed where there are fewer bytes than its shape needs.

    More are passed over: the serializer pads, and ExecuTorch writes a zero point for each channel of a
    weight into a constant of one number.
    """
    count = math.prod(shape)
    wanted = {"int4": (count + 1) // 2, "int48": 6 * count}.get(dtype, count * storage(dtype).itemsize)
    if min(shape, default=0) < 0 or len(data) < wanted:
        raise Malformed(f"the constant {name!r} of {dtype} {list(shape)} has {len(data)} bytes")
    return _decode(data, dtype, shape)


def _limit(data: Any, operator: str, inputs: tuple[str, ...], tensors: dict[str, TosaTensor]) -> int | float:
    """One of CLAMP's bounds, stored as a number of its operand's dtype."""
    dtype = tensors[inputs[0]].dtype if inputs and inputs[0] in tensors else ""
    if not dtype or len(data) < storage(dtype).itemsize:
        raise Malformed(f"an operator {operator} has bounds that are no numbers of its operand's type")
    value: int | float = _decode(data.tobytes(), dtype, ()).item()
    return value


@functools.cache
def _fields(kind: str) -> tuple[list[str], list[str]]:
    """The accessors of a table's scalars, and of its vectors."""
    methods = {name for name in dir(schema(kind)) if re.fullmatch(r"[A-Z]\w*", name) and name != "Init"}
    vectors = {name.removesuffix("AsNumpy") for name in methods if name.endswith("AsNumpy")}
    helpers = {name + end for name in vectors for end in ("AsNumpy", "Length", "IsNone")}
    scalars = {name for name in methods - vectors - helpers if not name.startswith(("GetRootAs", kind))}
    return sorted(scalars), sorted(vectors)


def _scalar(name: str, value: Any) -> Any:
    if name == "acc_type":
        return _dtype(value)
    if name in ENUMERATIONS:
        return _member(ENUMERATIONS[name], value)
    return value.decode() if isinstance(value, bytes) else value


@functools.cache
def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _decode(data: bytes, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    count = math.prod(shape)
    if dtype == "int4":
        packed = np.frombuffer(data, np.uint8)
        nibbles = np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)
        values: NDArray[Any] = np.where(nibbles > 7, nibbles.astype(np.int8) - 16, nibbles).astype(np.int8)
    elif dtype == "int48":
        # Six bytes each, little endian: sign-extended by an arithmetic shift of the upper six of eight.
        wide = np.zeros((len(data) // 6, 8), np.uint8)
        wide[:, 2:] = np.frombuffer(data, np.uint8)[: len(wide) * 6].reshape(-1, 6)
        values = wide.view("<i8").reshape(-1) >> 16
    else:
        values = np.frombuffer(data[: count * storage(dtype).itemsize], storage(dtype))
    return values[:count].reshape(shape)


def storage(dtype: str) -> np.dtype[Any]:
    """The numpy dtype whose arrays hold tensors of ``dtype``; raises TypeError for an unknown name."""
    wider = {"shape": "int64", "int48": "int64", "int4": "int8"}
    if hasattr(ml_dtypes, dtype) and dtype not in wider:
        return np.dtype(getattr(ml_dtypes, dtype))
    return np.dtype(wider.get(dtype, dtype))


def _dtype(number: int) -> str:
    name = _member("DType", number)
    return DTYPES.get(name, name.lower())


@functools.cache
def attribute_kind(operator: str) -> str:
    """``CONV2D`` has a ``Conv2dAttribute``: the union's member with the same letters.

    Raises Malformed for what is no operator.
    """
    wanted = f"{operator.replace('_', '')}attribute".lower()
    for name in vars(schema("Attribute")):
        if name.lower() == wanted:
            return str(name)
    raise Malformed(f"{operator} is no TOSA operator")


@functools.cache
def tosa_operators() -> frozenset[str]:
    """The names of TOSA's operators."""
    return frozenset(name for name in vars(schema("Op")) if not name.startswith("_"))


@functools.cache
def attribute_names(kind: str) -> frozenset[str]:
    """The names of the attributes in a member of the union, as ``TosaOperator`` has them."""
    scalars, vectors = _fields(kind)
    return frozenset(map(_snake, [*scalars, *vectors]))


@functools.cache
def _member(enumeration: str, number: int) -> str:
    for name, value in vars(schema(enumeration)).items():
        if value == number and not name.startswith("_"):
            return str(name)
    raise Malformed(f"{number} is no {enumeration}")


@functools.cache
def schema(table: str) -> Any:
    """The accessor class, or the enumeration, of that name."""
    return getattr(tosa_schema, table)
