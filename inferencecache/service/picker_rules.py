"""From PickerPolicy and ModelRewrite objects to the rules that a picker asks."""

from inferencecache.picker.fleet import (
    NO_LIMITS,
    ModelRewrite,
    ObjectName,
    PickerPolicy,
    PolicyRule,
    RequestLimits,
    RewriteRule,
    RewriteTarget,
    RuleAction,
)
from inferencecache.picker.qos import QosClass
from inferencecache.resources import ResourceObject
from inferencecache.resources.model_rewrite import ModelRewriteSpec, RewriteRuleSpec
from inferencecache.resources.picker_policy import (
    PickerPolicySpec,
    PolicyRuleSpec,
    RuleLimitsSpec,
)


def policy_of(found: ResourceObject[PickerPolicySpec], generation: str) -> PickerPolicy:
    """Return the rules of a policy.

    Args:
        found: The object.
        generation: Changes when the object does.
    """
    spec = found.spec
    return PickerPolicy(
        key=ObjectName(namespace=found.key.namespace, name=found.key.name),
        rules=tuple(_rule(rule) for rule in spec.rules or ()),
        default_action=RuleAction(spec.default_action or RuleAction.ALLOW),
        generation=generation,
    )


def _rule(spec: PolicyRuleSpec) -> PolicyRule:
    classes = None if spec.qos_classes is None else map(QosClass, spec.qos_classes)
    return PolicyRule(
        tenants=None if spec.tenants is None else frozenset(spec.tenants),
        models=None if spec.models is None else frozenset(spec.models),
        qos_classes=None if classes is None else frozenset(classes),
        action=RuleAction(spec.action),
        reason=spec.reason or "",
        limits=_limits(spec.limits),
    )


def _limits(spec: RuleLimitsSpec | None) -> RequestLimits:
    if spec is None:
        return NO_LIMITS
    return RequestLimits(
        in_flight_max=spec.max_requests_in_flight,
        requests_per_minute_max=spec.max_requests_per_minute,
        output_tokens_max=spec.max_output_tokens,
    )


def rewrite_of(found: ResourceObject[ModelRewriteSpec], generation: str) -> ModelRewrite:
    """Return the rules of a rewrite.

    Args:
        found: The object.
        generation: Changes when the object does.
    """
    ref, namespace = found.spec.pool_ref, found.key.namespace
    return ModelRewrite(
        key=ObjectName(namespace=namespace, name=found.key.name),
        pool=None if ref is None else ObjectName(namespace=namespace, name=ref.name),
        rules=tuple(_rewrite_rule(rule) for rule in found.spec.rules),
        generation=generation,
    )


def _rewrite_rule(spec: RewriteRuleSpec) -> RewriteRule:
    names = frozenset(match.model.value for match in spec.matches or ())
    return RewriteRule(
        models=names or None,
        targets=tuple(
            RewriteTarget(model=target.model_rewrite, weight=target.weight or 1)
            for target in spec.targets
        ),
    )
