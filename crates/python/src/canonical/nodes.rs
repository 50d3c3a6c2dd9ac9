//! The nodes of a tree: the tag of each, and its fields in the order in which they are written.
//!
//! It does not know how a field is encoded. A line that changes here changes keys: the format has a new number then.

use ruff_python_ast as ast;

use super::{Canonical, Form};

/// Makes the form of structures: a tag, and the fields. What follows `not` is left out: positions, and what formatting alone decides.
macro_rules! nodes {
    ($($node:ident $tag:literal { $($field:ident),* } not { $($left:ident),* })*) => {
        $(impl Canonical for ast::$node {
            fn write(&self, form: &mut Form) {
                let Self { $($field,)* $($left: _,)* } = self;
                form.tag($tag);
                $($field.write(form);)*
            }
        })*

        /// The tags of all nodes.
        #[cfg(test)]
        pub(super) const NODES: &[&str] = &[$($tag),*];
    };
}

/// Makes the form of enumerations whose variants are nodes: that of the node.
macro_rules! choices {
    ($($choice:ident { $($variant:ident),* })*) => {
        $(impl Canonical for ast::$choice {
            fn write(&self, form: &mut Form) {
                match self {
                    $(Self::$variant(node) => node.write(form),)*
                }
            }
        })*
    };
}

/// Makes the form of enumerations without fields: a tag.
macro_rules! words {
    ($($choice:ident { $($variant:ident $tag:literal),* })*) => {
        $(impl Canonical for ast::$choice {
            fn write(&self, form: &mut Form) {
                form.tag(match self {
                    $(Self::$variant => $tag,)*
                });
            }
        })*

        /// The tags of all words, by what they are words of.
        #[cfg(test)]
        pub(super) const WORDS: &[(&str, &[&str])] = &[$((stringify!($choice), &[$($tag),*])),*];
    };
}

nodes! {
    ModModule "module" { body } not { range, node_index }

    StmtFunctionDef "def" { is_async, decorator_list, name, type_params, parameters, returns, body } not { range, node_index }
    StmtClassDef "class" { decorator_list, name, type_params, arguments, body } not { range, node_index }
    StmtReturn "return" { value } not { range, node_index }
    StmtDelete "del" { targets } not { range, node_index }
    StmtTypeAlias "type" { name, type_params, value } not { range, node_index }
    StmtAssign "assign" { targets, value } not { range, node_index }
    StmtAugAssign "augmented" { target, op, value } not { range, node_index }
    StmtAnnAssign "annotated" { target, annotation, value, simple } not { range, node_index }
    StmtFor "for" { is_async, target, iter, body, orelse } not { range, node_index }
    StmtWhile "while" { test, body, orelse } not { range, node_index }
    StmtIf "if" { test, body, elif_else_clauses } not { range, node_index }
    ElifElseClause "clause" { test, body } not { range, node_index }
    StmtWith "with" { is_async, items, body } not { range, node_index }
    WithItem "item" { context_expr, optional_vars } not { range, node_index }
    StmtMatch "match" { subject, cases } not { range, node_index }
    MatchCase "case" { pattern, guard, body } not { range, node_index }
    StmtRaise "raise" { exc, cause } not { range, node_index }
    StmtTry "try" { body, handlers, orelse, finalbody, is_star } not { range, node_index }
    ExceptHandlerExceptHandler "except" { type_, name, body } not { range, node_index }
    StmtAssert "assert" { test, msg } not { range, node_index }
    StmtImport "import" { names, is_lazy } not { range, node_index }
    StmtImportFrom "from" { module, names, level, is_lazy } not { range, node_index }
    Alias "alias" { name, asname } not { range, node_index }
    StmtGlobal "global" { names } not { range, node_index }
    StmtNonlocal "nonlocal" { names } not { range, node_index }
    StmtExpr "expression" { value } not { range, node_index }
    StmtPass "pass" {} not { range, node_index }
    StmtBreak "break" {} not { range, node_index }
    StmtContinue "continue" {} not { range, node_index }
    StmtIpyEscapeCommand "command" { kind, value } not { range, node_index }

    Decorator "decorator" { expression } not { range, node_index }
    TypeParams "type parameters" { type_params } not { range, node_index }
    TypeParamTypeVar "type variable" { name, bound, default } not { range, node_index }
    TypeParamTypeVarTuple "type variables" { name, default } not { range, node_index }
    TypeParamParamSpec "type of parameters" { name, default } not { range, node_index }
    Parameters "parameters" { posonlyargs, args, vararg, kwonlyargs, kwarg } not { range, node_index }
    ParameterWithDefault "default" { parameter, default } not { range, node_index }
    Parameter "parameter" { name, annotation } not { range, node_index }
    Arguments "arguments" { args, keywords } not { range, node_index }
    Keyword "keyword" { arg, value } not { range, node_index }

    ExprBoolOp "truth" { op, values } not { range, node_index }
    ExprNamed "named" { target, value } not { range, node_index }
    ExprBinOp "binary" { left, op, right } not { range, node_index }
    ExprUnaryOp "unary" { op, operand } not { range, node_index }
    ExprLambda "lambda" { parameters, body } not { range, node_index }
    ExprIf "either" { test, body, orelse } not { range, node_index }
    ExprDict "dict" { items } not { range, node_index }
    DictItem "entry" { key, value } not {}
    ExprSet "set" { elts } not { range, node_index }
    ExprListComp "list of" { elt, generators } not { range, node_index }
    ExprSetComp "set of" { elt, generators } not { range, node_index }
    ExprDictComp "dict of" { key, value, generators } not { range, node_index }
    ExprGenerator "generator" { elt, generators } not { range, node_index, parenthesized }
    Comprehension "each" { target, iter, ifs, is_async } not { range, node_index }
    ExprAwait "await" { value } not { range, node_index }
    ExprYield "yield" { value } not { range, node_index }
    ExprYieldFrom "yield from" { value } not { range, node_index }
    ExprCompare "compare" { left, ops, comparators } not { range, node_index }
    ExprCall "call" { func, arguments } not { range_start, node_index }
    ExprFString "f-string" { value } not { range, node_index }
    ExprTString "t-string" { value } not { range, node_index }
    ExprStringLiteral "string" { value } not { range, node_index }
    ExprBytesLiteral "bytes" { value } not { range, node_index }
    ExprNumberLiteral "number" { value } not { range, node_index }
    ExprBooleanLiteral "boolean" { value } not { range, node_index }
    ExprNoneLiteral "none" {} not { range, node_index }
    ExprEllipsisLiteral "ellipsis" {} not { range, node_index }
    ExprAttribute "attribute" { value, attr } not { range, node_index, ctx }
    ExprSubscript "subscript" { value, slice } not { range, node_index, ctx }
    ExprStarred "starred" { value } not { range, node_index, ctx }
    ExprName "name" { id } not { range, node_index, ctx }
    ExprList "list" { elts } not { range, node_index, ctx }
    ExprTuple "tuple" { elts } not { range, node_index, ctx, parenthesized }
    ExprSlice "slice" { lower, upper, step } not { range, node_index }
    ExprIpyEscapeCommand "value of command" { kind, value } not { range, node_index }
    InterpolatedElement "interpolation" { expression, debug_text, conversion, format_spec } not { range, node_index }
    InterpolatedStringFormatSpec "format" { elements } not { range, node_index }

    PatternMatchValue "pattern of value" { value } not { range, node_index }
    PatternMatchSingleton "pattern of constant" { value } not { range, node_index }
    PatternMatchSequence "pattern of sequence" { patterns } not { range, node_index }
    PatternMatchMapping "pattern of mapping" { keys, patterns, rest } not { range, node_index }
    PatternMatchClass "pattern of class" { cls, arguments } not { range, node_index }
    PatternMatchStar "pattern of rest" { name } not { range, node_index }
    PatternMatchAs "pattern of name" { pattern, name } not { range, node_index }
    PatternMatchOr "pattern of either" { patterns } not { range, node_index }
    PatternArguments "patterns" { patterns, keywords } not { range, node_index }
    PatternKeyword "pattern of keyword" { attr, pattern } not { range, node_index }
}

