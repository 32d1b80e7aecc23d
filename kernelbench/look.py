"""The static look at a candidate's source: by AST, names followed through imports, assignments and constant strings.

It refuses only what no kernel can have an honest use for; what an honest kernel might do it reports, and says nothing of the rest.
It explains, it does not protect: what hides from it meets the sandbox, the secret inputs, the clock and the knock-out.

Covered: aliases of modules and names, getattr/setattr/vars/__dict__/sys.modules with constant (also concatenated) strings, __import__ and
import_module, modules reached through others (`torch.os`), all targets of assignment, constant strings given to exec, scopes.
Not covered: names through containers, attributes of own objects, arguments and return values; computed strings.
"""

import ast
import builtins
from collections import deque
from dataclasses import dataclass

from kernelbench.process import Stop

MOST = 200_000  # bytes of source that are judged: looking at more would hold up the referee for seconds


@dataclass(frozen=True)
class Finding:
    """One thing that the look noticed: the rule, "refuse" or "report", where, and what in words."""

    rule: str
    severity: str
    line: int
    text: str


# rule -> what is wrong about it and what to do instead, as the model reads it
REFUSED = {
    "frames": "a kernel has no business in the interpreter's frames: compute the output from the inputs and parameters alone",
    "objects": "a kernel has no business among other code's objects: compute the output from the inputs and parameters alone",
    "code": "code objects, globals and closures of functions must stay as they are: write the function that you need",
    "native": "memory and libraries must not be reached behind PyTorch's back: do the work in @triton.jit kernels",
    "process": "a kernel must not start, signal, replace or end processes: do the work in forward, in this process",
    "patch": "torch, triton, time and the interpreter's modules must stay as they are: put the work in functions and kernels of your own",
    "subclass": "outputs must be plain tensors, computed when forward returns: return torch.Tensor, without subclasses or dispatch hooks",
    "harness": "the judge's own modules are out of bounds: write everything that you need in this file",
    "hidden": "code must be readable: write it out instead of decoding it",
    "import": "modules must be named where they are imported: write the import statement",
    "innards": "torch's C++ side is out of bounds where it is no operator: use torch's public functions",
}
REPORTED = {"threads", "atexit", "stream", "graph", "clock", "compile", "cuda", "file", "environment", "pickle", "exit"}
REPORTED |= {"tf32", "source", "exec", "memory", "profile", "network", "internals"}

