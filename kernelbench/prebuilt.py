"""What Triton has a C compiler build anew in every contestant, whose cache is its own: the module that talks to the driver and, before Triton 3.7,
a launcher for each signature. Built once in the zygote, these are in the memory of all its forks: half a second less for each."""

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor

# the commonest signatures of kernels: pointers (of any type, the source is the same), then 32-bit integers, then constants
SIGNATURES = [(p, i, c) for p in range(1, 7) for i in range(1, 4) for c in (1, 2)] + [
    (p, 0, c) for p in (1, 2, 3) for c in (0, 1)
]
NAMES = ("*fp32", "i32", "constexpr")


def driven() -> bool:
    """Whether NVIDIA's driver is here, without starting it: without it nothing of Triton's could be linked."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def prebuild(driver):
    """driver: triton.backends.nvidia.driver, which loads what was built here instead of building it. Needs libcuda, but no CUDA context."""
    built, plain = {}, driver.compile_module_from_src

    def keep(src, name, **options):
        built[name, src] = plain(src=src, name=name, **options)
        return built[name, src]

    def find(src, name, **options):
        return built.get((name, src)) or plain(src=src, name=name, **options)

    def launcher(counts):
        signature = dict(enumerate(name for name, count in zip(NAMES, counts) for _ in range(count)))
        source = driver.make_launcher({}, signature, None)
        folders = {"library_dirs": driver.library_dirs(), "include_dirs": driver.include_dirs}
        keep(source, "__triton_launcher", **folders, libraries=driver.libraries)

    driver.compile_module_from_src = keep
    driver.CudaUtils()
    if hasattr(driver, "make_launcher"):
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(launcher, SIGNATURES))
    driver.compile_module_from_src = find
