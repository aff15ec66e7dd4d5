"""What ExecuTorch notes about an operator's origin, as it writes it."""

from __future__ import annotations

import json

import pytest

from vgf_conformance.attribution.origin import Node, Origin, origin, source_line
from vgf_conformance.formats.tosa import TosaOperator

NOTED = {
    "torch_info": {
        "stack_trace": [
            'File "/home/me/net.py", line 12, in forward',
            "    return self.conv(x)",
            '  File "/env/lib/site-packages/torch/nn/modules/conv.py", line 565, in forward',
        ],
        "node_trace": [
            {"name": "convolution_4", "target": "aten.convolution.default"},
            {"name": "conv2d_4", "target": "aten.conv2d.default"},
            {"name": "conv2d_4", "target": "aten.conv2d.default"},
        ],
        "nn_module_stack": {
            "L__self__": ["", "net.Net"],
            "L__self__c": ["c.4", "torch.nn.modules.conv.Conv2d"],
        },
    }
}

TRACE = (
    Node("convolution_4", "aten.convolution.default"),
    Node("conv2d_4", "aten.conv2d.default"),
    Node("conv2d_4", "aten.conv2d.default"),
)


def operator(location: str) -> TosaOperator:
    return TosaOperator("CONV2D", {}, (), (), location)


def test_the_node_its_module_and_the_users_line() -> None:
    found = origin(operator(json.dumps(NOTED)))
    assert found == Origin(TRACE, "aten.conv2d.default", "c.4", "Conv2d", "net.py:12")
    assert found.nodes == ("convolution_4", "conv2d_4")
    assert str(found) == "aten.conv2d.default, c.4 (Conv2d), net.py:12"


@pytest.mark.parametrize("location", ["", "not json", "[]", '{"torch_info": {}}', '{"torch_info": null}'])
def test_nothing_noted_is_no_origin(location: str) -> None:
    assert origin(operator(location)) == Origin()


def test_a_trace_without_the_users_code_has_no_line() -> None:
    assert source_line('File "/env/lib/site-packages/torch/x.py", line 3, in call') == ""
