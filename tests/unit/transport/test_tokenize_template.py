"""Chat templates have what they expect, and no more."""

from datetime import UTC, datetime

import pytest
from jinja2 import TemplateError, TemplateSyntaxError

from inferencecache.transport.tokenize_files import LoadLimits
from inferencecache.transport.tokenize_sandbox import TooManyStepsError, TooMuchTextError
from inferencecache.transport.tokenize_template import ChatTemplate

DAY = datetime(2026, 11, 30, tzinfo=UTC)


def template(source: str, characters_max: int = 1_000, steps_max: int = 1_000_000) -> ChatTemplate:
    """Return a template that believes it is one day."""
    limits = LoadLimits(
        file_bytes_max=1_000, characters_max=characters_max, steps_max=steps_max, now=lambda: DAY
    )
    return ChatTemplate(source, limits)


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("{{ {'a': 'ü<&', 'b': [1.0]} | tojson }}", '{"a": "ü<&", "b": [1.0]}'),
        ("{{ {'b': 1} | tojson(indent=2) }}", '{\n  "b": 1\n}'),
        ("{{ {'a': 'ü'} | tojson(ensure_ascii=True) }}", '{"a": "\\u00fc"}'),
        ("{{ strftime_now('%d %b %Y') }}", "30 Nov 2026"),
        ("{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}", "012"),
        ("{% generation %}{{ x }}{% endgeneration %}", "1"),
        ("a\n  {% if true %}\nb\n  {% endif %}\nc\n", "a\nb\nc"),
        ("{% set n = namespace(a=1) %}{% set n.a = 2 %}{{ n.a }}", "2"),
        ("{{ undefined_thing }}", ""),
        ("{% set d = {'a': 1, 'items': 2} %}{{ d.a }}{{ d.b }}", "1"),
        ("{% set d = {'a': 1, 'items': 2} %}{{ d.items() | list }}", "[('a', 1), ('items', 2)]"),
        ("{% set d = {'a': 1, 'update': 2} %}{{ d['update'] }}", "2"),
    ],
)
def test_functions_that_templates_expect_are_there(source: str, written: str) -> None:
    """Written as the libraries write that models were trained with."""
    assert template(source).render({"x": 1}) == written


@pytest.mark.parametrize(
    "source",
    [
        "{{ raise_exception('no') }}",
        "{{ x.append(1) }}",
        "{{ x.__class__.__base__.__subclasses__() }}",
        "{% for i in range(10 ** 9) %}{% endfor %}",
        "{% include 'other' %}",
    ],
)
def test_templates_cannot_do_more_than_write(source: str) -> None:
    """They change nothing, read nothing and reach nothing."""
    values = [1]
    with pytest.raises((TemplateError, OverflowError, TypeError)):
        template(source).render({"x": values})

    assert values == [1]


def test_a_template_that_writes_for_ever_is_stopped() -> None:
    """At the length that it may write."""
    endless = template("{% for i in range(90000) %}{{ x }}{% endfor %}")
    with pytest.raises(TooMuchTextError):
        endless.render({"x": "a" * 100})

    assert template("{{ x }}").render({"x": "a" * 1_000}) == "a" * 1_000


@pytest.mark.parametrize(
    ("source", "steps"),
    [
        ("{% for i in range(10) %}{% endfor %}", 11),
        ("{% for i in x %}{% for j in x %}{% endfor %}{% endfor %}", 12),
        ("{% for i in x if i > 1 %}{% endfor %}", 3),
        ("{% for i in x | map('string') | list %}{{ loop.length }}{{ loop.last }}{% endfor %}", 3),
        ("{% macro m(n) %}{% if n %}{{ m(n-1) ~ m(n-1) }}{% endif %}{% endmacro %}{{ m(3) }}", 15),
        ("{% for i in [[[]]] recursive %}{{ loop(i) }}{% endfor %}", 4),
    ],
)  # fmt: skip
def test_a_template_does_only_so_much(source: str, steps: int) -> None:
    """Each turn of a loop and each call is a step; every prompt has all of them anew."""
    just_enough = template(source, steps_max=steps)
    written = template(source).render({"x": [1, 2, 3]})

    assert [just_enough.render({"x": [1, 2, 3]}) for _ in range(2)] == [written, written]
    with pytest.raises(TooManyStepsError):
        template(source, steps_max=steps - 1).render({"x": [1, 2, 3]})


def test_a_template_that_writes_nothing_for_ever_is_stopped() -> None:
    """Ten thousand million turns of a loop would otherwise stand still for an hour."""
    silent = template(
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    )
    with pytest.raises(TooManyStepsError):
        silent.render({})


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'x' * 9000000000 }}",
        "{{ 9000000000 * [1] }}",
        "{{ 9 ** 99999999 }}",
        "{% set n = namespace(v='x') %}" + 99 * "{% set n.v = n.v + n.v %}",
        "{% set n = namespace(v='x') %}" + 99 * "{% set n.v = n.v ~ n.v %}",
        "{% set n = namespace(v=[1]) %}" + 99 * "{% set n.v = n.v + n.v %}",
        "{% set n = namespace(v=9) %}" + 99 * "{% set n.v = n.v * n.v %}",
    ],
)  # fmt: skip
def test_a_template_makes_nothing_larger_than_it_may_write(source: str) -> None:
    """Neither when it is used nor when it is loaded, where constants are computed."""
    bomb = template(source)
    with pytest.raises(TooMuchTextError):
        bomb.render({})


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("{{ 'ab' * 3 }}{{ 2 * 1.5 }}{{ 2 ** 3 }}{{ 2 ** -1 }}{{ 4 ** 0.5 }}", "ababab3.080.52.0"),
        ("{{ 'a' ~ 1 ~ x }}{{ 'a' + 'b' }}{{ [1] + [2] }}{{ 1 + 2 }}", "a17ab[1, 2]3"),
        ("{{ 'ab' * -1 }}|{{ true * 2 }}", "|2"),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{{ loop.index }}{% endfor %}", "a11"),
        ("{% for i in nothing %}{{ i }}{% else %}none{% endfor %}", "none"),
    ],
)  # fmt: skip
def test_what_is_small_enough_is_as_it_was(source: str, written: str) -> None:
    """Limits change nothing of what stays below them."""
    assert template(source).render({"x": 7}) == written


def test_what_is_no_template_is_refused() -> None:
    """When it is loaded, not when it is used."""
    with pytest.raises(TemplateSyntaxError):
        template("{% for %}")


@pytest.mark.parametrize(
    ("through", "knows"),
    [
        ("m.content", True),
        ("m['content']", True),
        ("m.content | reverse", True),
        ("m['content'][1:]", True),
        ("m['tools']", False),
        ("m", False),
    ],
)
def test_templates_that_go_through_parts_are_told_from_others(through: str, *, knows: bool) -> None:
    """Engines look at the template, too, and give it parts only then."""
    loop = "{% for p in " + through + " %}{{ p }}{% endfor %}"

    assert template("{% for m in messages %}" + loop + "{% endfor %}").knows_parts == knows


def test_templates_that_write_the_date_are_told_from_others() -> None:
    """What they write is another prompt each day."""
    assert template("{{ strftime_now('%Y') }}").tells_date
    assert not template("{{ messages }}").tells_date
