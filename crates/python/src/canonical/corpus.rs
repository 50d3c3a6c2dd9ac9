//! Programs that have every node and every word, each with the start of the digest of its canonical form.

/// A digest that changes here changes keys: the format has a new number then, and a version of the parser that changes one makes other trees of what people write.
pub(super) const CORPUS: &[(&str, &str)] = &[
    (
        "import a, b.c as d
",
        "e12125b03fe7ffb9",
    ),
    (
        "from . import a
from ..b import c as d, e
from f import *
",
        "7d6633ca46cee597",
    ),
    (
        "@a.b
@c(1)
def f[T: int = str, *Ts = U, **P = V](a, b: int = 2, /, c=3, *d: e, g, h=4, **i) -> j:
    global x, y
    return a
",
        "be980f8e470f35da",
    ),
    (
        "async def f():
    nonlocal x
    async with a as b, c:
        await d
    async for e in g:
        yield
    else:
        yield h
    yield from i
    return
",
        "6405bd3628084508",
    ),
    (
        r#"class A[T](B, metaclass=C, *d, **e):
    """Doc."""
    x: int
    y: int = 3
    (z): int = 4
"#,
        "6d5fdcca75f4b2b3",
    ),
    (
        "del a, b[c], d.e
",
        "845fb4820db95eb5",
    ),
    (
        "type A[T] = list[T]
",
        "10142c4f6459b59a",
    ),
    (
        "a = b = c
a, *d = e
[f, g] = h
",
        "2d45d12df989e767",
    ),
    (
        "a += b; a -= b; a *= b; a @= b; a /= b; a %= b; a **= b; a <<= b; a >>= b; a |= b; a ^= b; a &= b; a //= b
",
        "92b5bcf308dde802",
    ),
    (
        "for a in b:
    if c:
        continue
    elif d:
        break
    else:
        pass
else:
    e
",
        "22146f03591e3691",
    ),
    (
        "while a:
    b
else:
    c
",
        "1c5831fcfcc244b8",
    ),
    (
        "with a as (b, c), d:
    e
",
        "396a867bb5b03be4",
    ),
    (
        r#"match a:
    case 1 | -2 | 3 + 4j | "s" | b.c:
        d
    case None | True | False:
        e
    case [f, *g, *_]:
        h
    case {"k": i, **j}:
        l
    case A(m, n=o) as p if q:
        r
    case _:
        s
"#,
        "86748f4048797682",
    ),
    (
        "raise
",
        "2df2e951c1304a7e",
    ),
    (
        "raise a from b
",
        "adfe44d97fc79cd2",
    ),
    (
        "try:
    a
except b as c:
    d
except:
    e
else:
    f
finally:
    g
",
        "1ad8c7aea91d1783",
    ),
    (
        "try:
    a
except* (b, c):
    d
",
        "edcdd23d2ac134ae",
    ),
    (
        "assert a, b
",
        "497fb60597272c62",
    ),
    (
        "a and b or not c
",
        "aeabacf1b473bf66",
    ),
    (
        "(a := b)
",
        "4580bcdb073b0835",
    ),
    (
        "a + b - c * d @ e / f % g ** h << i >> j | k ^ l & m // n
",
        "3e6c88f1d4b85993",
    ),
    (
        "~a, not b, +c, -d
",
        "c9d37c805cc57baa",
    ),
    (
        "lambda: a
",
        "4d1579235ce6ed79",
    ),
    (
        "lambda a, *b, c=1, **d: e
",
        "a1bce2a97b1b040a",
    ),
    (
        "a if b else c
",
        "9d3ef197fe9b9a7c",
    ),
    (
        "{a: b, **c}, {}
",
        "3e2796e7ef487a68",
    ),
    (
        "{a, *b}
",
        "870d01ed72223417",
    ),
    (
        "[a for b in c if d if e for f in g]
",
        "ae484d05554193f7",
    ),
    (
        "{a for b in c}, {a: b for c in d}, (a for b in c)
",
        "85272a2cfa8ff600",
    ),
    (
        "async def f():
    return [a async for b in c]
",
        "0c2ea6d4f4897908",
    ),
    (
        "a == b != c < d <= e > f >= g is h is not i in j not in k
",
        "cd5941d2ba7778d3",
    ),
    (
        "f(a, *b, c=d, **e)
",
        "d5c847792b7a1390",
    ),
    (
        r#"f"a{b!r:>{c}d}e{f!s}{g!a}{h = }" "i"
"#,
        "b6daaec437854ff4",
    ),
    (
        r#"t"a{b}c{d:e}"
"#,
        "7f53db2cc89acf0e",
    ),
    (
        r#""a" 'b', u"c", r"\d", "\n", "\u00e9"
"#,
        "495901d2038917be",
    ),
    (
        r#"b"a\x00" b'b', rb"\d"
"#,
        "1b61f0c4172150aa",
    ),
    (
        "0, 1, 0xff, 18446744073709551615, 18446744073709551616, 1.5, 1e400, 2j
",
        "3e85020886841ef9",
    ),
    (
        "True, False, None, ...
",
        "06ae8caa48ef0a66",
    ),
    (
        "a.b.c
",
        "59161045156f778e",
    ),
    (
        "a[b], a[b:c:d, :, ...], a[*e]
",
        "a9a138eb950adf8a",
    ),
    (
        "[a, b], (c,), ()
",
        "344014cbaa86f3d0",
    ),
    (
        "%a b
",
        "e59ebed857f2706d",
    ),
    (
        "x = !ls
",
        "ef51618badb7515f",
    ),
    (
        "!a
",
        "8a18b697f843d305",
    ),
    (
        "?a
",
        "ae582f6ce6a97b73",
    ),
    (
        "??a
",
        "5b8922251374e390",
    ),
    (
        "/a b
",
        "b9af500c49ec088b",
    ),
    (
        ";a b
",
        "d28d902afacdb70e",
    ),
    (
        ",a b
",
        "d8fde4bd609a290f",
    ),
    (
        "!!a
",
        "cbc5fab3f9de9017",
    ),
    (
        "%%a
b
",
        "5eed3fb69392d5e2",
    ),
];
