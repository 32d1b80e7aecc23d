import os
import subprocess
import sys
from pathlib import Path

import huggingface_hub
import pyarrow
import pyarrow.parquet
import pytest
import torch
from huggingface_hub import errors
from torch.utils._python_dispatch import TorchDispatchMode

from kernelbench import Task, TaskError, load_tasks

ROOT = Path(__file__).resolve().parent.parent
SOURCE = """
class Model:
    def forward(self, x):
        return x
def get_inputs(): return [1]
def get_init_inputs(): return []
"""


def write(folder, *names, source=SOURCE):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(source)
    return folder


def names(*specs, **options):
    return [task.name for task in load_tasks(*specs, **options)]


def test_key_is_the_source_alone():
    # sha256("x") = 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881
    assert Task("a", "x").key == Task("b", "x").key == "2d711642b726b044"


def test_own_tasks_by_level_number_and_name():
    level1 = names("level1")
    assert level1[:2] == ["level1/1_GELU", "level1/2_Softmax"] and level1[9:11] == [
        "level1/10_Cumsum",
        "level1/11_CrossEntropy",
    ]
    assert [len(names(level)) for level in ("level1", "level2", "level3")] == [53, 44, 17]
    assert names("level1/1") == names("level1/1_GELU") == names("level1/GELU") == ["level1/1_GELU"]
    assert names("level2", "level1/2", "level2/1") == [*names("level2"), "level1/2_Softmax"]  # each task once
    every = load_tasks("level1", "level2", "level3")
    assert len({task.key for task in every}) == len(every) >= 16


def test_files_and_folders_in_natural_order(tmp_path):
    folder = write(tmp_path / "mine", "10_b.py", "9_a.py", "__init__.py", "_helper.py", ".hidden.py", "note.txt")
    assert names(str(folder)) == ["mine/9_a", "mine/10_b"]
    assert names(str(folder / "9_a.py")) == ["9_a"]
    write(tmp_path / "checkout" / "level2", "2_x.py")
    write(tmp_path / "checkout" / "level10", "1_y.py")
    assert names(str(tmp_path / "checkout")) == ["level2/2_x", "level10/1_y"]


def test_parquet(tmp_path):
    path = str(tmp_path / "level_1.parquet")
    rows = {"name": ["10_Ten", "Two"], "code": [SOURCE, SOURCE], "level": [1, 1], "problem_id": [10, 2]}
    pyarrow.parquet.write_table(pyarrow.table(rows), path)
    assert names(path) == ["level1/2_Two", "level1/10_Ten"]  # the number is written once, and sorts as a number
    pyarrow.parquet.write_table(pyarrow.table({"name": ["a"], "code": [SOURCE]}), path)
    assert names(path) == ["level_1/a"]