# A name stands for all below it; the longest that fits decides.
NAMES = {
    "frames": "sys._getframe sys._getframemodulename sys._current_frames sys._current_exceptions sys.settrace sys.setprofile sys.monitoring "
    "sys.addaudithook threading.settrace threading.setprofile threading.settrace_all_threads threading.setprofile_all_threads "
    "inspect.currentframe inspect.stack inspect.trace inspect.getouterframes inspect.getinnerframes traceback.walk_stack "
    "traceback.extract_stack types.FrameType",
    "objects": "inspect.getmodule gc.get_objects gc.get_referrers gc.get_referents gc.callbacks gc.garbage gc.set_debug",
    "code": "types.CodeType types.FunctionType types.LambdaType types.CellType",
    "native": "ctypes _ctypes cffi _cffi_backend mmap numpy.ctypeslib torch.ops.load_library torch.cuda._compile_kernel",
    "process": "subprocess _posixsubprocess multiprocessing _multiprocessing torch.multiprocessing signal _signal socket _socket pty _thread "
    "concurrent.futures.ProcessPoolExecutor concurrent.futures.process asyncio.create_subprocess_exec asyncio.create_subprocess_shell "
    "asyncio.subprocess os.fork os.forkpty os.kill os.killpg os.system os.popen os._exit os.setsid os.setpgid os.setpgrp os.dup "
    "os.dup2 os.pidfd_open os.setns os.unshare os.execl os.execle os.execlp os.execlpe os.execv os.execve os.execvp os.execvpe os.spawnl "
    "os.spawnle os.spawnlp os.spawnlpe os.spawnv os.spawnve os.spawnvp os.spawnvpe os.posix_spawn os.posix_spawnp",
    "patch": "unittest.mock.patch sys.meta_path sys.path_hooks torch._C._dispatch_library torch.nn.modules.module.register_module_forward_hook "
    "torch.nn.modules.module.register_module_forward_pre_hook",
    "subclass": "torch.Tensor._make_subclass torch.Tensor._make_wrapper_subclass torch.utils._python_dispatch torch._C.DisableTorchFunction "
    "torch._C.DisableTorchFunctionSubclass torch._C._DisableTorchDispatch torch._C._ExcludeDispatchKeyGuard "
    "torch._C._ForceDispatchKeyGuard torch.utils._mode_utils",
    "harness": "kernelbench __main__",
    "hidden": "marshal.loads marshal.load",
    "threads": "threading concurrent.futures asyncio",
    "atexit": "atexit",
    "exit": "os.abort builtins.exit builtins.quit sys.exit",
    "stream": "torch.cuda.Stream torch.cuda.ExternalStream torch.cuda.stream torch.cuda.set_stream torch.cuda.StreamContext",
    "graph": "torch.cuda.CUDAGraph torch.cuda.graph torch.cuda.graphs torch.cuda.make_graphed_callables",
    "clock": "time.sleep torch.cuda._sleep",
    "compile": "torch.compile",
    "cuda": "torch.utils.cpp_extension",
    "file": "shutil tempfile torch.save torch.load numpy.save os.open os.write os.remove os.unlink os.rename os.replace os.symlink os.link "
    "os.chmod os.truncate os.mkdir os.makedirs os.rmdir os.memfd_create",
    "environment": "os.putenv os.unsetenv os.environ.update os.environ.setdefault os.environ.pop os.environ.clear",
    "pickle": "pickle _pickle dill cloudpickle marshal shelve",
    "tf32": "torch.set_float32_matmul_precision",
    "source": "inspect.getsource inspect.getsourcelines inspect.getfile",
    "memory": "gc torch.cuda.memory.CUDAPluggableAllocator",
    "profile": "torch.profiler torch.autograd.profiler cProfile",
    "network": "urllib http requests ssl",
    "internals": "torch._C torch._C._nn torch._C._fft torch._C._linalg torch._C._special torch._C._sparse torch._C._nested "
    "torch._C._VariableFunctions torch._C._cuda_getCurrentRawStream torch._C._cuda_getCurrentStream torch._C._cuda_getDevice "
    "torch._C._get_tracing_state torch._C._jit_set_profiling_mode torch._C._jit_set_profiling_executor torch._C._jit_set_bailout_depth "
    "torch._C._jit_set_num_profiled_runs torch._C._jit_set_fusion_strategy torch._C._jit_set_texpr_fuser_enabled "
    "torch._C._jit_set_nvfuser_enabled torch._C._jit_override_can_fuse_on_cpu torch._C._jit_override_can_fuse_on_gpu "
    "sys.modules resource faulthandler traceback.print_stack traceback.format_stack builtins.breakpoint",
}
RULES = {name: rule for rule, names in NAMES.items() for name in names.split()}
# attributes that say the same on any object
SAID = {
    "code": "__code__ __globals__ __closure__",
    "objects": "__subclasses__",
    "frames": "f_back f_locals f_globals tb_frame gi_frame cr_frame ag_frame",
    "subclass": "_make_subclass _make_wrapper_subclass __torch_function__ __torch_dispatch__ "
    # what leads past the modes of torch, on whatever module it is found
    "redispatch no_dispatch _ForceDispatchKeyGuard _DisableTorchDispatch _disable_current_modes",
    "native": "__array_interface__ __array_struct__ __cuda_array_interface__",
    "internals": "as_subclass",
    "file": "write_text write_bytes",
}
ATTRIBUTES = {name: rule for rule, names in SAID.items() for name in names.split()}
TENSORS = {"torch.Tensor", "torch._tensor.Tensor", "torch._C.TensorBase", "torch._C._TensorBase", "torch.FloatTensor"}

# modules that nobody assigns to, but for their settings
PATCHED = {"torch", "triton", "time", "builtins", "os", "sys", "inspect"}
SETTINGS = ("torch.backends.", "torch._inductor.config.", "torch._dynamo.config.", "triton.knobs.language.")
SETTINGS += ("triton.knobs.compilation.", "triton.knobs.autotuning.")
LEAKED = {"os", "sys", "ctypes", "gc", "subprocess", "builtins", "inspect", "importlib", "mmap"}  # `torch.os` is `os`
CHANGES = {"update", "setdefault", "pop", "popitem", "clear", "__setitem__", "__delitem__", "__ior__"}  # of a dict
# functions that set what they are told to -> how many arguments, the object among them
SETTERS = {"setattr": 3, "delattr": 2, "__setattr__": 3, "__delattr__": 2, "setitem": 3}
DECODERS = {"base64", "codecs", "zlib", "binascii", "marshal", "bz2", "lzma"}
OWN = "(own)"  # what a class of this file stands for
SILENT = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)  # nodes without content


