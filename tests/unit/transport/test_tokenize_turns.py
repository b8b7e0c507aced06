"""Templates that write a longer conversation by going on from a shorter one are known as such."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.transport.tokenize_files import LoadLimits
from inferencecache.transport.tokenize_template import ChatTemplate
from inferencecache.transport.tokenize_turns import TurnsInText

DAY = datetime(2026, 11, 30, tzinfo=UTC)
HEAD = "{% if add_generation_prompt %}<|assistant|>{% endif %}"

GOING_ON = [
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}" + HEAD,
    "{% for m in messages %}{% if loop.first and messages[0]['role'] != 'system' %}<|system|>Help."
    "{% endif %}{{ '<|' + m['role'] + '|>' ~ m['content'] | trim }}{% endfor %}" + HEAD,
    (
        "{% set turns = messages %}{% for m in turns %}{% set text = m.role + '|>' + m.content %}"
        "{% if loop.index0 == 0 %}{% set text = bos_token %}{% endif %}{{ text }}{% endfor %}"
    ),
    (
        "{{ bos_token }}{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}"
        "{% for call in m.calls or [] %}{{ loop.index }}{{ call }}{{ ',' if not loop.last }}"
        "{% endfor %}{{ m.content.strip() }}{% endfor %}{{ raise_exception('no') if bad }}"
    ),
    (
        "{% for m in messages %}{% if m.role == 'user' %}{% set last = m.content %}{% endif %}"
        "{{ last }}|{% endfor %}"
    ),
    (
        "{{ tools | map(attribute='name') | join }}{% set names = tools | map(attribute='name') "
        "| map('upper') | reject('none') | list %}"
        "{% for t in (tools or []) | reverse %}{{ t.name }}{% endfor %}"
        "{% for m in messages %}{% for c in (m.calls or []) | reverse if c %}{{ c }}{% endfor %}"
        "{% set parts = [m.role] | map('upper') %}{{ parts | first }}{{ names }}{% endfor %}"
    ),
    (
        "{% set last = 'none' %}{% for m in messages %}{% if m.role == 'user' %}"
        "{% set last = m.content %}{% endif %}{{ last }}|{% endfor %}{{ last }}"
    ),
    "{% for m in messages %}{% if m.role == 'tool' %}{{ m.content }}{% endif %}{% endfor %}",
    "{% for m in messages %}{{ messages[0].content[:2] }}<|{{ m.role }}|>{% endfor %}",
]

OTHERS = [
    "",
    "{{ messages[0].content }}",
    "{{ messages | length }}{% for m in messages %}{{ m }}{% endfor %}",
    "{% for m in messages %}{{ messages | length }}{% endfor %}",
    "{% for m in messages %}{{ messages[-1].role }}{% endfor %}",
    "{% for m in messages %}{{ messages[loop.index0 - 1].role }}{% endfor %}",
    "{% for m in messages %}{{ messages[1].role }}{% endfor %}",
    "{% for m in messages %}{{ messages[true].role }}{% endfor %}",
    "{% for m in messages %}{{ messages[:1] }}{% endfor %}",
    "{% for m in messages %}{% if loop.last %}!{% endif %}{% endfor %}",
    "{% for m in messages %}{{ loop.index }}{% endfor %}",
    "{% for m in messages %}{{ loop.index0 == 1 }}{% endfor %}",
    "{% for m in messages %}{{ 0 == loop.index0 }}{% endfor %}",
    "{% for m in messages %}{{ loop['last'] }}{% endfor %}",
    "{% for m in messages %}{{ loop.nextitem.role }}{% endfor %}",
    "{% for m in messages %}{{ loop.previtem.role }}{% endfor %}",
    "{% for m in messages %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for m in messages %}{% if loop.changed(m.role) %}!{% endif %}{% endfor %}",
    "{% for m in messages %}{% for c in loop.index * 'a' %}{{ c }}{% endfor %}{% endfor %}",
    "{% for m in messages %}{% set outer = loop %}{{ outer.last }}{% endfor %}",
    "{% for m in messages %}{% for c in m.role if loop.index %}{{ c }}{% endfor %}{% endfor %}",
    "{% for m in messages[1:] %}{{ m.role }}{% endfor %}",
    "{% for m in messages | reverse %}{{ m.role }}{% endfor %}",
    "{% for m in messages if m.role == 'user' %}{{ m.role }}{% endfor %}",
    "{% for m in messages recursive %}{{ m.role }}{% endfor %}",
    "{% for m in messages %}{{ m.role }}{% else %}nobody{% endfor %}",
    "{% for m in messages %}{{ m }}{% endfor %}{% for m in messages %}{{ m }}{% endfor %}",
    "{% for m in messages %}{% for n in messages %}{{ n.role }}{% endfor %}{% endfor %}",
    "{% if true %}{% for m in messages %}{{ m.role }}{% endfor %}{% endif %}",
    "{% set n = namespace(a=0) %}{% for m in messages %}{% set n.a = 1 %}{{ n.a }}{% endfor %}",
    "{% set c = cycler('a', 'b') %}{% for m in messages %}{{ c.next() }}{% endfor %}",
    "{% set j = joiner(',') %}{% for m in messages %}{{ j() }}{{ m.role }}{% endfor %}",
    "{% for m in messages %}{{ [1, 2, 3] | random }}{% endfor %}",
    "{% set names = tools | map('upper') %}{% for m in messages %}{{ names | join }}{% endfor %}",
    "{% set n = (tools | reverse) or [] %}{% for m in messages %}{{ n | list }}{% endfor %}",
    "{% set n = tools | unique | default(0) %}{% for m in messages %}{{ n | list }}{% endfor %}",
    "{% set n = [tools | items] %}{% for m in messages %}{{ n[0] | first }}{% endfor %}",
    "{% set n = [[1]] | map('reverse') | list %}{% for m in messages %}{{ n | sum }}{% endfor %}",
    "{% set n = [[1]] | map(by) | first %}{% for m in messages %}{{ n | list }}{% endfor %}",
    "{% set n = [[1]] | map(*by) | first %}{% for m in messages %}{{ n | list }}{% endfor %}",
    "{% for m in messages %}{{ strftime_now('%S') }}{% endfor %}",
    "{% for m in messages %}{% if m.role == 'user' %}{% break %}{% endif %}x{% endfor %}",
    "{% set messages = messages[1:] %}{% for m in messages %}{{ m.role }}{% endfor %}",
    "{% set t = messages %}{% set t = t[1:] %}{% for m in t %}{{ m.role }}{% endfor %}",
    "{% set t = messages %}{% for m in t %}{{ t | length }}{% endfor %}",
    "{% macro w(m) %}{{ m.role }}{% endmacro %}{% for m in messages %}{{ w(m) }}{% endfor %}",
    "{% for messages in messages %}{{ messages }}{% endfor %}",
    "{% for m in messages %}{{ self }}{% endfor %}",
    "{% for a, b in messages %}{{ a }}{% endfor %}",
    "{% block b %}{% for m in messages %}{{ m.role }}{% endfor %}{% endblock %}",
    "{% filter upper %}{% for m in messages %}{{ m.role }}{% endfor %}{% endfilter %}",
]


def template(source: str) -> ChatTemplate:
    """Return a template."""
    limits = LoadLimits(
        file_bytes_max=1_000, characters_max=100_000, steps_max=100_000, now=lambda: DAY
    )
    return ChatTemplate(source, limits)


WRITERS = {source: template(source) for source in GOING_ON}


@pytest.mark.parametrize("source", OTHERS)
def test_what_may_look_at_other_turns_is_not_taken_for_it(source: str) -> None:
    """Nor what keeps something from one turn to the next, or is not the same every time."""
    assert not template(source).goes_turn_by_turn


texts = st.sampled_from(["", "a", " b ", "<|user|>", "\n"])
turns = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": texts},
    optional={"calls": st.lists(texts, max_size=3)},
)


@pytest.mark.parametrize("source", GOING_ON)
@given(
    said=st.lists(turns, min_size=2, max_size=8),
    cut=st.integers(1, 7),
    tools=st.none() | st.just([{"name": "f"}]),
    head=st.sampled_from([True, False]),
)
def test_further_turns_are_written_as_in_the_whole(
    source: str, said: list[dict[str, object]], cut: int, tools: object, head: object
) -> None:
    """With the first turn given, those between are not needed; what was written stays."""
    written = WRITERS[source]
    assert written.goes_turn_by_turn
    cut = min(cut, len(said) - 1)
    given_beside = {"tools": tools, "add_generation_prompt": head, "bos_token": "<s>"}

    def render(messages: list[dict[str, object]]) -> tuple[str, list[int]]:
        in_text = TurnsInText(messages)
        text = written.render({"messages": in_text, **given_beside}, None, in_text)
        assert text == written.render({"messages": messages, **given_beside})
        return text, in_text.starts

    whole, starts = render(said)
    before, starts_before = render(said[:cut])
    further, starts_further = render([said[0], *said[cut:]])

    assert starts[: cut + 1] == starts_before
    assert whole[: starts[cut]] == before[: starts_before[-1]]
    assert whole[starts[cut] :] == further[starts_further[1] :]
    assert [at - starts[cut] for at in starts[cut:]] == [
        at - starts_further[1] for at in starts_further[1:]
    ]
