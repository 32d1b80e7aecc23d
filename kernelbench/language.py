"""What a kernel's body may do in Triton's interpreter: what the compiler would let pass. Python runs it here, and could do anything with the
arrays behind the values: unmetered work, or what no GPU can.

The compiler's statements and expressions, its globals and built-in functions, calls of its own functions and helpers. Other functions (math's)
get and give plain numbers only, as while a kernel is compiled. No operator, index or function of Triton's meets an object with such methods of
its own as would be given the values.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton._C.libtriton import ir
from triton.compiler.code_generator import CodeGenerator
from triton.language.extra import cuda
from triton.runtime import interpreter
from triton.runtime.jit import ConstexprFunction, JITCallable


class Unsupported(BaseException):
    """The candidate needs what cannot be simulated: neither right nor wrong. A BaseException: no fallback of the candidate's may hide it."""


class Unavailable(Unsupported, RuntimeError):
    """A feature that a GPU or a build may lack too, with nothing done yet: an Exception, which an honest fallback may catch."""


class NotTriton(BaseException):
    """A kernel does what only Python can."""


_LANGUAGE = {name.removeprefix("visit_") for name in dir(CodeGenerator) if name.startswith("visit_")}
_LANGUAGE |= {"Starred", "FormattedValue", "Break", "Continue"}  # these two are left to the author to find out on a GPU
_BUILTINS = set(
    "len list range float int isinstance getattr hasattr print min max".split()
)  # that a compiled kernel can call
_PLAIN = interpreter.InterpretedFunction  # of the language's own functions
_ON_TENSORS = (len, isinstance, hasattr, print)
_ARITHMETIC = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor".split()
_OPERATORS = {f"__{kind}{name}__" for kind in ("", "r", "i") for name in _ARITHMETIC}
_OPERATORS |= {
    f"__{name}__" for name in "lt le gt ge eq ne contains getitem class instancecheck subclasscheck array_ufunc".split()
}
_TUPLES = (tuple, list, tl.tuple, torch.Size)
_ITSELF = {int, float, bool, str, types.NoneType, types.EllipsisType, slice, type, torch.dtype, *np.sctypeDict.values()}
_ITSELF |= {types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType}
_ITSELF |= {kind for place in (tl.core, ir) for kind in vars(place).values() if isinstance(kind, type)} - {
    tl.constexpr,
    tl.tuple,
}
_LINE, _CONTENTS = (type.__dict__[name].__get__ for name in ("__mro__", "__dict__"))  # of a class, whatever it says
_known: set[types.CodeType] = set()  # the functions of Triton and of the simulation


def _is_triton(value: Any) -> bool:
    """A tensor of the language, or something that holds one."""
    if isinstance(value, (tuple, list, tl.tuple)):
        return any(map(_is_triton, value))
    return isinstance(value, tl.core.base_value) and not isinstance(value, tl.constexpr)


def _made_by_triton(kind: type) -> bool:
    """Whether a class is found where it says that it is, in Triton or here."""
    home = sys.modules.get(kind.__module__) if kind.__module__.split(".")[0] in ("triton", "kernelbench") else None
    found = home
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return kind is _PLAIN or (home is not None and found is kind)


def _of_triton(callee: Any) -> bool:
    """Whether a call is the language's business: its functions and classes, helpers, methods of its values, named tuples."""
    if isinstance(callee, functools.partial):  # as the interpreter makes of hints
        if callee.args or {*map(type, callee.keywords.values())} - {str}:
            return False
        callee = callee.func
    owner = getattr(callee, "__self__", None)
    if isinstance(callee, types.MethodType):
        callee = callee.__func__
    if isinstance(callee, types.FunctionType):
        home = callee.__globals__.get("__name__", "")
        known = home.split(".")[0] in ("triton", "kernelbench") and home in sys.modules
        return known and vars(sys.modules[home]) is callee.__globals__ and callee.__code__ in _known
    if isinstance(callee, type):
        return _made_by_triton(callee)
    if type(callee) is ConstexprFunction:  # runs as Python, on plain values
        return False
    return (
        type(owner) in _ITSELF
        and isinstance(owner, tl.core.base_value)
        or _made_by_triton(type(callee))
        or callee in _ON_TENSORS
    )


def _operand(value: Any, strict: bool = False) -> Any:
    """What an operator or an index meets (strict: a function of Triton's): nothing that has methods of its own for them."""
    kind = type(value)
    if kind in _ITSELF:
        return value
    if kind in _TUPLES:
        for part in value:
            _operand(part, strict)
    elif kind is tl.constexpr:
        _operand(value.value, strict)
    elif not _made_by_triton(kind):
        line = _LINE(kind)
        base = next(i for i, one in enumerate(line) if one in (tuple, list, int, float, str, type, object))
        if (strict and line[base] is object) or any(_OPERATORS & _CONTENTS(one).keys() for one in line[:base]):
            raise NotTriton(f"an object of the class {kind.__name__} has no meaning within a @jit'ed function")
    return value


