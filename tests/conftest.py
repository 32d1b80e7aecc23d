"""Our modules (gym, eval) must be found before installed packages of the same names; GPU tests run where a GPU is.

Files run side by side, a process for each core (at most four); on a GPU one after the other, as their times would disturb each other.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

torch.set_num_threads(1)


LONG = ["redteam", "gym", "train", "sandbox", "judge", "bench", "watchdog", "baseline", "sft", "attention", "process"]


def pytest_xdist_auto_num_workers():
    return 0 if torch.cuda.is_available() else min(4, os.cpu_count())


def pytest_collection_modifyitems(items):
    names = [f"test_{name}" for name in LONG]  # first, so that none of them is left over at the end
    items.sort(key=lambda item: names.index(item.path.stem) if item.path.stem in names else len(names))
    for item in items:
        if item.get_closest_marker("gpu") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))
