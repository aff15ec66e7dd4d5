"""Small TOSA graphs, written with the serializer that the backend uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import tosa_serializer as ts
from numpy.typing import NDArray

_DTYPES = {
    "float32": ts.DType.FP32,
    "float16": ts.DType.FP16,
    "bfloat16": ts.DType.BF16,
    "int8": ts.DType.INT8,
    "int16": ts.DType.INT16,
    "int32": ts.DType.INT32,
    "int48": ts.DType.INT48,
    "int4": ts.DType.INT4,
    "bool": ts.DType.BOOL,
}

PROPAGATE = ts.NanPropagationMode.PROPAGATE


class GraphBuilder:
    """Adds operators one by one; tensors are named by what ``operator`` and ``constant`` return."""

    def __init__(self) -> None:
        self._serializer = ts.TosaSerializer(targetMajor=1, targetMinor=0, targetPatch=0, targetDraft=False)

    def input(self, name: str, shape: list[int], dtype: str) -> str:
        self._serializer.addInputTensor(ts.TosaSerializerTensor(name, shape, _DTYPES[dtype]))
        return name

    def constant(self, data: Any, dtype: str) -> str:
        array: NDArray[Any] = np.asarray(data)
        return str(self._serializer.addConst(list(array.shape), _DTYPES[dtype], array.tolist()).name)

    def operator(self, name: str, inputs: list[str], shape: list[int], dtype: str, **attributes: Any) -> str:
        result = self._serializer.addIntermediate(shape, _DTYPES[dtype])
        attribute = ts.TosaSerializerAttribute()
        kind = "".join(part.capitalize() for part in name.split("_")).replace("Intdiv", "IntDiv")
        getattr(attribute, f"{kind.replace('Matmul', 'MatMul')}Attribute")(**attributes)
        self._serializer.addOperator(getattr(ts.Op, name), inputs, [result.name], attribute)
        return str(result.name)

    def finish(self, *outputs: str) -> bytes:
        block = self._serializer.currRegion.basicBlocks[0]
        for name in outputs:
            block.addOutput(name)
        return bytes(self._serializer.serialize())
