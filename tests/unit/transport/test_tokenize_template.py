"""Chat templates have what they expect, and no more."""

from datetime import UTC, datetime

import pytest
from jinja2 import TemplateError, TemplateSyntaxError

from inferencecache.transport.tokenize_template import ChatTemplate, TooMuchTextError

DAY = datetime(2026, 11, 30, tzinfo=UTC)


def template(source: str, characters_max: int = 1_000) -> ChatTemplate:
    """Return a template that believes it is one day."""
    return ChatTemplate(source, lambda: DAY, characters_max)


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
