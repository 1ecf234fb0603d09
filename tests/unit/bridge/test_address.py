"""The receiver's address: what is none is refused without what may be secret in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Refused
from sublet.bridge.address import require_address, shown_address


@pytest.mark.parametrize(
    "to",
    ["kubernetes", "http://h", "https://h:443/hook?key=a%20b", "http://[::1]:8080/", "http://me:word@h/", "HTTP://h"],
)
def test_what_can_be_reached_is_taken(to: str) -> None:
    require_address(to.replace("HTTP", "http"))


@pytest.mark.parametrize("to", [f"http://me:word@{rest}" for rest in ("", "h:0", "h:1x/", "h/a b")])
def test_what_is_no_address_is_refused_without_its_login(to: str) -> None:
    with pytest.raises(Refused, match="want http://HOST or https://HOST") as caught:
        require_address(to)
    assert "word" not in str(caught.value)


def test_an_address_is_shown_without_login_path_and_query() -> None:
    assert shown_address("https://me:w@rd@h.example:8443/hooks/secret?key=word") == "https://h.example:8443"


@given(st.text(max_size=60))
def test_no_text_does_harm(text: str) -> None:
    for to in (text, f"http://{text}", f"https://h:{text}"):
        try:
            require_address(to)
        except Refused:
            continue
        if to != "kubernetes":
            assert shown_address(to).isprintable()