def _is_named_tuple(kind: Any) -> bool:
    return type(kind) is type and issubclass(kind, tuple) and hasattr(kind, "_field_defaults")


def _named_tuple(kind: type, args: tuple, kwargs: dict[str, Any]) -> tuple:
    """A named tuple, whatever its class would make of the values."""
    values = kind._field_defaults | dict(zip(kind._fields, args)) | kwargs
    if len(args) > len(kind._fields) or values.keys() != {*kind._fields}:
        raise TypeError(f"{kind.__name__} has the fields {', '.join(kind._fields)}")
    return tuple.__new__(kind, [values[name] for name in kind._fields])


def _member(value: Any, name: str) -> Any:
    """`value.name`; of a named tuple a field alone, as methods of its class would be given the values."""
    if isinstance(value, tuple) and type(value) is not tuple:
        if name not in getattr(type(value), "_fields", ()):
            raise NotTriton(f"{name} is no field of a {type(value).__name__}")
        return tuple.__getitem__(value, type(value)._fields.index(name))
    return getattr(value, name)


def _invoke(callee: Any, *args: Any, **kwargs: Any) -> Any:
    """Every call in a kernel's body. What is not Triton's may work on plain numbers alone, as while a kernel is compiled; max and min of
    its values are those of their elements."""
    if (callee is max or callee is min) and any(map(_is_triton, args)):
        callee = tl.core.builtin_max if callee is max else tl.core.builtin_min
    if _of_triton(callee):
        asked = callee in _ON_TENSORS and not any(map(_is_triton, args))
        if not asked and not isinstance(callee, _PLAIN):  # the body of a helper looks after itself
            _operand((*args, *kwargs.values()), strict=True)
        return callee(*args, **kwargs)
    if _is_named_tuple(callee):
        return _named_tuple(callee, args, kwargs)
    if hasattr(callee, "__triton_aggregate__"):
        raise Unsupported("aggregates are not simulated")
    name = getattr(callee, "__name__", type(callee).__name__)
    if any(map(_is_triton, (*args, *kwargs.values()))):
        raise NotTriton(f"{name}() cannot be called with values of Triton")
    out = callee(*args, **kwargs)
    if not isinstance(out, (int, float, str, types.NoneType, tuple, list, tl.core.base_value, tl.dtype)):
        raise NotTriton(f"{name}() gives a {type(out).__name__}, which has no meaning within a @jit'ed function")
    return out


def _shown(value: Any) -> Any:
    if _is_triton(value):
        raise NotTriton("a value of Triton has no text while a kernel is compiled")
    return value


def _getattr(value: Any, name: str, *default: Any) -> Any:
    if name == "handle" or name.startswith("_"):
        raise NotTriton(f"a value of Triton has no attribute {name!r} that Python could use")
    return _member(value, name) if hasattr(value, name) or not default else default[0]


