"""Writes cases.json: what Jinja2 prints, set up as transformers' apply_chat_template does.

    python3 reference.py        # with jinja2 3.1.6
"""

import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.sandbox

VARS = {
    "s": "Hello <b>'World'</b> & \"you\"",
    "e": "é中😀\n\tx",
    "n": None,
    "i": 7,
    "neg": -7,
    "f": 2.5,
    "one": 1.0,
    "t": True,
    "empty": "",
    "l": [3, 1, 2, 10],
    "words": ["b", "A", "c", "a"],
    "d": {"b": 1, "a": [True, None, -2, 0.5], "c": {"x": "y"}},
    "big": {"tiny": 1e-5, "large": 1e16, "mid": 123456.0},
    "messages": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"z": 1, "a": "é"}}}]},
    ],
}

CASES = r"""
{{ s }}|{{ e }}|{{ n }}|{{ i }}|{{ f }}|{{ one }}|{{ t }}|{{ missing }}|{{ empty }}
{{ l }} {{ d }} {{ [s, e, 'it''s', "a'b", 'a"b', 'a\'b"c'] }} {{ big }}
{{ d | tojson }} {{ s | tojson }} {{ e | tojson }} {{ big | tojson }} {{ [1.0, -0.0, 1e300] | tojson }}
{{ d | tojson(indent=2) }} {{ [] | tojson(indent=2) }} {{ {} | tojson(indent=4) }}
{{ e | tojson(ensure_ascii=true) }} {{ d | tojson(sort_keys=true) }} {{ d | tojson(separators=(',', ':')) }}
{{ 1 + 2 * 3 - 4 }} {{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}
{{ 'a' ~ 1 ~ none ~ true }} {{ 'ab' * 3 }} {{ [1] * 3 }} {{ 'a' + 'b' ~ 'c' }} {{ [1] + [2, 3] }} {{ 1 + 2 ~ 3 if false else 'x' }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ 'a' in 'cat' }} {{ 2 in l }} {{ 'a' in d }} {{ 5 not in l }} {{ none == none }}
{{ not true and false }} {{ not (true and false) }} {{ 1 or 2 }} {{ 0 or '' or 'z' }} {{ 1 and 2 }} {{ 'y' if i > 5 }} {{ 'y' if i > 50 }}|
{{ -1 | abs }} {{ -neg }} {{ - 2 ** 2 }} {{ +3 }} {{ 2 * -3 }} {{ i is odd and not i is even }} {{ i is divisibleby 7 }} {{ 1 + 1 is odd }}
{{ l[0] }} {{ l[-1] }} {{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[::2] }} {{ l[3:1:-1] }} {{ l[10:] }} {{ l[-100:2] }} {{ s[0] }} {{ s[-1] }} {{ e[1:3] }} {{ e[::-1] }} {{ s[2:5] }} {{ s[::3] }}
{{ d.b }} {{ d['a'][3] }} {{ d.c.x }} {{ d.get('b') }} {{ d.get('q') }} {{ d.get('q', 5) }} {{ d.keys() | list }} {{ d.values() | list }} {{ d.items() | list }}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %} {% for k in d %}{{ k }}{% endfor %} {% for p in d | dictsort %}{{ p }}{% endfor %}
{% for x in l %}{{ loop.index }}/{{ loop.length }}:{{ x }}{% if not loop.last %}, {% endif %}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.revindex0 }}{{ loop.cycle('p', 'q') }}{% else %}none{% endfor %}
{% for x in [] %}a{% else %}none{% endfor %} {% for x in l if x > 2 %}{{ loop.index0 }}{{ x }}{% endfor %} {% for x in l if x > 20 %}{{ x }}{% else %}few{% endfor %}
{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 10 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% set x = 1 %}{% for y in l %}{% set x = x + y %}{{ x }} {% endfor %}{{ x }}{% if true %}{% set x = 'if' %}{% endif %}{{ x }}
{% set ns = namespace(a=1, b='z') %}{% for y in l %}{% set ns.a = ns.a + y %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c is defined }}
{% set a, b = 1, [2] %}{{ a }}{{ b }}{% set t = 1, 2 %}{{ t[1] }}{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }}{% endfor %}
{% macro m(x, y='d', z=[]) %}<{{ x }}|{{ y }}|{{ z }}>{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(z=3, x=1) }}{{ m() }}{% set q = m('s') %}{{ q | length }}
{% macro fac(k) %}{% if k < 2 %}1{% else %}{{ k * fac(k - 1) | int }}{% endif %}{% endmacro %}{{ fac(10) }}
{% macro box(w) %}[{{ caller(w, 2) if w == 1 else caller() }}]{% endmacro %}{% call(a, b) box(1) %}{{ a }}+{{ b }}{% endcall %}{% call box(3) %}plain{% endcall %}
{% set v %}a {{ i }} b{% endset %}{{ v }}{% set v | upper %}x{{ i }}y{% endset %}{{ v }}{% filter upper %}shout {{ s }}{% endfilter %}
{{ s | upper }} {{ s | lower }} {{ 'hELLO wORLD-x y' | title }} {{ 'hELLO' | capitalize }} {{ '  x ' | trim }}| {{ 'xxaxx' | trim('x') }} {{ s | length }} {{ e | length }} {{ d | length }} {{ l | count }}
{{ s | e }} {{ s | replace('o', '0') }} {{ s | replace('o', '0', 1) }} {{ 'abc' | replace('', '-') }} {{ 'a\nb\n\nc' | indent }} {{ 'a\nb' | indent(2, true) }} {{ 'a b_c, d' | wordcount }}
{{ l | first }} {{ l | last }} {{ [] | first }} {{ l | sum }} {{ l | max }} {{ l | min }} {{ l | sort }} {{ l | sort(reverse=true) }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ words | unique | list }} {{ words | max }}
{{ l | join(',') }} {{ l | join }} {{ 'abc' | join('-') }} {{ messages | map(attribute='role') | join(' ') }} {{ messages | join('/', attribute='role') }} {{ words | map('upper') | list }} {{ l | reverse | list }} {{ 'abc' | reverse }}
{{ l | select('gt', 2) | list }} {{ l | reject('odd') | list }} {{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('content') | map(attribute='role') | list }} {{ messages | selectattr('tool_calls', 'defined') | list | length }} {{ [0, 1, ''] | select | list }}
{{ missing | default('D') }} {{ empty | default('D') }} {{ empty | default('D', true) }} {{ empty | d('D', boolean=true) }} {{ n | default('D') }}
{{ '42' | int }} {{ '4.7' | int }} {{ 'x' | int(5) }} {{ 4.7 | int }} {{ '4.5' | float }} {{ 'x' | float }} {{ 3.14159 | round(2) }} {{ 2.5 | round }} {{ 3.7 | round(0, 'floor') }} {{ i | float }} {{ 5 | string + 'x' }} {{ 'abc' | list }}
{{ l | batch(3) | list }} {{ l | batch(3, 0) | list }} {{ dict(a=1, b=2) }} {{ range(5) | list }} {{ range(2, 10, 3) | list }} {{ range(5, 0, -2) | list }} {{ d | items | list }}
{{ s is string }} {{ l is sequence }} {{ s is sequence }} {{ d is mapping }} {{ l is mapping }} {{ l is iterable }} {{ i is number }} {{ f is float }} {{ i is integer }} {{ t is boolean }} {{ t is integer }} {{ n is none }} {{ missing is defined }} {{ missing is undefined }} {{ t is true }} {{ t is false }} {{ i is eq 7 }} {{ i is in [7] }} {{ i is not none }} {{ range is callable }} {{ 'AB' is upper }} {{ 'ab' is lower }} {{ n is sameas none }}
{{ ' a b '.strip() }}|{{ 'xay'.strip('xy') }}|{{ 'xxa'.lstrip('x') }}|{{ 'axx'.rstrip('x') }}|{{ 'a,b,c'.split(',') }}|{{ 'a,b,c'.split(',', 1) }}|{{ 'a,b,c'.rsplit(',', 1) }}|{{ ' a  b '.split() }}|{{ 'a\nb\r\nc'.splitlines() }}|{{ 'a</t>b'.split('</t>')[-1] }}
{{ s.startswith('He') }} {{ s.startswith(('x', 'He')) }} {{ s.endswith('u"') }} {{ s.find('W') }} {{ e.find('x') }} {{ s.rfind('zz') }} {{ s.count('o') }} {{ s.replace('o', 'O', 1) }} {{ 'abc'.upper() }} {{ 'ABC'.lower() }} {{ "they're x1y" .title() }} {{ 'aBC'.capitalize() }} {{ '12'.isdigit() }} {{ 'ab'.isalpha() }} {{ ','.join(['a', 'b']) }} {{ '{} {1} {x} {{}}'.format is callable }} {{ 'abc'.removeprefix('ab') }} {{ 'abc'.removesuffix('bc') }}
{{ '{} and {}'.format(1, 'b') }} {{ '{1}{0}{x}{{y}}'.format(1, 2, x=3) }}
{{ '%s|%5s|%-5s|%d|%05d|%.2f|%r|%x|%%' | format('a', 'b', 'c', 5, 42, 1.005, 'q', 255) }} {{ '%s-%s' % (1, none) }} {{ 'n%d' % 4 }}
{%- set j = joiner(', ') -%}{% for x in l %}{{ j() }}{{ x }}{% endfor %} {% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.current }}
  {%- if true %} a {%- endif -%}   b   {{- ' c ' -}}   d {#- comment -#}   e
{% if true %}{{ i }}{% endif %} {# comment #} {% raw %}{{ raw }} {% if %}{% endraw %} {%+ if true %}k{%+ endif %}
{{ "a\tb\\n\x41é\"" }} {{ 'a' 'b' "c" }} {{ "}}" }} {{ {'a': {'b': 1}}['a']['b'] }} {{ {'x': 1}}}
{% generation %}g{{ i }}{% endgeneration %}{{ strftime_now is callable }}{{ (1,) }}{{ () | list }}{{ [1, 2,] }}{{ {'a': 1,} }}
{{ messages[2].tool_calls[0].function | tojson }}{{ messages[1]['content'][0]['text'] }}{{ messages | length }}{{ messages[0].missing is defined }}{{ (messages | first).role }}
{{ 0x }}
{{ 1_000 + 1 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 100000000000000000.0 }} {{ 0.1 + 0.2 }} {{ 3 * 0.1 }} {{ 1 / 3 }}
{% if s is string and 'Hello' in s and not missing %}yes{% elif true %}no{% else %}never{% endif %}{% if missing %}a{% elif l %}b{% else %}c{% endif %}
{{ 'a' if false else 'b' if false else 'c' }} {{ (i if i is number else 0) + 1 }} {{ [x for x in l] }}
{{ undefined_function() }}
{{ n.foo.bar }}
{{ raise_exception('no ' ~ i) }}
{% for x in l %}
{{ unclosed
{{ 'a' | nofilter }}
{{ 1 is notest }}
{% endif %}
""".strip("\n").split("\n")