def table(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return str(path)


def sentence(*specs):
    with pytest.raises(TaskError) as info:
        load_tasks(*specs)
    return str(info.value)


@pytest.fixture
def checkout(tmp_path):
    """The layout of KernelBench's repository."""
    root = tmp_path / "repository"
    for level, files in {
        1: ["19_ReLU.py", "2_B.py", "20_C.py"],
        2: ["19_D.py"],
        3: ["1_E.py"],
        4: ["10_gpt2_bs1.py"],
    }.items():
        folder = write(root / "KernelBench" / f"level{level}", *files, source=f"{SOURCE}# {level}\n")
        write(folder, "README.md", "__init__.py", source="no task")
    write(root / "scripts", "verify_bench.py", source="import os\n")
    write(root / "KernelBench" / "changelog", "v0.1", source="text")
    return root


def test_checkout_of_kernelbench(checkout):
    every = ["level1/2_B", "level1/19_ReLU", "level1/20_C", "level2/19_D", "level3/1_E", "level4/10_gpt2_bs1"]
    inner = checkout / "KernelBench"
    assert names(str(checkout)) == names(str(inner)) == names(f"{inner}/") == every
    assert names(f"{inner}/level1") == names(f"{checkout}/level1") == names(f"{inner}/level_1") == every[:3]
    for one in ("level1/19", "level1/19_ReLU", "level1/ReLU", "level1/19_ReLU.py", "level_1/19"):
        assert names(f"{inner}/{one}") == names(f"{inner}/level1", f"{inner}/{one}")[1:2] == ["level1/19_ReLU"]
    assert names(f"{inner}/19") == ["level1/19_ReLU", "level2/19_D"]
    assert names(f"{inner}/level4/10", f"{inner}/level1/20") == ["level4/10_gpt2_bs1", "level1/20_C"]
    assert "no task '21' in" in sentence(f"{inner}/level1/21") and "20_C" in sentence(f"{inner}/level1/21")
    assert "no task 'level5' in" in sentence(f"{checkout}/level5")
    assert "holds no .py file" in sentence(f"{inner}/changelog")
    write(inner / "level1", "3_bad.py", source="x = 1\n")
    assert names(f"{inner}/level1/19") == ["level1/19_ReLU"]  # what is not asked for is not read
    assert "3_bad.py does not define class Model" in sentence(str(checkout))


def test_parts_of_a_parquet(tmp_path):
    rows = {"name": ["19_ReLU", "2_B"], "code": [SOURCE, SOURCE], "level": [1, 1], "problem_id": [19, 2]}
    path = table(tmp_path / "hub" / "data" / "level_1-00000-of-00001.parquet", **rows)
    for spec in (path, f"{tmp_path}/hub", f"{tmp_path}/hub/data", f"{tmp_path}/hub/level_1", f"{path}/level1"):
        assert names(spec) == ["level1/2_B", "level1/19_ReLU"]
        assert names(f"{spec}/19") == ["level1/19_ReLU"]
    assert "no task '3' in" in sentence(f"{path}/3") and "level1/2_B" in sentence(f"{path}/3")


def test_rows_without_a_task_are_left_out(tmp_path, capsys):
    codes = [SOURCE, "def broken(:", None, "x = 1", SOURCE + "#", "x = '\\d'" + SOURCE]
    path = table(tmp_path / "some.parquet", name=list("abcdef"), code=codes)
    assert names(path) == ["some/a", "some/e", "some/f"]
    assert capsys.readouterr().err == f"{path}: 3 of 6 rows hold no task and are left out.\n"
    assert names(f"{path}/e") == ["some/e"] and capsys.readouterr().err == ""
    assert "No row" in sentence(f"{path}/b") and "not valid Python" in sentence(f"{path}/b")
    path = table(tmp_path / "none.parquet", name=["a", "b"], code=["x = 1", ""])
    assert "No row" in sentence(path) and "of 2" in sentence(path) and "does not define class Model" in sentence(path)
    assert "has no rows" in sentence(
        table(tmp_path / "empty.parquet", name=pyarrow.array([], "string"), code=pyarrow.array([], "string"))
    )


def rl_data(path):
    """drkernel-rl-data's columns; two rows that are no task, one twice, two of one uuid, one without."""
    sources = [SOURCE, SOURCE + "#2", SOURCE, "print(1)", None, SOURCE + "#3", SOURCE + "#4"]
    ids = ["cuda_llm_10", "cuda_llm_9", "cuda_llm_10", "cuda_llm_1", "cuda_llm_2", "cuda_llm_9", None]
    chat = [[{"role": "user", "content": "Optimize"}]] * 7
    info = [
        {"entry_point": "Model", "level": "0", "ops": "[]", "original_prompt": chat[0], "uuid": uuid} for uuid in ids
    ]
    return table(
        path,
        data_source=["cuda_llm"] * 7,
        prompt=chat,
        ability=["kernel_optimization"] * 7,
        reward_model=[{"ground_truth": source, "style": "rule"} for source in sources],
        extra_info=info,
    )


def test_drkernel_rl_data(tmp_path, capsys):
    path = rl_data(tmp_path / "train.parquet")
    key = Task("", SOURCE + "#4").key
    assert set(names(path)) == {"cuda_llm_9", "cuda_llm_9.2", "cuda_llm_10", key}
    assert "2 of 7 rows hold no task" in capsys.readouterr().err
    assert [task.source for task in load_tasks(f"{path}/cuda_llm_10")] == [SOURCE]


def test_hub(tmp_path, monkeypatch):
    asked = []

    def snapshot_download(repo, **options):
        asked.append((repo, options))
        return str(tmp_path / repo)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    for level in (1, 2):
        rows = {"code": [SOURCE] * 2, "level": [level] * 2, "name": ["1_A", "19_B"], "problem_id": [1, 19]}
        table(tmp_path / "Scaling" / "KernelBench" / "data" / f"level_{level}-00000-of-00001.parquet", **rows)
    hub = "hf:Scaling/KernelBench"
    assert names(hub) == ["level1/1_A", "level1/19_B", "level2/1_A", "level2/19_B"]
    assert asked == [("Scaling/KernelBench", {"repo_type": "dataset", "allow_patterns": "*.parquet"})]
    assert names(f"{hub}/level_2") == names(f"{hub}/level2") == ["level2/1_A", "level2/19_B"]
    assert names(f"{hub}/level_2/19") == names(f"{hub}/level2/19_B") == ["level2/19_B"]
    assert "no task 'level_5' in hf:Scaling/KernelBench" in sentence(f"{hub}/level_5")
    rl_data(tmp_path / "hkust-nlp" / "drkernel-rl-data" / "cuda_llm.parquet")
    assert len(names("hf:hkust-nlp/drkernel-rl-data")) == 4
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert "'hf:a/b' has no rows in parquet files" in sentence("hf:a/b")
    assert "hf:<owner>/<name>" in sentence("hf:a")


@pytest.mark.parametrize(
    "failure", [errors.LocalEntryNotFoundError("two\nlines"), ConnectionError(), errors.HTTPError("")]
)
def test_hub_out_of_reach_gives_the_command(monkeypatch, failure):
    def snapshot_download(*args, **options):
        raise failure

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    text = sentence("hf:ScalingIntelligence/KernelBench/level_1")
    assert "`hf download --repo-type dataset ScalingIntelligence/KernelBench`" in text
    assert type(failure).__name__ in text and "\n" not in text and text.count(". ") == 0


def test_hub_offline_with_an_empty_cache(tmp_path):
    """The real huggingface_hub, with nothing in HF_HOME."""
    code = "import kernelbench as k\ntry: k.load_tasks('hf:a/b')\nexcept k.TaskError as e: print(e)"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        env.pop(name, None)
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert "hf download --repo-type dataset a/b" in said.stdout, said


def test_toy_specs():
    assert names("toy/train:3") == ["toy/train/0", "toy/train/1", "toy/train/2"]
    assert load_tasks("toy/test/2", seed=5) == load_tasks("toy/test:3", seed=5)[2:]
    assert load_tasks("toy/test/2", seed=5) != load_tasks("toy/test/2", seed=6)
    assert load_tasks("toy/test/2", device="cuda") != load_tasks("toy/test/2", device="cpu")
    assert len(load_tasks("toy")) == 256


@pytest.mark.parametrize(
    "specs, words",
    [
        ([], ["level1", "toy/train:<N>"]),
        (["level7"], ["Unknown task 'level7'", "level1"]),
        (["level1/99"], ["level1", "2_Softmax", "11_CrossEntropy"]),
        (["toy/train"], ["toy/train:<N>"]),
        (["toy/valid:3"], ["toy/test:<N>"]),
        (["toy/test:0"], ["zero tasks", "toy/test:<N>"]),
        (["./nowhere.py"], ["no file", "nowhere.py"]),
        (["nowhere.parquet"], ["no file", "nowhere.parquet"]),
    ],
)
def test_unknown_specs_name_the_choices(specs, words):
    with pytest.raises(TaskError) as error:
        load_tasks(*specs)
    assert all(word in str(error.value) for word in words), error.value


def test_bad_files_are_named(tmp_path):
    def text(path):
        with pytest.raises(TaskError) as error:
            load_tasks(str(path))
        return str(error.value)

    folder = write(tmp_path / "tasks", "a.py", source=SOURCE.replace("get_inputs", "inputs"))
    assert "a.py" in text(folder) and "does not define get_inputs() at its top level" in text(folder)
    nested = "class Other:\n" + "\n".join("    " + line for line in SOURCE.split("\n"))
    write(folder, "b.py", source=nested)
    assert "class Model or get_inputs() or get_init_inputs()" in text(folder / "b.py")
    write(folder, "c.py", source="def get_inputs(:\n")
    assert "c.py is not valid Python" in text(folder / "c.py") and "line 1" in text(folder / "c.py")
    (folder / "d.py").write_bytes(b"\xff\xfe\x00")
    assert "d.py" in text(folder / "d.py")
    (tmp_path / "empty").mkdir()
    assert "holds no .py file" in text(tmp_path / "empty")
    (folder / "e.parquet").write_text("not parquet")
    assert "e.parquet" in text(folder / "e.parquet") and "download it again" in text(folder / "e.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"name": ["a"], "source": ["b"]}), folder / "f.parquet")
    assert "no column code" in text(folder / "f.parquet")


def test_two_tasks_of_one_name(tmp_path):
    one, two = write(tmp_path / "1" / "same", "a.py"), write(tmp_path / "2" / "same", "a.py", source=SOURCE + "\n")
    assert names(str(one), str(one)) == ["same/a"]
    with pytest.raises(TaskError, match="same/a"):
        load_tasks(str(one), str(two))


def test_loading_is_light():
    code = "import sys, kernelbench as k; k.load_tasks('level1', 'toy/test:2'); print({'torch', 'triton', 'pyarrow', 'huggingface_hub'} & set(sys.modules))"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True).stdout == "set()\n"


OWN = load_tasks("level1", "level2", "level3")


def build(task, small=True):
    names = {}
    exec(task.source, names)
    assert names["SMALL"].keys() <= names.keys()
    if small:
        names.update(names["SMALL"])
    torch.manual_seed(0)
    model = names["Model"](*names["get_init_inputs"]())
    return names, model, names["get_inputs"]()


@pytest.mark.parametrize("task", OWN, ids=lambda task: task.name)
def test_own_tasks_are_worth_judging(task):
    """Each input and each parameter matters, the output is spread, and float32 is as good as float64 within a fifth of the tolerance."""
    names, model, inputs = build(task)
    out = model(*inputs).detach()
    assert max(t.numel() for t in inputs) < 20_000 and out.numel() < 20_000  # the interpreter's sizes, not a GPU's
    assert out.double().std() > 0.2 * out.double().square().mean().sqrt() > 0

    def moved(*changed):
        return (model(*changed).detach().double() - out.double()).abs().mean() > 0.01 * out.double().abs().mean()

    for i, t in enumerate(inputs):
        other = -t if t.is_floating_point() else t.flip(0)
        assert moved(*inputs[:i], other, *inputs[i + 1 :]), f"input {i}"
    for name, slot in [*model.named_parameters(), *model.named_buffers()]:
        kept = slot.detach().clone()
        slot.data += 0.5 * torch.randn_like(slot)
        assert moved(*inputs), name
        slot.data.copy_(kept)
        assert slot.numel() == 1 or slot.std() > 0, f"{name} is constant: a candidate may leave it out"
    if out.dtype == torch.float32:
        exact = model.double()(*[t.double() if t.is_floating_point() else t for t in inputs]).detach()
        allowed = 2e-5 * (exact.square().mean().sqrt().clamp(max=1) + exact.abs())
        assert ((out - exact).abs() <= allowed).all()


class Bytes(TorchDispatchMode):
    """Adds up what every operator returns, views aside."""

    total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if not func.is_view:
            self.total += sum(t.nbytes for t in (out if isinstance(out, tuple) else [out]) if t is not None)
        return out


@pytest.mark.parametrize("task", OWN, ids=lambda task: task.name)
def test_own_tasks_on_a_gpu_do_not_fit_its_cache(task):
    """Full sizes on the meta device: tensors made add up to more than an H200's L2 (50 MB), inputs and weights to less than 1 GB."""
    names = {}
    exec(task.source, names)
    with torch.device("meta"):
        model, inputs = names["Model"](*names["get_init_inputs"]()), names["get_inputs"]()
        given = sum(t.nbytes for t in [*inputs, *model.parameters(), *model.buffers()])
        with Bytes() as made:
            model(*inputs)
    assert given < 1e9 and 60e6 < given + made.total < 2e9, (given, made.total)


def test_softmax_and_rotary_by_hand():
    """Two own tasks against numbers worked out by hand."""
    names, model, _ = build(load_tasks("level1/2")[0])
    torch.testing.assert_close(
        model(torch.tensor([[0.0, 0.0], [0.0, 3.0]]).log1p()), torch.tensor([[0.5, 0.5], [0.2, 0.8]])
    )
    names, _, _ = build(load_tasks("level2/6_RotaryEmbedding")[0])
    # width 2: one frequency, 1 rad a position; position 1 turns (1, 0) into (cos 1, sin 1)
    turned = names["Model"](2, 2)(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    torch.testing.assert_close(turned, torch.tensor([[1.0, 0.0], [0.5403023, 0.8414710]]))
