"""What a kernel's body may do in Triton's interpreter: what the compiler would let pass. Python runs it here, and could do anything with the
arrays behind the values: unmetered work, or what no GPU can.

The compiler's statements and expressions, its globals and built-in functions, calls of its own functions and helpers. Other functions (math's)
get and give plain numbers only, as while a kernel is compiled.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import triton.language as tl
from triton.compiler.code_generator import CodeGenerator
from triton.runtime import interpreter


class NotTriton(BaseException):
    """A kernel does what only Python can."""


_LANGUAGE = {name.removeprefix("visit_") for name in dir(CodeGenerator) if name.startswith("visit_")}
_LANGUAGE |= {"Starred", "FormattedValue", "Break", "Continue"}  # these two are left to the author to find out on a GPU
_BUILTINS = set(
    "len list range float int isinstance getattr hasattr print min max".split()
)  # that a compiled kernel can call
_ON_TENSORS = (len, isinstance, hasattr, print, min, max)


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
    return home is not None and (found is kind or "<locals>" in kind.__qualname__)


def _of_triton(callee: Any) -> bool:
    """Whether a call is the language's business: its functions and classes, helpers, methods of its values, named tuples."""
    if isinstance(callee, functools.partial):  # as the interpreter makes of hints
        callee = callee.func
    owner = getattr(callee, "__self__", None)
    if isinstance(callee, types.MethodType):
        callee = callee.__func__
    if isinstance(callee, types.FunctionType):
        home = callee.__globals__.get("__name__", "")
        known = home.split(".")[0] in ("triton", "kernelbench") and home in sys.modules
        return known and vars(sys.modules[home]) is callee.__globals__
    if isinstance(callee, type):
        plain_tuple = issubclass(callee, tuple) and getattr(callee.__new__, "__module__", "").startswith("namedtuple_")
        return _made_by_triton(callee) or hasattr(callee, "__triton_aggregate__") or plain_tuple
    return isinstance(owner, tl.core.base_value) or _made_by_triton(type(callee)) or callee in _ON_TENSORS


def _invoke(callee: Any, *args: Any, **kwargs: Any) -> Any:
    """Every call in a kernel's body. What is not Triton's may work on plain numbers alone, as while a kernel is compiled."""
    if _of_triton(callee):
        return callee(*args, **kwargs)
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
    return getattr(value, name, *default)


class _Calls(ast.NodeTransformer):
    """Calls go through _invoke, texts through _shown; `and` and `or` work on blocks, element by element."""

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
        if isinstance(node, ast.Attribute) and (node.attr == "handle" or node.attr.startswith("_")):
            if not isinstance(self.fn.__globals__.get(getattr(node.value, "id", None)), types.ModuleType):
                raise NotTriton(f"a value of Triton has no attribute {node.attr!r} that Python could use")
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else None
        if name in ("range", "getattr") and name not in outer.keys() | self.fn.__globals__.keys():
            node.id = f"_triton_{name}"
        if name in vars(builtins) and name not in _BUILTINS and name not in bound:
            raise NotTriton(f"{name} is not defined within a @jit'ed function")
        if name not in local and not _in_reach(outer.get(name, self.fn.__globals__.get(name))):
            raise NotTriton(f"Cannot access global variable {name} from within @jit'ed function")
    scope = {**self.fn.__globals__, **outer} if outer else self.fn.__globals__
    scope |= {
        "interpreter_semantic": interpreter.interpreter_semantic,
        "_triton_invoke": _invoke,
        "_triton_shown": _shown,
    }
    scope |= {"_triton_getattr": _getattr, "_triton_range": loop, "_triton_joined": _joined}
    tree.body[0].body = [_Calls().visit(line) for line in body] if own else body
    ast.fix_missing_locations(tree)
    found: dict[str, Callable] = {}
    exec(compile(tree, self.filename, "exec", dont_inherit=True), scope, found)
    return found[self.fn.__name__]


def loop(first: Any, last: Any = None, step: Any = 1, **_: Any) -> Iterator[tl.tensor]:
    """range and tl.range of a kernel: the variable is a number of Triton's, with its arithmetic."""
    return map(interpreter.interpreter_semantic.to_tensor, range(first) if last is None else range(first, last, step))


def _joined(op: str, *operands: Callable[[], Any]) -> Any:
    """`a and b`, `a or b`: of plain numbers as in Python, of values of Triton element by element."""
    semantic, value = interpreter.interpreter_semantic, operands[0]()
    for operand in operands[1:]:
        if not _is_triton(value) and bool(value) == (op == "logical_or"):
            return value
        new = operand()
        both = _is_triton(value) or _is_triton(new)
        value = getattr(semantic, op)(semantic.to_tensor(value), semantic.to_tensor(new)) if both else new
    return value


def _in_reach(value: Any) -> bool:
    """Whether a kernel may name such a global: what Triton's compiler lets pass, and plain numbers and strings."""
    if isinstance(value, (types.ModuleType, int, float, str, tuple, types.NoneType)):
        return True
    marked = any(hasattr(value, f"__triton_{mark}__") for mark in ("builtin", "aggregate"))
    callee = isinstance(value, (types.FunctionType, type)) and _of_triton(value)
    return marked or callee or _made_by_triton(type(value))
