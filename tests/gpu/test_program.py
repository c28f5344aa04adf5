"""Kernels, bytes and wide convolutions in the text of a GPU's program."""

from __future__ import annotations

import pytest

from gan_runtime.gpu import program
from gan_runtime.gpu.program import WideConvolution

NETWORKS = ["generator", "critic"]
STEP = """\
HloModule jit_call, is_scheduled=true

%part (state.1: (s32[], f32[8])) -> (s32[], f32[8]) {
  %state.1 = (s32[], f32[8]{0}) parameter(0)
  %old.1 = f32[8]{0} get-tuple-element(%state.1), index=1
  ROOT %sum.1 = f32[8]{0} fusion(%old.1), kind=kLoop, calls=%fused
}

%body (state: (s32[], f32[2,4])) -> (s32[], f32[2,4]) {
  %state = (s32[], f32[2,4]{1,0}) parameter(0)
  %old = f32[2,4]{1,0} get-tuple-element(%state), index=1
  %narrow = bf16[2,4]{1,0} fusion(%old), kind=kLoop, calls=%fused, metadata={op_name="jit(call)/while/body/jvp(generator)/norm_1/mul"}
  %forward = (bf16[2,4]{1,0}, u8[640]{0}) custom-call(%narrow, %old), window={size=6x6 stride=2x2 pad=2_2x2_2}, custom_call_target="__cudnn$convForward", metadata={op_name="jit(call)/while/body/jvp(critic)/conv_1/conv"}
  %wide = (bf16[2,4]{1,0}, u8[0]{0}) custom-call(%narrow, %old), window={size=14x14 rhs_dilate=2x2}, custom_call_target="__cudnn$convForward", metadata={op_name="jit(call)/while/body/transpose(jvp(generator))/up_1/conv"}
  %filter = (bf16[2,4]{1,0}, u8[0]{0}) custom-call(%narrow, %old), window={size=28x28}, custom_call_target="__cudnn$convBackwardFilter", metadata={op_name="jit(call)/while/body/transpose(jvp(generator))/up_1/conv"}
  %inner = (s32[], f32[8]{0}) while(%state), condition=%enough, body=%part, backend_config={"known_trip_count":{"n":"3"}}
  ROOT %new = (s32[], f32[2,4]{1,0}) tuple(%state, %old)
}

ENTRY %main (first: (s32[], f32[2,4])) -> (s32[], f32[2,4]) {
  %first = (s32[], f32[2,4]{1,0}) parameter(0)
  %outside = f32[1000]{0} fusion(%first), kind=kLoop, calls=%fused
  ROOT %loop = (s32[], f32[2,4]{1,0}) while(%first), condition=%more, body=%body
}
"""  # noqa: E501
TAPS = {"critic conv_1": (5, 5), "generator up_1": (5, 5)}


def test_the_kernels_of_one_step_are_those_of_the_loop() -> None:
    names = [kernel.name for kernel in program.kernels(STEP, NETWORKS)]
    assert names == ["narrow", "forward", "wide", "filter", *["sum.1"] * 3]


def test_a_kernel_reads_its_operands_and_writes_its_outcome() -> None:
    narrow, forward, *_, part = program.kernels(STEP, NETWORKS)
    assert narrow.bytes == 32 + 16  # 8 numbers in float32, and in bfloat16
    assert forward.bytes == 16 + 32 + 16, "without the library's workspace"
    assert part.bytes == 32 + 32


def test_kernels_name_their_function_and_their_layer() -> None:
    narrow, forward, wide, *_ = program.kernels(STEP, NETWORKS)
    assert (narrow.kind, narrow.layer) == ("fusion", "generator norm_1, forward")
    assert (forward.kind, forward.layer) == ("__cudnn$convForward", "critic conv_1, forward")
    assert wide.layer == "generator up_1, backward"


def test_a_forward_convolution_wider_than_its_layers_kernel_is_wide() -> None:
    """6 taps are a kernel of 5 with a row of zeros; a gradient by kernel has any width."""
    of_step = program.kernels(STEP, NETWORKS)
    assert program.wide_convolutions(of_step, TAPS) == (
        WideConvolution("generator up_1, backward", (5, 5), (14, 14)),
    )


def test_a_convolution_of_an_unknown_layer_is_compared_with_the_widest_kernel() -> None:
    of_step = program.kernels(STEP, [])
    assert [wide.window for wide in program.wide_convolutions(of_step, TAPS)] == [(14, 14)]
    larger = TAPS | {"critic conv_2": (13, 13)}
    assert program.wide_convolutions(of_step, larger) == ()


def test_a_call_counts_the_kernels_of_its_computation() -> None:
    text = STEP.replace(
        "while(%state), condition=%enough, body=%part", "call(%state), to_apply=%part"
    )
    assert [kernel.name for kernel in program.kernels(text, NETWORKS)][4:] == ["sum.1"]


def test_a_program_without_a_loop_of_steps_is_an_error() -> None:
    text = STEP.replace(" while(%first)", " fusion(%first)")
    with pytest.raises(ValueError, match="has no loop of steps"):
        program.kernels(text, NETWORKS)


def test_rounds_that_the_text_does_not_name_are_the_given_parts() -> None:
    text = STEP.replace(', backend_config={"known_trip_count":{"n":"3"}}', "")
    assert len(program.kernels(text, NETWORKS, parts=2)) == 4 + 2
