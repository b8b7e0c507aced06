"""Where settings come from, and what is said about wrong ones."""

from dataclasses import fields
from pathlib import Path

import pytest

from inferencecache.errors import ConfigError
from inferencecache.settings.file import read_settings_file
from inferencecache.settings.knob import Knob, KnobKind, knobs_of
from inferencecache.settings.loader import Sources, groups_of, load_settings
from inferencecache.settings.server import ServerSettings
from inferencecache.settings.value import read_text, read_typed, write

MINUTE_NS = 60_000_000_000


def load(
    tmp_path: Path, yaml: str | None = None, **sources: dict[str, str | None]
) -> ServerSettings:
    """Load server settings with an optional file."""
    file = None
    if yaml is not None:
        path = tmp_path / "settings.yaml"
        path.write_text(yaml)
        file = read_settings_file(path)
    given = Sources(flags=sources.get("flags", {}), environ=sources.get("environ", {}), file=file)  # type: ignore[arg-type] # an environment has no None
    return load_settings(ServerSettings, given)


def test_without_sources_everything_is_default(tmp_path: Path) -> None:
    """Nothing given means the defaults of the settings classes."""
    assert load(tmp_path) == ServerSettings()


def test_the_more_particular_source_wins(tmp_path: Path) -> None:
    """Flag beats environment beats file beats default."""
    everything = {
        "yaml": "ttl: 1m\n",
        "environ": {"INFERENCECACHE_TTL": "2m"},
        "flags": {"ttl": "3m"},
    }
    for expected_minutes, name in ((3, "flags"), (2, "environ"), (1, "yaml"), (30, "")):
        assert load(tmp_path, **everything).index.ttl_ns == expected_minutes * MINUTE_NS  # type: ignore[arg-type] # mixed sources
        everything.pop(name, None)


def test_an_empty_variable_counts_as_not_given(tmp_path: Path) -> None:
    """Orchestrators set variables to nothing; that is no value."""
    assert load(tmp_path, environ={"INFERENCECACHE_TTL": ""}) == ServerSettings()


def test_foreign_variables_are_left_alone(tmp_path: Path) -> None:
    """A cluster sets INFERENCECACHE_PORT and the like for a service of that name."""
    environ: dict[str, str | None] = {"INFERENCECACHE_PORT": "tcp://10.0.0.1:80"}
    assert load(tmp_path, environ=environ) == ServerSettings()


def test_yaml_types_are_taken(tmp_path: Path) -> None:
    """Whole numbers, numbers, booleans and texts come through with their YAML types."""
    settings = load(
        tmp_path,
        "max-entries: 5\nslo-tight-bias: 2\nclear-fence: false\nlog-level: DEBUG\n"
        "sweep-interval: 1h30m\nlfu-halving-interval: 0\nhttp-bind-address: '[::1]:0'\n",
    )
    assert settings.index.entries_max == 5
    assert settings.ranking.slo_tight_bias == 2.0
    assert settings.index.clear_fence is False
    assert settings.logs.level == "debug"
    assert settings.index.sweep_interval_ns == 90 * MINUTE_NS
    assert settings.index.lfu_halving_interval_ns == 0
    assert settings.http.bind_address == "[::1]:0"


@pytest.mark.parametrize(
    ("flag", "value", "allowed"),
    [
        ("ttl", "5", "a duration such as"),
        ("ttl", "0", "at least 1ns"),
        ("ttl", "-1s", "at least 1ns"),
        ("max-entries", "-1", "at least 0"),
        ("max-entries", "1e3", "a whole number"),
        ("max-entries", "1_000", "a whole number"),
        ("max-entries", "9" * 5_000, "a whole number"),
        ("engine-block-size", "0", "at least 1"),
        ("engine-block-size", "-16", "at least 1"),
        ("slo-tight-bias", "nan", "a number"),
        ("slo-tight-bias", "1e400", "a number"),
        ("clear-fence", "yes", "true or false"),
        ("clear-fence", "True", "true or false"),
        ("log-format", "yaml", "one of json, text"),
        ("log-level", "trace", "one of debug, info, warn, warning, error"),
        ("grpc-bind-address", "9090", "an address such as"),
        ("http-bind-address", ":65536", "an address such as"),
    ],
)
def test_a_wrong_flag_says_what_is_allowed(
    tmp_path: Path, flag: str, value: str, allowed: str
) -> None:
    """The error names the flag, the value, its source and what would have been accepted."""
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, flags={flag: value})
    assert refused.value.field == f"--{flag}"
    assert refused.value.source == "flag"
    assert allowed in refused.value.allowed
    with pytest.raises(ConfigError, match="from environment"):
        load(tmp_path, environ={f"INFERENCECACHE_{flag.upper().replace('-', '_')}": value})