class Text(str):
    """What is known of an expression that is a constant string; a plain str is the dotted name of what it stands for."""


class Scope(dict):
    """Names of a module, class, function or comprehension -> dotted name, Text, OWN (a class of this file), or None (something of its own)."""

    def __init__(self, outer: "Scope | None" = None, kind: str = "function"):
        super().__init__()
        self.outer, self.kind, self.shared = outer, kind, set()

    def home(self, name: str) -> "Scope":
        """Where an assignment here puts the name: `global` names belong to the outermost scope."""
        scope = self
        while name in self.shared and scope.outer is not None:
            scope = scope.outer
        return scope

    def find(self, name: str) -> str | None:
        scope = self.home(name)
        while scope is not None:
            if name in scope and (scope.kind != "class" or scope is self):
                return scope[name]
            scope = scope.outer
        return "builtins" if name == "__builtins__" else f"builtins.{name}" if hasattr(builtins, name) else None


def rule_of(name: str | None) -> str | None:
    """The rule that a dotted name falls under; results of calls fall under none."""
    whole = name
    while name and "(" not in name:
        if name in RULES:
            return "innards" if name == "torch._C" != whole else RULES[name]
        name = name.rpartition(".")[0]
    return None


def canonical(name: str) -> str | None:
    """One spelling for one thing; None for names too long to be anything."""
    parts = name.split(".")
    if len(parts) > 30:
        return None
    for i in range(len(parts) - 1, 0, -1):
        if parts[i].lstrip("_") in LEAKED and parts[0] != "kernelbench":
            parts = [parts[i].lstrip("_"), *parts[i + 1 :]]
            break
    if parts[0] in ("posix", "nt", "_io", "io"):
        parts[0] = "builtins" if parts[0].endswith("io") else "os"
    return ".".join(parts)


