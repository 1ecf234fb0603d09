"""Addresses of NATS servers: any password fits into one, and none is ever shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.bus.nats_url import NatsAddress, read_nats_url, with_login, without_secrets
from shared.errors import BadConfig
from sublet.consumers.login import Login

ODD = (
    *("p@ss", "p/ss", "p:ss", "p,ss", "p#ss", "p%ss", "p%41ss", "p?ss", "p&ss=1", "p ss", "p\nss", "p\r\nss", "p\tss"),
    *(
        "p\x00ss",
        "p@h:4222,nats://q",
        "pässwörd",
        "密码",
        "🔑",
        "'\"`$(id)",
        "\\p",
        "[::1]",
        "@",
        ",",
        ":",
        "//",
        "%",
        " p ",
    ),
)
words = st.one_of(st.sampled_from(ODD), st.text(min_size=1, max_size=40))
servers = st.sampled_from(["nats://bus:4222", "tls://bus.example.org:7422", "nats://[::1]:4222", "nats://127.0.0.1:1"])


@given(servers, words, words)
def test_any_login_comes_back_from_the_address_it_is_in(server: str, user: str, password: str) -> None:
    found = read_nats_url(with_login(server, user, password))
    assert found == NatsAddress((server,), user, password)
    assert password not in repr(found) or password in repr(NatsAddress((server,), user))


@given(servers, words, words)
def test_of_an_address_with_a_login_only_the_place_is_shown(server: str, user: str, password: str) -> None:
    place = server.partition("://")[2]
    assert without_secrets(with_login(server, user, password)) == place
    several = ",".join(with_login(server, user, password) for _ in range(3))
    assert without_secrets(several) == place


@pytest.mark.parametrize("password", ODD)
def test_also_one_that_nobody_encoded(password: str) -> None:
    assert without_secrets(f"nats://user:{password}@bus:4222") == "bus:4222"
    assert without_secrets(f"nats://h1,nats://user:{password}@h2:4222,h3") == "h2:4222,h3"


@given(st.one_of(st.text(max_size=60), words.map("nats://user:{}@bus:4222".format)))
def test_no_text_is_repeated_in_an_error(text: str) -> None:
    hidden, said = text.rpartition("@")[0], refusal(text)
    assert len(hidden) < 8 or hidden not in said


def refusal(text: str) -> str:
    try:
        read_nats_url(text)
    except BadConfig as error:
        return str(error)
    return ""


@pytest.mark.parametrize("password", [word for word in ODD if not set(",%") & set(word)])
def test_what_stands_unencoded_and_can_mean_one_thing_is_read(password: str) -> None:
    assert read_nats_url(f"nats://user:{password}@bus") == NatsAddress(("nats://bus:4222",), "user", password)


@pytest.mark.parametrize(
    "text",
    ["", "nats://", "http://bus:4222", "nats://bus:port", "nats://bus:0", "nats://bus:65536", "nats://a b", "nats://u:p,w@bus",
     "nats://u:12,34@bus", "nats://u:p@a,nats://u:q@b", "nats://bus/path", "nats://u:p@", "x" * 5000],
)  # fmt: skip
def test_what_is_no_address_is_refused_with_what_is_wanted(text: str) -> None:
    with pytest.raises(BadConfig, match=r"nats_url.*want nats://host:port") as caught:
        read_nats_url(text)
    assert len(str(caught.value)) < 500


def test_servers_are_listed_with_their_ports() -> None:
    found = read_nats_url("a, nats://b:1,tls://[::1]/")
    assert found.servers == ("nats://a:4222", "nats://b:1", "tls://[::1]:4222")
    assert (found.host, found.port, found.user, found.password) == ("a", 4222, None, None)
    assert read_nats_url("nats://word@bus") == NatsAddress(("nats://bus:4222",), "word", None)


def test_a_teams_address_has_the_place_of_ours_and_nothing_else_of_it() -> None:
    ours = with_login("nats://127.0.0.1:4222", "_sublet", "p@ss")
    assert Login("team-a", "word").address(ours) == "nats://team-a:word@127.0.0.1:4222"


NOW, BEFORE = "tls://central:now@hub:4222", "tls://central:before@hub:4222"
HUB = ("tls://hub:4222",)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tls://hub", NatsAddress(HUB)),
        (f"{NOW}?ca_file=/a/ca.crt", NatsAddress(HUB, "central", "now", ca_file="/a/ca.crt")),
        (f"{NOW}?ca_file=/a,{BEFORE}?ca_file=/a", NatsAddress(HUB, "central", "now", ("before",), "/a")),
        (f"{NOW},tls://central:$(PREVIOUS_PASSWORD)@hub:4222", NatsAddress(HUB, "central", "now")),
    ],
)
def test_an_authority_and_a_previous_password_are_read(text: str, found: NatsAddress) -> None:
    assert read_nats_url(text) == found
    assert without_secrets(text).partition(",")[0] == "hub" if text == "tls://hub" else "hub:4222"
    assert read_nats_url(text).encrypted


HALF = (
    "nats://hub?ca_file=/a",
    "tls://hub?ca=/a",
    "tls://hub?ca_file=/a,tls://b",
    "tls://a?ca_file=/a,nats://b",
    "tls://u:$(PASSWORD)@hub",
    "nats://u:p@a,nats://u:q@a,nats://u:p@b",
    "nats://a:p@hub,nats://b:p@hub",
    "nats://a@hub,nats://b@hub",
    "nats://a:p@hub,nats://hub",
)


@pytest.mark.parametrize("text", HALF)
def test_half_encrypted_and_other_users_are_refused(text: str) -> None:
    with pytest.raises(BadConfig):
        read_nats_url(text)