@pytest.mark.parametrize(
    ("yaml", "field", "allowed"),
    [
        ("max-entries: '5'\nttl: 5\n", "ttl", "a duration"),
        ("max-entries: true\n", "max-entries", "a whole number"),
        ("max-entries: 5.0\n", "max-entries", "a whole number"),
        ("clear-fence: 1\n", "clear-fence", "true or false"),
        ("clear-fence: 'true'\n", "clear-fence", "true or false"),
        ("slo-tight-bias: .nan\n", "slo-tight-bias", "a number"),
        ("slo-tight-bias: .inf\n", "slo-tight-bias", "a number"),
        ("ttl: [1m]\n", "ttl", "a duration"),
        ("ttl: null\n", "ttl", "a duration"),
        ("log-level: off\n", "log-level", "one of"),
        ("max_entries: 5\n", "max_entries", "max-entries"),
        ("index: {ttl: 1m}\n", "index", "one of the keys"),
        ("ttl: 1m\nmax-entries: 5\nttl: 2m\n", "ttl", "each key once"),
        ("5: 1\n", "5", "keys that are texts"),
        ("- ttl\n", "settings.yaml", "a mapping of settings"),
        ("ttl: {\n", "--config", "valid YAML"),
        ("ttl: !!python/object:os.system x\n", "--config", "valid YAML"),
        ("a: &a [*a]\n", "a", "one of the keys"),
        ("[" * 5_000 + "\n", "--config", "valid YAML"),
    ],
)
def test_a_wrong_file_names_file_and_key(
    tmp_path: Path, yaml: str, field: str, allowed: str
) -> None:
    """Unknown keys, wrong types and repeated keys are errors that name the file."""
    if yaml.startswith("max-entries: '5'"):
        yaml = yaml.removeprefix("max-entries: '5'\n")
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, yaml)
    assert refused.value.field.endswith(field)
    assert allowed in refused.value.allowed
    assert "settings.yaml" in refused.value.source


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """A missing file, a directory and other encodings are refused, never ignored."""
    with pytest.raises(ConfigError, match="a readable file"):
        read_settings_file(tmp_path / "absent.yaml")
    with pytest.raises(ConfigError, match="a readable file"):
        read_settings_file(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"ttl: \xff\n")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_settings_file(tmp_path / "latin.yaml")
    (tmp_path / "huge.yaml").write_bytes(b"#" * 2_000_000)
    with pytest.raises(ConfigError, match="1 MiB"):
        read_settings_file(tmp_path / "huge.yaml")


def test_an_empty_file_gives_defaults(tmp_path: Path) -> None:
    """A file of comments gives no setting."""
    assert load(tmp_path, "# nothing yet\n") == ServerSettings()


def test_every_setting_is_declared_once() -> None:
    """No two settings share a flag."""
    flags = [knob.flag for _, group in groups_of(ServerSettings) for knob in knobs_of(group)]
    assert len(flags) == len(set(flags))
    assert len(list(groups_of(ServerSettings))) == len(fields(ServerSettings))


@pytest.mark.parametrize(
    "knob",
    [knob for _, group in groups_of(ServerSettings) for knob in knobs_of(group)],
    ids=lambda knob: knob.flag,
)
def test_every_default_can_be_written_down(knob: Knob) -> None:
    """A default, written as a person would, reads back as itself from flag and file."""
    text = write(knob, knob.default)
    assert read_text(knob, text) == knob.default
    typed = text if knob.kind in {KnobKind.DURATION, KnobKind.ADDRESS} else knob.default
    assert read_typed(knob, typed) == knob.default
    assert knob.help.endswith(".")


@pytest.mark.parametrize(
    "number", ["010", "-010", "0x10", "0b11", "1_000", "1:30", "1_0.5", "1:30.5", "00"]
)
def test_numbers_that_yaml_reads_in_its_own_way_are_refused(tmp_path: Path, number: str) -> None:
    """To YAML 1.1 they are 8, 16, 3, 1000 and 90; people may mean something else."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, yaml=f"ttl: 1m\nmax-entries: {number}\n")

    assert f"{number} in line 2" in str(caught.value)
    assert "plain decimal" in str(caught.value)


@pytest.mark.parametrize(("number", "value"), [("0", 0), ("10", 10), ("+7", 7)])
def test_plain_numbers_are_taken(tmp_path: Path, number: str, value: int) -> None:
    """Zero included."""
    assert load(tmp_path, yaml=f"max-entries: {number}\n").index.entries_max == value
