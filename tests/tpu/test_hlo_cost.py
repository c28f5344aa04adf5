"""The cost of a step, computed from the text of a TPU program.

The lines are shortened from real ones (libtpu 0.0.42.1, TPU v3).
"""

from __future__ import annotations

import pytest

from gan_runtime.engines.hlo_text import source_layer
from gan_runtime.tpu import hlo_cost

PAIR = ("generator", "discriminator")
# A program of four steps: a copy before the loop, and in the loop a convolution, the optimizer,
# random numbers, one exchange.
PROGRAM = """HloModule jit_on_replica, is_scheduled=true, entry_computation_layout={()->()}

%fused_computation.1 (param_0: bf16[64,28,28,1]) -> bf16[64,14,14,64] {
  %param_0 = bf16[64,28,28,1]{0,3,2,1:T(4,128)(2,1)} parameter(0)
  ROOT %convolution.7 = bf16[64,14,14,64]{3,0,2,1:T(8,128)(2,1)} convolution(%param_0), window={size=5x5 stride=2x2}, backend_config={"flag_configs":[],"window_config":{"estimated_cycles":"999999"}}
}

%region_15.18 (psum.1: f32[], psum.2: f32[]) -> f32[] {
  %psum.1 = f32[] parameter(0)
  ROOT %add.3 = f32[] add(%psum.1, %psum.1), metadata={op_name="add"}
}

%body.2 (param.1: (s32[], bf16[64,28,28,1])) -> (s32[], bf16[64,28,28,1]) {
  %param.1 = (s32[]{:T(256)}, bf16[64,28,28,1]{0,3,2,1:T(4,128)(2,1)}) parameter(0)
  %get-tuple-element.3 = bf16[64,28,28,1]{0,3,2,1:T(4,128)(2,1)} get-tuple-element(%param.1), index=1
  %fusion.358 = (u16[64,14,64]{2,0,1:T(8,128)(2,1)}, bf16[64,14,14,64]{3,0,2,1:T(8,128)(2,1)}) fusion(%get-tuple-element.3), kind=kOutput, calls=%fused_computation.1, metadata={op_name="jit(on_replica)/shard_map/while/body/jvp(discriminator)/conv_1/conv_general_dilated" stack_frame_id=311}, backend_config={"flag_configs":[],"window_config":{"kernel_window_bounds":["5","5","1","1"],"estimated_cycles":"28865","iteration_bounds":["1","1","7"]}}
  %custom-call.63 = u64[2]{0:T(256)} custom-call(%fusion.358), custom_call_target="X64Combine", metadata={op_name="jit(on_replica)/shard_map/custom-call.31"}
  %rng-bit-generator.59 = u8[64,7,7,128]{3,0,2,1:T(8,128)(4,1)} rng-bit-generator(%custom-call.63), algorithm=rng_default, metadata={op_name="jit(on_replica)/shard_map/while/body/jvp(discriminator)/dropout_2/rng_bit_generator" stack_frame_id=789}, backend_config={"flag_configs":[],"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"262144"}]}
  %all-reduce.138 = (f32[64]{0:T(256)}, f32[5,5,1,64]{3,2,1,0:T(2,128)}, /*index=2*/bf16[128]{0:T(256)}) all-reduce(%fusion.358, %fusion.358, %fusion.358), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true, to_apply=%region_15.18, metadata={op_name="jit(on_replica)/shard_map/while/body/all_reduce_gradients/psum" stack_frame_id=791}
  %divide_subtract_fusion.35 = (f32[100,12544]{1,0:T(8,128)}, f32[100,12544]{1,0:T(8,128)}) fusion(%all-reduce.138), kind=kLoop, calls=%fused_computation.1, metadata={op_name="jit(on_replica)/shard_map/while/body/optimizer_generator/optimizer_generator/sub"}, backend_config={"window_config":{"estimated_cycles":"84700"}}
  ROOT %tuple.1 = (s32[]{:T(256)}, bf16[64,28,28,1]{0,3,2,1:T(4,128)(2,1)}) tuple(%get-tuple-element.3, %get-tuple-element.3)
}

%condition.2 (param.2: (s32[], bf16[64,28,28,1])) -> pred[] {
  %param.2 = (s32[]{:T(256)}, bf16[64,28,28,1]{0,3,2,1:T(4,128)(2,1)}) parameter(0)
  ROOT %lt.1 = pred[]{:T(512)} compare(%param.2, %param.2), direction=LT
}

ENTRY %main.58_spmd (param: bf16[64,28,28,1]) -> (s32[], bf16[64,28,28,1]) {
  %param = bf16[64,28,28,1]{0,3,2,1:T(4,128)(2,1)} parameter(0)
  %copy.172 = bf16[64,28,28,1]{0,2,3,1:T(8,128)(2,1)} copy(%param), backend_config={"window_config":{"estimated_cycles":"400"}}
  ROOT %while.132 = (s32[]{:T(256)}, bf16[64,28,28,1]{0,3,2,1:T(4,128)(2,1)}) while(%copy.172), condition=%condition.2, body=%body.2, metadata={op_name="jit(on_replica)/shard_map/while" stack_frame_id=121}
}
"""  # noqa: E501