class Look:
    """Walks one tree in the order of execution, bodies of functions last, without recursion: source may be nested deeply."""

    def __init__(self):
        self.findings, self.later, self.line, self.fixed = {}, deque(), 0, None
        self.inside: set[str] = set()  # texts given to exec that were looked into
        self.methods: set[str] = set()  # names of functions within classes

    def note(self, rule: str, text: str):
        line = self.fixed or self.line
        severity = "refuse" if rule in REFUSED else "report"
        self.findings.setdefault((line, rule, text), Finding(rule, severity, line, text))

    def walk(self, tree: ast.AST, scope: Scope):
        self.known: dict[ast.AST, str | None] = {}  # what each finished expression stands for
        stack = [(tree, scope, False)]
        while stack or self.later:
            if not stack:
                stack.append(self.later.popleft())
            node, scope, finish = stack.pop()
            if finish:
                self.line = getattr(node, "lineno", self.line)
                if rule := getattr(self, type(node).__name__, None):
                    rule(node, scope)
            else:
                stack.append((node, scope, True))
                stack += [(child, inner, False) for child, inner in reversed(self.children(node, scope))]

    def children(self, node: ast.AST, scope: Scope) -> list[tuple[ast.AST, Scope]]:
        """What to look at before the node itself; bodies of functions are put off until their surroundings are known."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            inner, a = Scope(scope), node.args
            every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
            inner.update(dict.fromkeys(arg.arg for arg in every))
            bound = {getattr(d, "id", None) for d in getattr(node, "decorator_list", ())}
            if scope.kind == "class" and "classmethod" in bound:
                inner.update((arg.arg, OWN) for arg in every[:1])
            body = node.body if isinstance(node.body, list) else [node.body]
            self.later += [(child, inner, False) for child in body]
            now = [*getattr(node, "decorator_list", ()), *a.defaults, *filter(None, a.kw_defaults)]
            return [(child, scope) for child in now]
        if isinstance(node, ast.ClassDef):
            inner = Scope(scope, "class")
            heads = [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]
            return [(child, scope) for child in heads] + [(child, inner) for child in node.body]
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            inner = Scope(scope)
            results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            parts = [p for g in node.generators for p in (g.iter, g.target, *g.ifs)]
            return [(child, inner) for child in parts + results]
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor, ast.NamedExpr)):
            first = getattr(node, "value", None) or getattr(node, "iter", None)
            done = (first, getattr(node, "annotation", None))
            rest = [child for child in ast.iter_child_nodes(node) if child not in done]
            return [(child, scope) for child in ([first] if first else []) + rest]
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in ("isinstance", "issubclass"):
            return [(child, scope) for child in node.args[:1]]  # naming a class is no use of it
        if self.is_own_file(node, scope):
            return [(node.func, scope)]
        if isinstance(node, ast.If) and self.is_demo(node.test, scope):
            return [(child, scope) for child in node.orelse]
        return [(child, scope) for child in ast.iter_child_nodes(node) if not isinstance(child, SILENT)]

    @staticmethod
    def is_own_file(node: ast.AST, scope: Scope) -> bool:
        """`inspect.getfile(inspect.currentframe())`, which is `__file__`."""
        calls = [node, *node.args] if isinstance(node, ast.Call) and len(node.args) == 1 else []
        funcs = [getattr(call, "func", None) for call in calls]
        names = [(getattr(f, "attr", ""), scope.find(getattr(getattr(f, "value", None), "id", ""))) for f in funcs]
        plain = names == [("getfile", "inspect"), ("currentframe", "inspect")] and not calls[1].args
        return plain and not any(call.keywords for call in calls)

    @staticmethod
    def is_demo(test: ast.AST, scope: Scope) -> bool:
        """`__name__ == "__main__"`, which is never so here, with other conditions or without."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            return any(Look.is_demo(value, scope) for value in test.values)
        if not isinstance(test, ast.Compare) or len(test.ops) > 1 or not isinstance(test.ops[0], ast.Eq):
            return False
        sides = {str(getattr(side, "id", getattr(side, "value", None))) for side in (test.left, test.comparators[0])}
        return sides == {"__name__", "__main__"} and scope.find("__name__") == "builtins.__name__"

    # What statements bind

    def bind(self, target: ast.AST, value: ast.AST | None, scope: Scope):
        """The names of a target, pairwise where both sides are tuples."""
        if isinstance(target, ast.Name):
            scope.home(target.id)[target.id] = self.known.get(value)
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            for one, its in zip(target.elts, value.elts):
                self.bind(one, its, scope)

    def Assign(self, node, scope):
        for target in node.targets:
            self.bind(target, node.value, scope)
            if (self.known.get(target) or "").endswith(("allow_tf32", "fp32_precision")):
                if not (isinstance(node.value, ast.Constant) and node.value.value in (False, "ieee")):
                    self.note("tf32", f"setting of {self.known[target]}")

    def AnnAssign(self, node, scope):
        if node.value:
            self.bind(node.target, node.value, scope)

    def NamedExpr(self, node, scope):
        self.bind(node.target, node.value, scope)
        self.known[node] = self.known.get(node.value)

    def FunctionDef(self, node, scope):
        scope.home(node.name)[node.name] = None
        self.methods |= {node.name} if scope.kind == "class" else set()
        self.define(node.name)

    AsyncFunctionDef = FunctionDef

    def ClassDef(self, node, scope):
        scope.home(node.name)[node.name] = OWN
        if any(self.known.get(base) in TENSORS for base in node.bases):
            self.note("subclass", f"class {node.name} inherits from torch.Tensor")

    def Global(self, node, scope):
        scope.shared.update(node.names)

    def MatchAs(self, node, scope):
        if node.name:
            scope[node.name] = None

    MatchStar = ExceptHandler = MatchAs

    def Import(self, node, scope):
        for alias in node.names:
            top = alias.asname or alias.name.split(".")[0]
            scope.home(top)[top] = canonical(alias.name if alias.asname else top)
            if rule := rule_of(canonical(alias.name)):
                self.note(rule, f"import of {alias.name}")

    def ImportFrom(self, node, scope):
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            name = canonical(module if alias.name == "*" else f"{module}.{alias.name}")
            if alias.name == "*":  # all that the rules know of this module
                scope |= {known.rpartition(".")[2]: known for known in RULES if known.rpartition(".")[0] == name}
            else:
                scope.home(alias.asname or alias.name)[alias.asname or alias.name] = name
            if rule := rule_of(name):
                self.note(rule, f"import of {module if rule_of(module) == rule else name}")

    # What expressions stand for

    def Constant(self, node, scope):
        if isinstance(node.value, (str, bytes)):
            self.known[node] = Text(node.value if isinstance(node.value, str) else node.value.decode("latin-1"))

    def BinOp(self, node, scope):
        left, right = self.known.get(node.left), self.known.get(node.right)
        if isinstance(node.op, ast.Add) and isinstance(left, Text) and isinstance(right, Text):
            self.known[node] = Text((left + right)[:10_000])

    def JoinedStr(self, node, scope):
        parts = [self.known.get(getattr(part, "value", None), self.known.get(part)) for part in node.values]
        if all(isinstance(part, Text) for part in parts):
            self.known[node] = Text("".join(parts)[:10_000])

    def Name(self, node, scope):
        if not isinstance(node.ctx, ast.Load):
            scope.home(node.id)[node.id] = None
            if scope.kind == "class":
                self.define(node.id)
        elif (found := scope.find(node.id)) is not None:
            self.means(node, found)

    def Dict(self, node, scope):
        """What `type` makes of it is a class."""
        for key in node.keys:
            if isinstance(name := self.known.get(key), Text):
                self.define(name)

    def define(self, name: str):
        if name.startswith("__") and (rule := ATTRIBUTES.get(name)) in ("subclass", "native"):
            self.note(rule, f"definition of {name}")

    def means(self, node: ast.AST, name: str | None):
        self.known[node] = name
        if not isinstance(name, Text) and (rule := rule_of(name)):
            self.note(rule, f"use of {name}")

    def member(self, node: ast.AST, base: str | None, name: str):
        """`base.name`, however it was written."""
        if name in ATTRIBUTES and not (base == OWN and name == "__subclasses__"):
            self.note(ATTRIBUTES[name], f"use of {name}")
        if base not in (None, OWN) and not isinstance(base, Text):
            self.means(node, canonical(f"{base}.{name}"))

    def patched(self, name: str | None):
        if name and not isinstance(name, Text) and "(" not in name and name.split(".")[0] in PATCHED:
            if name.startswith("os.environ."):
                self.note("environment", "writing to os.environ")
            elif not name.startswith(SETTINGS):
                self.note("patch", f"patching of {name}")

    def Attribute(self, node, scope):
        mine = node.attr in self.methods and getattr(node.value, "id", None) == "self"
        if not (mine and node.attr == "redispatch"):
            self.member(node, self.known.get(node.value), node.attr)
        if not isinstance(node.ctx, ast.Load):
            self.patched(self.known.get(node))

    def Subscript(self, node, scope):
        base, key = self.known.get(node.value), self.known.get(node.slice)
        if base is None or isinstance(base, Text):
            return
        if not isinstance(node.ctx, ast.Load):
            if base.endswith(".__dict__") or base in ("sys.modules", "builtins", "os.environ"):
                self.patched(f"{base.removesuffix('.__dict__')}.{key or '...'}")
        elif isinstance(key, Text):
            self.entry(node, base, key, scope)

    def entry(self, node: ast.AST, base: str, key: str, scope: Scope):
        """`base[key]` of a table of names."""
        if base == "sys.modules":
            self.means(node, canonical(key))
        elif base == "builtins" or base.endswith(".__dict__"):
            self.member(node, base.removesuffix(".__dict__"), key)
        elif base in ("builtins.globals()", "builtins.locals()", "builtins.vars()"):
            self.means(node, scope.find(key))

    def Call(self, node, scope):
        name, known = self.known.get(node.func), [self.known.get(arg) for arg in node.args]
        if name in (None, OWN) or isinstance(name, Text):
            return
        owner, _, last = name.rpartition(".")
        text = known[1] if len(known) > 1 and isinstance(known[1], Text) else None
        first = known[0] if known else None
        if last == "getattr" and owner == "builtins" and text is not None:
            self.member(node, first, text)
        elif last == "getattr" and owner == "builtins" and first == "torch._C":
            self.note("innards", "use of a computed name of torch._C")
        elif last == "__getattribute__" and isinstance(known[-1] if known else None, Text):
            self.member(node, owner if len(known) == 1 else first, known[-1])
        elif name == "builtins.vars" and known:
            self.known[node] = f"{first}.__dict__" if first and not isinstance(first, Text) else None
        elif name in ("builtins.__import__", "importlib.import_module", "importlib.__import__"):
            first = first or next((self.known.get(k.value) for k in node.keywords if k.arg == "name"), None)
            if not isinstance(first, Text):
                self.note("import", "import of a computed name")
            else:
                whole = name.endswith("import_module") or len(known) > 3 or "fromlist" in [k.arg for k in node.keywords]
                self.means(node, canonical(first if whole else first.split(".")[0]))
                if rule := rule_of(canonical(first)):
                    self.note(rule, f"import of {first}")
        elif last == "get" and isinstance(first, Text):
            self.entry(node, owner, first, scope)
        else:
            self.known[node] = canonical(f"{name}()")
        target = first if len(known) == SETTERS.get(last) else owner
        if last in SETTERS and target and not isinstance(target, Text):
            key = known[1 if len(known) == SETTERS[last] else 0] if known else None
            self.patched(f"{target.removesuffix('.__dict__')}.{key if isinstance(key, Text) else '...'}")
        if last == "setattr" and text in ATTRIBUTES:
            self.note(ATTRIBUTES[text], f"setting of {text}")
        if last in CHANGES:
            target = first if owner == "builtins.dict" and first else owner
            if target == "sys.modules" or target.endswith(".__dict__"):
                self.patched(target)
        if name.startswith("torch.library.") and isinstance(first, Text) and first.startswith("aten"):
            self.note("patch", f"patching of {first}")
        bases = node.args[1] if name in ("builtins.type", "types.new_class") and len(node.args) > 1 else None
        if isinstance(bases, (ast.Tuple, ast.List)) and any(self.known.get(base) in TENSORS for base in bases.elts):
            self.note("subclass", "a class that inherits from torch.Tensor")
        if name in ("builtins.exec", "builtins.eval", "builtins.compile"):
            self.run(node, known, last, scope)
        if name == "builtins.open" or name == "os.fdopen":
            modes = [text] if len(known) > 1 else [self.known.get(k.value) for k in node.keywords if k.arg == "mode"]
            if any(mode is None or set(mode) & set("wax+") for mode in modes):
                self.note("file", "opening of a file to write")
            elif isinstance(first, Text) and first.startswith(("/proc", "/dev", "/sys")):
                self.note("file", f"opening of {first[:40]}")

    def run(self, node: ast.Call, known: list, last: str, scope: Scope):
        """exec, eval, compile: look inside what is constant, refuse what is decoded, report the rest."""
        first = known[0] if known else None
        if isinstance(first, Text):
            if first in self.inside:
                return
            if sum(map(len, self.inside)) + len(first) > MOST:
                return self.note("exec", f"{last} of more text than is looked into")
            self.inside.add(first)
            try:
                inner = ast.parse(first.strip())
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return self.note("exec", f"{last} of text that cannot be parsed")
            look = Look()
            look.findings, look.inside, look.fixed = self.findings, self.inside, self.fixed or self.line
            look.walk(inner, Scope(scope))
        elif first and first.split(".")[0] in DECODERS:
            self.note("hidden", f"{last} of what {first.partition('()')[0]} gives")
        elif not (first or "").startswith("builtins.compile("):
            self.note("exec", f"{last} of computed text")


