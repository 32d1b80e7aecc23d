"""`python gym.py doctor`: what this machine offers for judging kernels and what is missing, in words.

It judges one small kernel in the ordinary way and prints the sandbox that this kernel ran in; nothing here is asked twice.
"""

import importlib.metadata
import os
import platform
import random
import shutil
import subprocess

import torch

from kernelbench import landlock, toy

# layer -> what would bring it; namespaces and the rest follow from being root
REMEDIES = {
    "namespace": "run as root, or on the CPU allow user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0, "
    "kernel.unprivileged_userns_clone=1, user.max_user_namespaces=10000); in Docker: --cap-add SYS_ADMIN",
    "own /proc": "in Docker: --security-opt systempaths=unconfined",
    "landlock": "a newer kernel, with CONFIG_SECURITY_LANDLOCK=y and landlock in its lsm= list",
}


def examine(device: str | None = None) -> int:
    """Print the report; 0 where kernels can be judged on `device` (default: the GPU if there is one), else 1."""
    from feedback import report
    from gym import Gym, GymError, Job

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    for name, value in facts(device):
        print(f"{name:18} {value}")
    task = toy.make("test", 0, 0, device)
    try:
        with Gym(device, workers=1) as gym:
            verdict = gym.evaluate([Job(task.task, task.solution("fused", random.Random(0)))])[0]
    except GymError as error:
        print(f"\nKernels cannot be judged here: {error}")
        return 1
    print("\nSandbox")
    for layer, state in verdict.sandbox.items():
        print(f"  {layer:18} {state}")
        remedy = next((words for name, words in REMEDIES.items() if name in layer), None) if state != "on" else None
        if remedy:
            print(f"  {'':18} -> {remedy}")
    print(f"\nA fused kernel for {task.task.name}\n{report(verdict)}")
    print("\nKernels can be judged here." if verdict.correct else "\nKernels cannot be judged here: this one is right.")
    return 0 if verdict.correct else 1


def facts(device: str) -> list[tuple[str, str]]:
    """(what, how it is) about the machine."""
    rows = [("host", f"Linux {platform.release()}, {platform.machine()}, uid {os.geteuid()}, {os.cpu_count()} cores")]
    rows += [("Landlock", f"ABI {landlock.abi()} (6 and later: files, TCP, signals; 0: none)")]
    for package in ("torch", "triton", "transformers"):
        try:
            rows.append((package, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            rows.append((package, "not installed"))
    rows.insert(2, ("python", platform.python_version()))
    shm = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    rows.append(("/dev/shm", f"{shm.f_blocks * shm.f_frsize / 2**30:.1f} GiB" if shm else "missing"))
    compiler = shutil.which(os.environ.get("CC") or "cc") or shutil.which("gcc") or shutil.which("clang")
    rows.append(("C compiler", compiler or "none: Triton cannot build its launcher for a GPU; install gcc"))
    if device == "cpu":
        return [*rows, ("GPU", "none used: Triton's interpreter, times simulated")]
    query = "name,memory.total,memory.used,utilization.gpu,driver_version"
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.splitlines()
    except (OSError, subprocess.SubprocessError) as error:
        devices = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
        return rows + [("GPU", f"{d.name}, {d.total_memory / 2**30:.0f} GiB (nvidia-smi: {error})") for d in devices]
    for name, total, used, busy, driver in (line.split(", ") for line in lines):
        rows.append(("GPU", f"{name}, {total}, {used} used, {busy} busy, driver {driver}"))
    return rows
