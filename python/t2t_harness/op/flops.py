"""How much arithmetic one aten call does, and how it goes through memory: the rules of all families.

The unit of work is one elementary result: a sum, product, quotient, comparison, selection, rounding or special function
of numbers counts one, whatever its dtype; moving, viewing, allocating and converting count nothing. docs/reference/analyze.md
states every rule in words. An operation without a rule has no count: `rule_of` returns None, and nothing here guesses.
Knows shapes only; imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping

from t2t_harness.op.elementwise_rules import ELEMENTWISE
from t2t_harness.op.index_rules import INDEXED
from t2t_harness.op.product_rules import PRODUCTS
from t2t_harness.op.reduction_rules import REDUCTIONS
from t2t_harness.op.rule import AtenCall, Rule, outputs

RULES: Mapping[str, Rule] = {**ELEMENTWISE, **REDUCTIONS, **PRODUCTS, **INDEXED}
"""By aten name without overload."""


def selected(call: AtenCall, rule: Rule | None, name: str) -> int | None:
    """Return how many elements of the argument `name` are read at most, None where all of them are."""
    if rule is None or rule.gathers != name:
        return None
    return rule.gathered(call) if rule.gathered is not None else outputs(call)


def rule_of(name: str) -> Rule | None:
    """Return the rule for an aten name without overload (`softmax`, `relu_`, `add`), or None where there is none."""
    if name in RULES:
        return RULES[name]
    return RULES.get(name.removesuffix("_")) if not name.startswith("__") else None


def work_of(call: AtenCall, rule: Rule) -> int | None:
    """Return how many elementary results `call` makes under `rule`, or None where the rule does not cover it.

    A rule does not cover shapes that lack the dims it speaks of. Complex numbers are covered where nothing is computed,
    and in Fourier transforms.
    """
    is_complex = any(operand.dtype.startswith("complex") for operand in (*call.inputs, *call.outputs))
    if is_complex and rule.access not in ("data movement", "allocation", "transform"):
        return None
    try:
        return rule.work(call)
    except (IndexError, ZeroDivisionError):
        return None