def look(code: str | None, entry: str) -> list[Finding]:
    """Stop with no_code, compile_error or hack (the first line that is refused); else what deserves to be reported, by line."""
    if code is None or not isinstance(code, str) or not code.strip():
        raise Stop("no_code", f"No complete code block that defines class {entry} was found.")
    try:
        size = len(code.encode())
    except UnicodeEncodeError as error:
        line = code[: error.start].count("\n") + 1
        raise Stop(
            "compile_error", f"Line {line} holds a character that UTF-8 does not know (a lone surrogate)."
        ) from None
    if size > MOST:
        raise Stop("compile_error", f"The code is {size // 1000} kB long; at most {MOST // 1000} kB are judged.")
    try:
        tree = ast.parse(code.removeprefix("\ufeff"))  # a byte order mark
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if not (line := getattr(error, "lineno", None)):
            raise Stop("compile_error", f"The code cannot be parsed: {error}") from None
        text = code.splitlines()[line - 1].strip() if line <= len(code.splitlines()) else ""
        raise Stop("compile_error", f"SyntaxError in line {line}: {error.msg}: {text}") from None
    eye, scope = Look(), Scope()
    eye.walk(tree, scope)
    if entry not in scope:
        raise Stop("no_code", f"The code defines no class {entry} at its top level.")
    findings = sorted(eye.findings.values(), key=lambda f: f.line)
    for f in findings:
        if f.severity == "refuse":
            raise Stop("hack", f"Line {f.line}: {f.text} (rule '{f.rule}') is not accepted: {REFUSED[f.rule]}.", f.text)
    return findings