choices! {
    Stmt {
        FunctionDef, ClassDef, Return, Delete, TypeAlias, Assign, AugAssign, AnnAssign, For, While, If, With, Match, Raise, Try, Assert, Import,
        ImportFrom, Global, Nonlocal, Expr, Pass, Break, Continue, IpyEscapeCommand
    }
    Expr {
        BoolOp, Named, BinOp, UnaryOp, Lambda, If, Dict, Set, ListComp, SetComp, DictComp, Generator, Await, Yield, YieldFrom, Compare, Call, FString,
        TString, StringLiteral, BytesLiteral, NumberLiteral, BooleanLiteral, NoneLiteral, EllipsisLiteral, Attribute, Subscript, Starred, Name, List,
        Tuple, Slice, IpyEscapeCommand
    }
    ExceptHandler { ExceptHandler }
    Pattern { MatchValue, MatchSingleton, MatchSequence, MatchMapping, MatchClass, MatchStar, MatchAs, MatchOr }
    TypeParam { TypeVar, TypeVarTuple, ParamSpec }
}

words! {
    BoolOp { And "and", Or "or" }
    Operator {
        Add "+", Sub "-", Mult "*", MatMult "@", Div "/", Mod "%", Pow "**", LShift "<<", RShift ">>", BitOr "|", BitXor "^", BitAnd "&", FloorDiv "//"
    }
    UnaryOp { Invert "~", Not "not", UAdd "+", USub "-" }
    CmpOp {
        Eq "==", NotEq "!=", Lt "<", LtE "<=", Gt ">", GtE ">=", Is "is", IsNot "is not", In "in", NotIn "not in"
    }
    Singleton { None "None", True "True", False "False" }
    ConversionFlag { None "", Str "s", Ascii "a", Repr "r" }
    IpyEscapeKind {
        Shell "!", ShCap "!!", Help "?", Help2 "??", Magic "%", Magic2 "%%", Quote ",", Quote2 ";", Paren "/"
    }
}
