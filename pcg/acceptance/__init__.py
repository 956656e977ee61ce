"""The acceptance rules by name, each with what a page or a command line needs to offer it."""

from pcg.acceptance.registry import REGISTRY, Parameter, RuleSpec, make_rule
from pcg.acceptance.rule import Judgement, Rule, Verdict

__all__ = ["REGISTRY", "Judgement", "Parameter", "Rule", "RuleSpec", "Verdict", "make_rule"]
