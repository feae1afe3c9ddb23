# tree.py - the value of the last expression, by way of the syntax tree
ONLY_AST = 0x400 # a flag of compile()


def keep_value(tree):
    """Makes the last statement, if it is an expression, an assignment; a docstring stays one."""
    import _ast
    last = tree.body[-1] if tree.body else None
    if type(last) is not _ast.Expr:
        return
    place = {"lineno": last.lineno, "col_offset": last.col_offset, "end_lineno": last.end_lineno, "end_col_offset": last.end_col_offset}
    kept = _ast.Assign(targets=[_ast.Name(VALUE, _ast.Store(), **place)], value=last.value, **place)
    if len(tree.body) == 1 and type(last.value) is _ast.Constant:
        tree.body.append(kept)
    else:
        tree.body[-1] = kept


def compile_tree(source, path):
    tree = compile(source, path, "exec", ONLY_AST | TOP_LEVEL_AWAIT, True)
    keep_value(tree)
    return compile(tree, path, "exec", TOP_LEVEL_AWAIT, True)


def assigned_names(source, path):
    """The names that plain assignments of the module set, outside of loops and functions, and whether one is outside of any block: that one was executed."""
    import _ast
    tree, found = without_warnings(compile, source, path, "exec", ONLY_AST | TOP_LEVEL_AWAIT, True), {}
    left = [(each, True) for each in tree.body]
    while left:
        each, is_sure = left.pop()
        targets = each.targets if type(each) is _ast.Assign else [each.target] if type(each) is _ast.AnnAssign and each.value is not None else []
        for target in targets:
            if type(target) is _ast.Name:
                found[target.id] = found.get(target.id, False) or is_sure
        if type(each) in (_ast.If, _ast.With, _ast.AsyncWith, _ast.Try):
            handlers = [inner for handler in getattr(each, "handlers", ()) for inner in handler.body]
            left += [(inner, False) for inner in [*each.body, *handlers, *getattr(each, "orelse", ()), *getattr(each, "finalbody", ())]]
    return found


def without_warnings(work, *args):
    """The compiler has given them already, for the unchanged source."""
    change_filters("ignore")
    try:
        return work(*args)
    finally:
        change_filters(None)


def leaving_modules(work, *args):
    """Removes what work() imports from sys.modules, so that the program does not find it there."""
    known = set(sys.modules)
    try:
        return work(*args)
    finally:
        for name in set(sys.modules) - known:
            del sys.modules[name]
