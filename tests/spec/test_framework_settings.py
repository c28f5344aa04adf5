"""A user's settings for other programs do not reach trainers and jobs; deliberate exceptions are
named and recorded.
"""

from __future__ import annotations

import pytest

from gan_runtime.base import framework_settings

OTHER_WORK = {
    "KERAS_BACKEND": "torch",
    "KERAS_MAX_STEPS_PER_EPOCH": "3",
    "JAX_DEFAULT_MATMUL_PRECISION": "bfloat16",
    "XLA_FLAGS": "--xla_cpu_enable_fast_math=true",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "NVIDIA_TF32_OVERRIDE": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "0",
    "TF_VAR_region": "eu",  # Terraform's
    "PATH": "/usr/bin",
}


def test_framework_settings_are_removed_from_the_environment() -> None:
    cleaned = framework_settings.clean_environment(OTHER_WORK)
    assert sorted(cleaned) == [
        "CUDA_VISIBLE_DEVICES",
        "PATH",
        "TF_NUM_INTRAOP_THREADS",
        "TF_VAR_region",
    ]
    assert framework_settings.ignored(OTHER_WORK) == sorted(set(OTHER_WORK) - set(cleaned))


def test_allowed_settings_are_recorded_but_paths_are_not() -> None:
    environment = {
        **OTHER_WORK,
        framework_settings.PASS_VARIABLE: "XLA_FLAGS, NVIDIA_TF32_OVERRIDE",
    }
    cleaned = framework_settings.clean_environment(
        {**environment, "KERAS_HOME": "/home/ada/.keras", "TF_CONFIG": "{}"}
    )
    assert framework_settings.recorded(cleaned) == {
        "NVIDIA_TF32_OVERRIDE": "1",
        "TF_NUM_INTRAOP_THREADS": "1",
        "XLA_FLAGS": "--xla_cpu_enable_fast_math=true",
    }


@pytest.mark.parametrize(
    ("settings", "exempt"),
    [
        ({}, None),
        ({"https_proxy": "http://proxy:3128"}, "127.0.0.1,localhost,::1"),
        (
            {"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "cern.ch"},
            "cern.ch,127.0.0.1,localhost,::1",
        ),
        ({"grpc_proxy": "http://proxy:3128", "no_proxy": "localhost"}, "localhost,127.0.0.1,::1"),
    ],
)
def test_child_processes_bypass_the_proxy_for_this_host(
    settings: dict[str, str], exempt: str | None
) -> None:
    assert framework_settings.clean_environment(settings).get("no_proxy") == exempt
