"""No refused setting, file, variable or address shows a password, whatever characters it has."""

import json
import traceback
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, model_validator
from structlog.testing import capture_logs

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.core.bus.nats_url import with_login
from shared.errors import BadConfig, SubletError
from shared.settings import Settings, check, common_settings, raw_settings, read_environment, read_file

WORD = "s3cr3t"
AROUND = (
    *(
        "{}",
        "@{}",
        "{}@",
        "/{}",
        "{}/x",
        ":{}",
        ",{}",
        "{},a",
        "#{}",
        "{}#",
        "%{}",
        "%zz{}",
        " {}",
        "{} ",
        "\n{}",
        "{}\n",
    ),
    *(
        "\t{}",
        "?{}",
        "&{}",
        "'{}'",
        '"{}',
        "`{}",
        "*{}",
        "!{}",
        "[{}",
        "{}: x",
        "- {}",
        "|{}",
        "ü{}",
        "🔑{}",
        "\\{}",
        "\x00{}",
    ),
)
PASSWORDS = [around.replace("{}", WORD) for around in AROUND]
passwords = st.sampled_from(PASSWORDS) | st.tuples(st.text(max_size=8), st.text(max_size=8)).map(
    lambda t: t[0] + WORD + t[1]
)


class Logins(Settings):
    url: Annotated[str, Field(pattern=r"^never$")]
    count: int = 1


class Section(Settings):
    logins: Logins | None = None
    servers: tuple[int, ...] = ()
    limit: Annotated[int, Field(le=5)] = 1

    @model_validator(mode="after")
    def _never(self) -> "Section":
        if self.limit == 5:
            raise ValueError("want less")
        return self


def refusal(values: object) -> str:
    with pytest.raises(BadConfig) as caught:
        check(Section, values, where="central")
    return "".join(traceback.format_exception(caught.value))


@given(passwords)
def test_a_refused_setting_is_named_and_a_password_in_it_is_not_shown(password: str) -> None:
    address = f"nats://logins:{password}@bus:4222"
    for values in (
        {"logins": {"url": address}},
        {"logins": {"url": [address]}},
        {"logins": {"url": {"x": address}}},
        {"logins": {"url": "never", "count": {"password": password}}},
        {"logins": address},
        {"servers": [address]},
        {"limit": {"nats_url": password}},
        [address],
        {"limit": 5, "servers": [], "logins": {"url": password}},
    ):
        said = refusal(values)
        assert WORD not in said
        assert "central" in said


def test_other_values_are_shown() -> None:
    assert "central.limit = 7" in refusal({"limit": 7})
    assert "central.servers.0 = 'x'" in refusal({"servers": ["x"]})


@given(passwords)
def test_a_variable_that_is_no_yaml_is_named_alone(password: str) -> None:
    for text in (f"nats://u:{password}@h", password, f"{{{password}"):
        assert WORD not in refused_variable(text)


def refused_variable(text: str) -> str:
    """What is said against it; empty where it is taken."""
    try:
        read_environment({"SUBLET_NATS_URL": text})
    except BadConfig as error:
        return "".join(traceback.format_exception(error))
    return ""


def test_a_refused_variable_is_named() -> None:
    assert "SUBLET_NATS_URL=(not shown): not YAML (line 1" in refused_variable("[nats://u:p@h")


@pytest.mark.parametrize("password", PASSWORDS)
def test_a_file_that_is_no_yaml_says_where_and_not_what(password: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(f"node: a\nnats_url: nats://u:{password}@h\nbad: [{password}\n*{password}", encoding="utf-8")
    with pytest.raises(BadConfig, match="not YAML") as caught:
        read_file(path)
    assert WORD not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("password", PASSWORDS)
async def test_a_password_comes_through_the_settings_and_no_error_or_log_of_the_bus_has_it(password: str) -> None:
    address = with_login("nats://127.0.0.1:1", "user", password)
    for text in (address, json.dumps(address)):
        common = common_settings(raw_settings({"SUBLET_NATS_URL": text}))
        assert common.nats_url == address
        with capture_logs() as logs, pytest.raises(SubletError) as caught:
            await connect(common.nats_url, name="test/a", connect_timeout_s=0.02, clock=SystemClock())
        assert WORD not in "".join(traceback.format_exception(caught.value)) + repr(logs)
        assert "127.0.0.1:1" in str(caught.value)


@pytest.mark.parametrize("password", PASSWORDS)
async def test_also_where_nobody_encoded_it(password: str) -> None:
    with capture_logs() as logs, pytest.raises(SubletError) as caught:
        await connect(f"nats://user:{password}@127.0.0.1:1", name="t/a", connect_timeout_s=0.02, clock=SystemClock())
    assert WORD not in "".join(traceback.format_exception(caught.value)) + repr(logs)