def test_step_cost_is_one_loop_iteration_plus_its_share_of_the_rest() -> None:
    # A fusion's number includes the operations that are fused into it.
    assert hlo_cost.cost(PROGRAM, steps=4).cycles == 28_865 + 84_700 + 400 / 4


def test_loop_with_a_known_trip_count_is_counted_that_often() -> None:
    program = PROGRAM.replace(
        "stack_frame_id=121}", 'stack_frame_id=121}, backend_config={"known_trip_count":{"n":"4"}}'
    )
    assert hlo_cost.cost(program, steps=1).cycles == 4 * (28_865 + 84_700) + 400


def test_inner_loop_is_counted_once_for_each_part_of_the_batch() -> None:
    inner = PROGRAM.replace(
        "  %custom-call.63",
        "  %while.7 = (s32[]) while(%param.1), condition=%condition.2, body=%inner.1\n "
        " %custom-call.63",
    ).replace(
        "%condition.2 (param.2",
        "%inner.1 (param.9: (s32[])) -> (s32[]) {\n  %fusion.9 = f32[8]{0:T(256)} fusion(%param.9),"
        ' kind=kLoop, calls=%x, backend_config={"estimated_cycles":"10"}\n}\n\n%condition.2'
        " (param.2",
    )
    assert (
        hlo_cost.cost(inner, steps=4, parts=3).cycles - hlo_cost.cost(PROGRAM, steps=4).cycles == 30
    )


def test_most_expensive_operation_comes_first_with_its_layer() -> None:
    first, second = hlo_cost.cost(PROGRAM, steps=4).most_expensive(2)
    assert (first.name, first.cycles, source_layer(first.source, PAIR)) == (
        "divide_subtract_fusion.35",
        84_700,
        "optimizer, generator",
    )
    assert (second.opcode, source_layer(second.source, PAIR)) == (
        "fusion",
        "discriminator conv_1, forward",
    )


def test_all_reduce_payload_counts_all_its_arrays() -> None:
    (exchange,) = hlo_cost.cost(PROGRAM, steps=4).exchanges
    assert (exchange.kind, exchange.payload_bytes, exchange.times) == (
        "all-reduce",
        4 * 64 + 4 * 25 * 64 + 2 * 128,
        1.0,
    )