class _Calls(ast.NodeTransformer):
    """Calls go through _invoke, operands through _operand, texts through _shown; `and` and `or` work on blocks, element by element."""

    @staticmethod
    def through(function: str, node: ast.expr, *more: ast.expr) -> ast.Call:
        return ast.copy_location(ast.Call(ast.Name(f"_triton_{function}", ast.Load()), [node, *more], []), node)

    def operand(self, node: ast.expr) -> ast.expr:
        known = (ast.Constant, ast.BinOp, ast.Compare)
        return node if isinstance(node, known) else self.through("operand", node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.BinOp:
        self.generic_visit(node)
        node.left, node.right = self.operand(node.left), self.operand(node.right)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.Assign:
        value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        return ast.copy_location(ast.Assign([node.target], self.visit(ast.copy_location(value, node))), node)

    def visit_Compare(self, node: ast.Compare) -> ast.Compare:
        self.generic_visit(node)
        if not all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            node.left, node.comparators = self.operand(node.left), [*map(self.operand, node.comparators)]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        self.generic_visit(node)
        node.value = self.operand(node.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.Call:
        self.generic_visit(node)
        return self.through("member", node.value, ast.Constant(node.attr))

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        return ast.copy_location(
            ast.Call(ast.Name("_triton_invoke", ast.Load()), [node.func, *node.args], node.keywords), node
        )

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.Call:
        self.generic_visit(node)
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        operands = [ast.Lambda(nothing, value) for value in node.values]  # the later ones may never be asked
        op = ast.Constant("logical_and" if isinstance(node.op, ast.And) else "logical_or")
        return ast.copy_location(ast.Call(ast.Name("_triton_joined", ast.Load()), [op, *operands], []), node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.FormattedValue:
        self.generic_visit(node)
        node.value = ast.copy_location(ast.Call(ast.Name("_triton_shown", ast.Load()), [node.value], []), node)
        return node


def compile_and_exec(self: interpreter.FunctionRewriter, tree: Any) -> Callable:
    """The interpreter's own fills the candidate's globals with all of its imports (so `math` works without an import) and loses closures."""
    outer = inspect.getclosurevars(self.fn).nonlocals
    bound = {*outer, *self.fn.__globals__, *self.fn.__code__.co_varnames}
    body, local = tree.body[0].body, set(self.fn.__code__.co_varnames)
    own = not _of_triton(self.fn)
    for node in (n for line in body for n in ast.walk(line) if own):
        if isinstance(node, (ast.stmt, ast.expr)) and type(node).__name__ not in _LANGUAGE:
            raise NotTriton(f"unsupported AST node type: {type(node).__name__}")
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and isinstance(
            node, (ast.Attribute, ast.Subscript)
        ):
            raise NotTriton("a kernel assigns to names only")
        if isinstance(node, ast.Attribute) and (node.attr == "handle" or node.attr.startswith("_")):
            if not isinstance(_module(node.value, self.fn.__globals__), types.ModuleType):
                raise NotTriton(f"a value of Triton has no attribute {node.attr!r} that Python could use")
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else None
        if name in ("range", "getattr") and name not in outer.keys() | self.fn.__globals__.keys():
            node.id = f"_triton_{name}"
        if name in vars(builtins) and name not in _BUILTINS and name not in bound:
            raise NotTriton(f"{name} is not defined within a @jit'ed function")
        if name not in local and not _in_reach(outer.get(name, self.fn.__globals__.get(name))):
            raise NotTriton(f"Cannot access global variable {name} from within @jit'ed function")
    scope = {**self.fn.__globals__, **outer}  # a copy: nobody changes what was looked at
    scope |= {"interpreter_semantic": interpreter.interpreter_semantic, "_triton_range": loop}
    for function in (_invoke, _shown, _getattr, _joined, _operand, _member):
        scope[f"_triton{function.__name__}"] = function
    tree.body[0].body = [_Calls().visit(line) for line in body] if own else body
    ast.fix_missing_locations(tree)
    found: dict[str, Callable] = {}
    exec(compile(tree, self.filename, "exec", dont_inherit=True), scope, found)
    return found[self.fn.__name__]


def _module(node: ast.expr, names: dict[str, Any]) -> Any:
    """What a name stands for, or a module of the language within another, as tl.standard."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    outer = _module(node.value, names) if isinstance(node, ast.Attribute) else None
    found = vars(outer).get(node.attr) if isinstance(outer, types.ModuleType) else None
    return found if getattr(found, "__name__", "").startswith("triton.language") else None


def loop(first: Any, last: Any = None, step: Any = 1, **_: Any) -> Iterator[tl.tensor]:
    """range and tl.range of a kernel: the variable is a number of Triton's, with its arithmetic."""
    return map(interpreter.interpreter_semantic.to_tensor, range(first) if last is None else range(first, last, step))


def _joined(op: str, *operands: Callable[[], Any]) -> Any:
    """`a and b`, `a or b`: of plain numbers as in Python, of values of Triton element by element."""
    semantic, value = interpreter.interpreter_semantic, _operand(operands[0]())
    for operand in operands[1:]:
        if not _is_triton(value) and bool(value) == (op == "logical_or"):
            return value
        new = _operand(operand())
        both = _is_triton(value) or _is_triton(new)
        value = getattr(semantic, op)(semantic.to_tensor(value), semantic.to_tensor(new)) if both else new
    return value


def _in_reach(value: Any) -> bool:
    """Whether a kernel may name such a global: what Triton's compiler lets pass, and plain numbers and strings."""
    if isinstance(value, (types.ModuleType, int, float, str, tuple, types.NoneType)):
        return True
    marked = any(hasattr(value, f"__triton_{mark}__") for mark in ("builtin", "aggregate"))
    callee = isinstance(value, (types.FunctionType, type)) and _of_triton(value)
    return marked or callee or _is_named_tuple(value) or _made_by_triton(type(value))


def find_def(self: interpreter.FunctionRewriter, lines: list[str]) -> int:
    """The number of the line that defines the function, from 1: found as the compiler finds it, not in its docstring."""
    source = textwrap.dedent("".join(lines))
    found = re.search(r"^def\s+\w+\s*\(", source, re.MULTILINE)
    return source.count("\n", 0, found.start() if found else 0) + 1


_RESERVED = re.compile(r"\b(interpreter_semantic|_triton_(invoke|shown|getattr|joined|operand|member|range))\b")
_plain_rewrite = interpreter.FunctionRewriter.rewrite_ast


def rewrite(self: interpreter.FunctionRewriter) -> Callable:
    """ValueError for a function without its source, as where a GPU is: nothing could be said of what it does."""
    try:
        source = "".join(inspect.getsourcelines(self.fn)[0])
    except (OSError, TypeError, IndentationError) as error:
        raise ValueError("@jit functions should be defined in a Python file") from error
    if not _of_triton(self.fn) and (found := _RESERVED.search(source)):
        raise NotTriton(f"{found[0]} is a name of the simulation's")
    return _plain_rewrite(self)


def _map_elementwise(scalar_fn: interpreter.InterpretedFunction, *args: tl.tensor, pack: int = 1) -> Any:
    """tl.map_elementwise: one call of scalar_fn for each element, which may go its own way."""
    if not isinstance(scalar_fn, interpreter.InterpretedFunction):
        raise NotTriton("tl.map_elementwise needs a @triton.jit function")
    if pack != 1:
        raise Unsupported("tl.map_elementwise of packed elements is not simulated")
    args = interpreter.interpreter_semantic.broadcast_tensors(*args)
    shape, columns = args[0].handle.data.shape, [x.handle.data.reshape(-1, 1) for x in args]
    results = []
    for row in zip(*columns):
        out = scalar_fn(*(tl.tensor(interpreter.TensorHandle(v, x.dtype), x.dtype) for v, x in zip(row, args)))
        results.append(tuple(out) if isinstance(out, (tuple, tl.tuple)) else (out,))
    plain = [[interpreter.interpreter_semantic.to_tensor(v) for v in column] for column in zip(*results)]
    outs = []
    for column in plain:
        dtype = column[0].dtype
        data = np.concatenate([np.ravel(v.handle.data) for v in column]).reshape(shape)
        outs.append(
            tl.tensor(interpreter.TensorHandle(data, dtype), tl.block_type(dtype, list(shape)) if shape else dtype)
        )
    return outs[0] if len(outs) == 1 else tl.tuple(outs)


def _rewritten() -> property:
    """InterpretedFunction.rewrite, from the source alone: what stands in for it in Triton's tables or on the object is not asked."""
    done: dict[types.FunctionType, Callable] = {}
    rewriter = interpreter.FunctionRewriter

    def get(self: interpreter.InterpretedFunction) -> Callable:
        fn = self.fn
        if fn not in done:
            done[fn] = rewriter(fn).rewrite_ast()
        return done[fn]

    return property(lambda self: functools.partial(get, self))


def _missing(name: str) -> Callable:
    """Stands in for a function of the language."""

    def missing(*_: Any, **__: Any) -> None:
        raise Unsupported(f"{name} is not simulated")

    return missing


def complete() -> None:
    """What the interpreter's own patches leave out of the language: functions as members of tensors, those of CUDA alone."""
    for name, member in [*vars(tl.tensor).items()]:
        if isinstance(member, types.FunctionType) and "_semantic" in inspect.signature(member).parameters:
            interpreter._patch_attr(tl.tensor, name, member, None, interpreter._LangPatchScope())
    interpreter.InterpretedFunction.rewrite = _rewritten()
    for module in (cuda, cuda.gdc):
        module.gdc_wait = module.gdc_launch_dependents = lambda: None
    for module, name in [
        (m, n) for m in (cuda, cuda.utils) for n in ("globaltimer", "smid", "num_threads", "num_warps")
    ]:
        setattr(module, name, _missing(f"tl.extra.cuda.{name}"))
    for module in (tl, tl.core):
        module.map_elementwise, module.dot_scaled = _map_elementwise, _missing("tl.dot_scaled")
    for name, home in [*sys.modules.items()]:
        if name.split(".")[0] in ("triton", "kernelbench"):
            for value in [*vars(home).values()]:
                remember(value)


def remember(value: Any) -> None:
    """A function of Triton's, or one of a class, and those within it."""
    for one in [value, *(vars(value).values() if isinstance(value, type) else ())]:
        if isinstance(one, (staticmethod, classmethod, property)):
            one = one.fget if isinstance(one, property) else one.__func__
        one = one.fn if isinstance(one, (interpreter.InterpretedFunction, JITCallable)) else one
        while isinstance(one, types.FunctionType) and one.__code__ not in _known:
            codes = [one.__code__]
            while codes:
                _known.add(code := codes.pop())
                codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
            one = getattr(one, "__wrapped__", None)