# Templates of several lines, for the white space around tags.
BLOCKS = [
    "{% if true %}\n  a\n{% endif %}\nb\n",
    "  {% if true %}\n  x {{ i }}\n  {% endif %}\n\n  {# c #}\n  y\n\n",
    "a\n    {%- for x in l %}\n    {{ x }}\n    {%- endfor %}\n\nz",
    "{% for x in l -%}\n  {{ x }}\n{%- endfor %}",
    "line\r\n{% set x = 1 %}\r\nnext\r\n",
    "a {% if true %} b {% endif %} c\n",
    "{{ i }}\n\n",
    "{#- c -#}\n a",
    "\n\n{% raw %}\n {{ x }}\n{% endraw %}\n b",
    "  {%+ if true %} a{% endif %}\n",
    "{% if true +%}\n a{% endif %}\n",
    "\t{% macro m() %}\n\tbody\n\t{% endmacro %}\n{{ m() }}|",
]


class Generation(jinja2.ext.Extension):
    """{% generation %} of transformers, which prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body).set_lineno(line)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, Generation]
    )

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: ""
    return env


def main():
    env = environment()
    cases = []
    for template in CASES + BLOCKS:
        case = {"template": template}
        try:
            case["want"] = env.from_string(template).render(**VARS)
        except Exception as e:
            case["error"] = str(e)
        cases.append(case)
    out = pathlib.Path(__file__).with_name("cases.json")
    out.write_text(json.dumps({"vars": VARS, "cases": cases}, indent=1, ensure_ascii=False) + "\n")


main()
