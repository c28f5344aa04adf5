"""Counts of kernels and fusions in the text of XLA modules."""

from __future__ import annotations

from gan_runtime.engines.step_profile import HloCounts, hlo_counts, sum_counts

BEFORE = """\
HloModule a_inference_gradients_42__.21, entry_computation_layout={(f32[4,8]{1,0})->(f32[4]{0}, s32[])}

%max_F32.5 (lhs.6: f32[], rhs.7: f32[]) -> f32[] {
  %lhs.6 = f32[] parameter(0)
  %rhs.7 = f32[] parameter(1)
  ROOT %maximum.8 = f32[] maximum(f32[] %lhs.6, f32[] %rhs.7)
}

ENTRY %a_inference_gradients_42__.21 (arg0.1: f32[4,8]) -> (f32[4], s32[]) {
  %arg0.1 = f32[4,8]{1,0} parameter(0), parameter_replication={false}, metadata={op_name="XLA_Args"}
  %reshape.2 = f32[4,8]{1,0} reshape(f32[4,8]{1,0} %arg0.1)
  %tanh.3 = f32[4,8]{1,0} tanh(f32[4,8]{1,0} %reshape.2), metadata={op_type="Tanh" op_name="forward/tanh (x)"}
  %constant.4 = f32[] constant(-inf)
  %reduce.9 = f32[4]{0} reduce(f32[4,8]{1,0} %tanh.3, f32[] %constant.4), dimensions={1}, to_apply=%max_F32.5
  %constant.10 = s32[] constant(3)
  ROOT %tuple.11 = (f32[4]{0}, s32[]) tuple(f32[4]{0} %reduce.9, s32[] %constant.10)
}
"""  # noqa: E501

AFTER = """\
HloModule cluster_1, is_scheduled=true

%fused_computation (param_0: f32[4,8]) -> f32[4] {
  %param_0 = f32[4,8]{1,0:T(8,128)} parameter(0)
  %tanh.1 = f32[4,8]{1,0} tanh(%param_0)
  ROOT %negate.1 = f32[4]{0} negate(%tanh.1)
}

%parallel_fusion (p: f32[4,8]) -> f32[4] {
  %p = f32[4,8]{1,0} parameter(0)
  ROOT %fusion.1 = f32[4]{0} fusion(%p), kind=kLoop, calls=%fused_computation
}

%body (state: (s32[], f32[4])) -> (s32[], f32[4]) {
  %state = (s32[], f32[4]{0}) parameter(0)
  %gte = s32[] get-tuple-element(%state), index=0
  %add.2 = s32[] add(%gte, %gte)
  ROOT %tuple.3 = (s32[], f32[4]{0}) tuple(%add.2, %gte)
}

%condition (state.1: (s32[], f32[4])) -> pred[] {
  %state.1 = (s32[], f32[4]{0}) parameter(0)
  %gte.1 = s32[] get-tuple-element(%state.1), index=0
  ROOT %compare.4 = pred[] compare(%gte.1, %gte.1), direction=LT
}

ENTRY %main.7 (arg: f32[4,8]) -> f32[4] {
  %arg = f32[4,8]{1,0} parameter(0)
  %call.1 = f32[4]{0} call(%arg), to_apply=%parallel_fusion, backend_config={"outer_dimension_partitions":["2"]}
  %fusion.2 = (f32[4]{0}, /*index=1*/f32[4]{0}) fusion(%call.1), kind=kLoop, calls=%fused_computation
  %zero = s32[] constant(0)
  %start = (s32[], f32[4]{0}) tuple(%zero, %call.1)
  %while.5 = (s32[], f32[4]{0}) while(%start), condition=%condition, body=%body
  %bitcast.6 = f32[4]{0} bitcast(%call.1)
  ROOT %dot.8 = f32[4]{0} dot(%bitcast.6, %call.1), lhs_contracting_dims={}
}
"""  # noqa: E501


def test_unoptimized_module_counts_each_working_instruction() -> None:
    assert hlo_counts(BEFORE) == HloCounts(kernels=3, fusions=0)  # reshape, tanh, reduce


def test_fusion_is_one_kernel_and_called_computations_count_once() -> None:
    # Two fusions (one inside a call), the loop's add and compare, and the dot.
    assert hlo_counts(AFTER) == HloCounts(kernels=5, fusions=2)


def test_each_branch_of_a_conditional_counts() -> None:
    branch = (
        "%{0} (x: f32[]) -> f32[] {{\n  %x = f32[] parameter(0)\n  ROOT %n.{0} = f32[]"
        " negate(%x)\n}}\n"
    )
    entry = (
        "ENTRY %main (p: pred[], a: f32[]) -> f32[] {\n  ROOT %c = f32[] conditional(%p, %a, %a),"
        " branch_computations={%one, %two}\n}\n"
    )
    assert hlo_counts(branch.format("one") + branch.format("two") + entry) == HloCounts(2, 0)


def test_counts_of_several_modules_add_up() -> None:
    assert sum_counts([HloCounts(3, 1), HloCounts(4, 2)]) == HloCounts(7, 3)
    assert sum_counts([]) == HloCounts(0, 0)


def test_text_without_a_module_has_no_kernels() -> None:
    assert hlo_counts("") == HloCounts(0, 0)
