import pytest

from kernelbench.look import look
from kernelbench.process import Stop

CLASS = "class ModelNew: pass\n"


@pytest.mark.parametrize(
    "code",
    [
        "import torch\nx = torch.ones(1)\nx.data = x\nself_cache = {}\ntry:\n    pass\nexcept ValueError:\n    pass\n",
        "def f(block, lock, time):\n    block.time = lock\n    BLOCK = 3\n",
        "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n",
        "# import ctypes\nx = 'import subprocess; os.system(1)'\n",
        "from time import time\nimport signals\n",
    ],
)
def test_honest_code_may_look_suspicious(code):
    look(code + CLASS, "ModelNew")


@pytest.mark.parametrize(
    "code, rule",
    [
        ("import os, ctypes", "import of ctypes"),
        ("from ctypes import CDLL", "import of ctypes"),
        ("import multiprocessing.pool as p", "import of multiprocessing.pool"),
        ("from kernelbench.judge import Referee", "import of kernelbench.judge"),
        ("import os\ndef f():\n    os.system('x')", "call of os.system"),
        ("import sys\nsys._getframe(1)", "call of sys._getframe"),
        ("import torch\ntorch.cuda.Event = None", "patching of torch.cuda.Event"),
        ("import time\ntime.time: object = None", "patching of time.time"),
        ("import triton\ntriton.x += 1", "patching of triton.x"),
    ],
)
def test_what_has_no_place_in_a_kernel(code, rule):
    with pytest.raises(Stop) as stop:
        look(f"{code}\n{CLASS}", "ModelNew")
    assert (stop.value.status, stop.value.hack) == (
        "hack",
        rule,
    ) and f"Line {len(code.splitlines())}: " in stop.value.message