@pytest.mark.parametrize(
    ("line", "kind", "payload"),
    [
        (
            "%r = f32[100,1568]{1,0} reduce-scatter(f32[100,12544]{1,0} %g), dimensions={1}",
            "reduce-scatter",
            4 * 100 * 12_544,
        ),
        (
            "%r = f32[100,12544]{1,0} all-gather(f32[100,1568]{1,0} %g), dimensions={1}",
            "all-gather",
            4 * 100 * 12_544,
        ),
        (
            (
                "%r = (f32[1,8]{1,0}, f32[8,8]{1,0}) all-gather-start(f32[1,8]{1,0} %g),"
                " dimensions={0}"
            ),
            "all-gather",
            4 * 64,
        ),
    ],
)
def test_other_collectives_are_counted_by_their_whole_array(
    line: str, kind: str, payload: int
) -> None:
    (exchange,) = hlo_cost.cost(
        f"ENTRY %main (p: f32[8]) -> f32[8] {{\n  {line}\n}}", steps=1
    ).exchanges
    assert (exchange.kind, exchange.payload_bytes) == (kind, payload)


def test_done_half_of_an_asynchronous_pair_is_not_counted() -> None:
    text = "ENTRY %main (p: f32[8]) -> f32[8] {\n  %d = f32[8]{0} all-reduce-done(%s)\n}"
    assert hlo_cost.cost(text, steps=1).exchanges == ()


def test_operations_without_an_estimate_are_named_but_not_markers() -> None:
    assert hlo_cost.cost(PROGRAM, steps=4).silent == ("rng-bit-generator",)


@pytest.mark.parametrize(
    "line",
    [
        "%infeed.1 = ((f32[8]{0}), token[]) infeed(%after-all.1)",
        "%send.1 = (f32[8]{0}, u32[], token[]) send(%a, %t), channel_id=2, is_host_transfer=true",
        '%call.1 = f32[8]{0} custom-call(%a), custom_call_target="xla_python_cpu_callback"',
        '%move.1 = f32[8]{0} custom-call(%a), custom_call_target="MoveToHost"',
    ],
)
def test_host_transfers_are_named(line: str) -> None:
    text = PROGRAM.replace("  %custom-call.63", f"  {line}\n  %custom-call.63")
    assert hlo_cost.cost(text, steps=4).host_transfers == (
        line.partition(" ")[0].removeprefix("%"),
    )
    assert hlo_cost.cost(PROGRAM, steps=4).host_transfers == ()


@pytest.mark.parametrize(
    ("path", "layer"),
    [
        (
            "jit(call)/while/body/transpose(jvp(generator))/up_1/transpose()/conv_general_dilated",
            "generator up_1, backward",
        ),
        (
            "jit(call)/while/body/transpose(jvp(transpose(jvp(jvp(discriminator)))))/conv_2/mul",
            "discriminator conv_2, backward",
        ),
        (
            "jit(call)/while/body/transpose(jvp(phase_0))/generator/up_1/transpose",
            "generator up_1, backward",
        ),
        ("jit(call)/while/body/jvp(phase_0)/generator/up_1/transpose", "generator up_1, forward"),
        ("jit(call)/while/body/jvp(generator)/dense/dot_general", "generator dense, forward"),
        (
            "jit(call)/while/body/phase_1/jvp(generator)/dense/dot_general",
            "generator dense, forward",
        ),
        ("jit(call)/while/body/all_reduce_gradients/psum", "exchange of gradients"),
        ("jit(call)/shard_map/convert.43", ""),
    ],
)
def test_a_path_names_its_layer(path: str, layer: str) -> None:
    assert source_layer(path, PAIR) == layer


def test_layers_come_from_the_workloads_own_networks() -> None:
    path = "jit(call)/while/body/phase_0/jvp(critic)/conv_1/conv_general_dilated"
    assert source_layer(path, ["critic"]) == "critic conv_1, forward"
    assert source_layer(path, PAIR) == ""


def test_networks_with_overlapping_names_are_distinguished() -> None:
    networks = ["critic", "critic_local", "local_critic"]
    assert [
        source_layer(f"jit(call)/while/body/{scope}/conv_1/mul", networks)
        for scope in ("transpose(jvp(local_critic))", "jvp(critic)", "optimizer_critic_local")
    ] == ["local_critic conv_1, backward", "critic conv_1, forward", "optimizer, critic_local"]
