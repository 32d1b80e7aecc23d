"""C modules of Triton that the zygote builds for its forks: by hand, and Triton's own driver over a libcuda that does nothing."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import triton

from gym import Gym, Job
from kernelbench import Task
from kernelbench.prebuilt import SIGNATURES, prebuild

ROOT = Path(__file__).resolve().parent.parent
DRIVER = Path(triton.__file__).parent / "backends" / "nvidia"


def fake_driver(**more):
    calls = []
    driver = SimpleNamespace(**more)
    driver.compile_module_from_src = lambda src, name, **options: calls.append((name, src)) or object()
    driver.CudaUtils = lambda: driver.compile_module_from_src(src="C", name="cuda_utils", library_dirs=[])
    return driver, calls


def test_what_was_built_is_found_and_anything_else_is_built():
    source = lambda constants, signature, tensordesc_meta: " ".join(signature.values())  # noqa: E731
    driver, calls = fake_driver(make_launcher=source, library_dirs=list, include_dirs=[], libraries=[])
    prebuild(driver)
    assert len(set(calls)) == len(calls) == 1 + len(SIGNATURES)
    assert ("__triton_launcher", "*fp32 *fp32 i32 constexpr") in calls and ("cuda_utils", "C") in calls
    build, before = driver.compile_module_from_src, len(calls)
    known = build(src="*fp32 *fp32 i32 constexpr", name="__triton_launcher", libraries=[])
    assert known is build(src="*fp32 *fp32 i32 constexpr", name="__triton_launcher") and driver.CudaUtils()
    assert len(calls) == before
    other = build(src="*fp32 fp32", name="__triton_launcher", libraries=[])
    assert other is not build(
        src="*fp32 fp32", name="__triton_launcher", libraries=[]
    )  # a contestant's own, kept by nobody
    assert calls[before:] == [("__triton_launcher", "*fp32 fp32")] * 2


def test_a_driver_without_launchers_of_its_own():
    driver, calls = fake_driver()
    prebuild(driver)
    assert calls == [("cuda_utils", "C")]


TRIED = """
import glob, importlib, os, sys
sys.path.insert(0, sys.argv[1])
from kernelbench.prebuilt import prebuild
driver = importlib.import_module("triton.backends.nvidia.driver")
prebuild(driver)
os.environ["TRITON_CACHE_DIR"] = other = sys.argv[2]
driver.CudaUtils()
assert not glob.glob(other + "/*"), "built again"
print("found")
"""


def test_tritons_own_modules_are_built_without_a_gpu(tmp_path):
    """With a libcuda whose functions do nothing: what is loaded calls none of them."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc, as Triton does")
    text = "".join((DRIVER / name).read_text() for name in ("driver.c", "driver.py"))
    names = set(re.findall(r"\bcu[A-Z]\w+(?=\()", text)) | {"cuGetErrorString", "cuDriverGetVersion"}
    (tmp_path / "stub.c").write_text("".join(f"int {name}(void) {{ return 999; }}\n" for name in sorted(names)))
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", tmp_path / "stub.c"], check=True)
    env = {"PATH": "/usr/bin:/bin:/sbin", "LD_LIBRARY_PATH": str(tmp_path), "TRITON_LIBCUDA_PATH": str(tmp_path)}
    env |= {"TRITON_CACHE_DIR": str(tmp_path / "built")}
    command = [sys.executable, "-c", TRIED, str(ROOT), str(tmp_path / "other")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "found\n", done.stderr[-2000:]


@pytest.mark.gpu
def test_a_contestant_starts_no_compiler():
    task = Task("task", (ROOT / "tests" / "kernels" / "task.py").read_text())
    code = (ROOT / "tests" / "kernels" / "fused.py").read_text()
    code = code.replace(
        "        return o", "        import os; raise ValueError(sorted(f for _, _, fs in os.walk('.') for f in fs))"
    )
    with Gym("cuda", gpus=[0], workers=1, seed=1) as gym:
        verdict = gym.evaluate([Job(task, code)])[0]
    assert verdict.status == "runtime_error" and "chain_kernel.cubin" in verdict.message
    assert ".so'" not in verdict.message and ".c'" not in verdict.message, verdict.message
