"""`Link` keeps one connection to NATS: it reconnects with jitter, counts faults, and reports when it is closed
permanently.

Settings and the defects they guard against: docs/facts/nats.md#the-python-client.
"""

import asyncio
import contextlib
import functools
import itertools
import random
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import nats.errors
import structlog
from nats.aio.client import Client, Server
from nats.js import JetStreamContext
from nats.js.api import DEFAULT_PREFIX
from nats.js.errors import ServiceUnavailableError

from shared import telemetry
from shared.adapters.nats.websockets import enable_websockets
from shared.contracts.bus.subjects import NODE_API
from shared.core.backoff import delay_s
from shared.core.bus.nats_url import NatsAddress, read_nats_url, without_secrets
from shared.core.log_limit import LogLimit
from shared.errors import BadConfig, Unavailable
from shared.ports import Clock

log = structlog.get_logger()

API_TIMEOUT_S = 5.0
# With two outstanding, a half-open connection is noticed within 30 s; the client's own default takes minutes.
PING_INTERVAL_S = 10
MAX_OUTSTANDING_PINGS = 2
FIRST_CONNECT_PAUSE_S = 0.25
RECONNECT_BASE_S, RECONNECT_CAP_S = 0.1, 5.0
FLUSH_TIMEOUT_S = 2.0
CONNECT_BASE_S, CONNECT_CAP_S = 2.0, 10.0
"""How long the server may take for each step of a greeting: the first try, and tries after several in vain."""
TRYING_CHECK_S = 10.0
CANCEL_AGAIN_S = 0.05
GIVE_UP_S = 2.0
"""How long the client may take to close; with TLS it may wait for the end of a connection that is gone, for ever."""
REFUSED_LOGIN = "authorization violation"
"""The server's answer to a wrong user or password, or to a removed one."""
DRAIN_TIMEOUT_S = 5
FAILURES = (nats.errors.Error, OSError, TimeoutError)
"""Errors of the client when the server, or the network to it, is away."""


def words(error: BaseException) -> str:
    """Describe an error; several of the client's contain only their name, or less."""
    if isinstance(error, ServiceUnavailableError) and error.code is None:
        return "nobody answers there: JetStream is off or not up yet, or this login may not ask for it"
    return str(error) or type(error).__name__


@contextlib.contextmanager
def cancellable() -> Iterator[None]:
    """Use around every await of the client, so that no cancellation gets lost.

    The client swallows one while it flushes, and waits with `asyncio.wait_for`, which in Python 3.11 forgets one that
    comes in the same turn of the loop as the answer; a task that stops at the wrong moment would then never stop.
    """
    before = _cancellations()
    try:
        yield
    except FAILURES as error:
        # A failure in the same moment as a cancellation is the cancellation's: the task has to end, not to handle it.
        if _cancellations() > before:
            raise asyncio.CancelledError from error
        raise
    if _cancellations() > before:
        raise asyncio.CancelledError


@contextlib.contextmanager
def unavailable(what: str) -> Iterator[None]:
    """Turn the client's errors into Unavailable, which says what was attempted; includes `cancellable`."""
    try:
        with cancellable():
            yield
    except FAILURES as error:
        raise Unavailable(f"{what}: {words(error)}", reason="bus") from error


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


def _trust(to: NatsAddress) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=to.ca_file or None)
    except OSError as error:
        raise BadConfig(f"nats_url: ca_file {to.ca_file}: {error}", reason="invalid") from error


class Link:
    """The client, its callbacks and counters. `connected` is what decides whether a lossy message is sent at all."""

    def __init__(self, url: str, *, name: str, clock: Clock, echo: bool = True) -> None:
        self.client = Client()
        self.clock = clock
        self.service = name.partition("/")[0]
        self._url, self._name, self._echo = url, name, echo
        self._closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._watchers: set[Callable[[], None]] = set()
        self._attempt = 0
        self._connect_s = CONNECT_BASE_S
        self._opened = False
        self._ending = False
        self._log_limit = LogLimit()
        self._waiting_said = False
        self._tries = 0
        self._at_once = False
        self._in_vain = asyncio.Event()
        """Every server, with every password, has been tried once before the connection stood."""

    @property
    def js(self) -> JetStreamContext:
        """JetStream over this connection."""
        # Recreated each time, because a reconnection may change whether the server is a leaf.
        return self.client.jetstream(timeout=API_TIMEOUT_S, prefix=NODE_API if self.at_leaf else DEFAULT_PREFIX)

    @property
    def connected(self) -> bool:
        """Whether a publish would leave now."""
        return self.client.is_connected and not self.client.is_draining_pubs

    @property
    def at_leaf(self) -> bool:
        """Whether the server has no streams of its own: it is a leaf, and its hub may give it no consumers."""
        # The client has no public field for the server's greeting.
        return not self.client._server_info.get("jetstream")

    @property
    def closed(self) -> bool:
        """Whether it is closed permanently."""
        return self._closed.done()

    async def open(self, timeout_s: float, *, wait: bool = True) -> None:
        """Connect; `wait` for a server that is not running yet, otherwise give up after all have refused.

        Raises:
            BadConfig: the address is not one.
            Unavailable: no answer within the time, or the login was refused (reason "login").
        """
        where, self._at_once = without_secrets(self._url), not wait
        try:
            await self._connected_within(timeout_s, wait=wait)
        except TimeoutError as error:
            why = self.client.last_error
            await self._give_up()
            # The client retries a refused login like an absent server; only here, at the end of the time, are they
            # distinguished.
            if isinstance(why, nats.errors.AuthorizationError) or REFUSED_LOGIN in str(why).lower():
                raise Unavailable(
                    f"the NATS server at {where} does not take this login: user and password stand in nats_url "
                    "(SUBLET_NATS_URL), nats://user:password@host:port; a team gets new ones with: "
                    "sublet consumers rotate NAME",
                    reason="login",
                ) from error
            raise Unavailable(
                f"no NATS server at {where} within {timeout_s:g} s ({why or 'no answer'}); "
                "start one, or set nats_url (SUBLET_NATS_URL)",
                reason="no_bus",
            ) from error
        except asyncio.CancelledError:
            await self._give_up()
            raise
        except nats.errors.Error as error:
            raise BadConfig(f"nats_url {where!r}: {words(error)}", reason="invalid") from error
        self._opened = True
        telemetry.CONNECTED.set(1)
        log.info("bus.connected", server=where, version=self.client.connected_server_version._server_version)

    async def _connected_within(self, timeout_s: float, *, wait: bool) -> None:
        """Connect, or raise TimeoutError, also where the client forgets that it was cancelled and tries on."""
        # A task of its own and `asyncio.wait`, not `wait_for`: the client may swallow one cancellation, so it is
        # repeated below.
        connecting = asyncio.create_task(self._connect())
        hopeless = asyncio.create_task(self._in_vain.wait())
        try:
            ends = {connecting} if wait else {connecting, hopeless}
            await asyncio.wait(ends, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if not connecting.done():
                raise TimeoutError
            connecting.result()
        finally:
            hopeless.cancel()
            while not connecting.done():
                connecting.cancel()
                await asyncio.wait({connecting}, timeout=CANCEL_AGAIN_S)

    async def _connect(self) -> None:
        to = read_nats_url(self._url)
        if to.over_websockets:
            enable_websockets()
        await self.client.connect(
            servers=list(to.servers),
            # Apart from the servers: the client does not decode what is encoded there, and may repeat it in an error.
            user=to.user if to.password is not None else None,
            password=functools.partial(next, itertools.cycle(to.passwords)) if to.passwords else None,
            token=to.user if to.password is None else None,
            # From the first byte: a plain-text greeting could omit TLS, and the client would continue without it.
            tls=_trust(to) if to.encrypted else None,
            tls_handshake_first=to.encrypted,
            name=self._name,
            no_echo=not self._echo,
            inbox_prefix=self._inbox(),
            # 60 by default, and then the client is closed for good (docs/facts/nats.md#the-python-client).
            max_reconnect_attempts=-1,
            # Only the first connection waits this long between tries; later the handler below owns all the waiting.
            reconnect_time_wait=FIRST_CONNECT_PAUSE_S,  # type: ignore[arg-type]  # any number of seconds will do
            reconnect_to_server_handler=self._next_server,
            connect_timeout=self._connect_s,  # type: ignore[arg-type]  # any number of seconds will do
            ping_interval=PING_INTERVAL_S,
            max_outstanding_pings=MAX_OUTSTANDING_PINGS,
            flush_timeout=FLUSH_TIMEOUT_S,
            drain_timeout=DRAIN_TIMEOUT_S,
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnected,
            reconnected_cb=self._on_reconnected,
            closed_cb=self._on_closed,
            lame_duck_mode_cb=self._on_lame_duck,
        )

    def _inbox(self) -> str:
        """The node is a token of it, so that a server can keep one node's answers from another."""
        node = self._name.partition("/")[2].replace(".", "_")
        return f"_INBOX_{self.service}.{node}" if node else f"_INBOX_{self.service}"

    def on_reconnect(self, call: Callable[[], None]) -> Callable[[], None]:
        """Have a function called after every reconnection and at the end; the result takes that back."""
        self._watchers.add(call)
        return lambda: self._watchers.discard(call)

    async def wait_closed(self) -> str:
        """Return the reason once the client is closed permanently, or has stopped trying to connect."""
        while not self.closed:
            # Several wait for this future; `wait` does not cancel it where one of them is cancelled.
            await asyncio.wait({self._closed}, timeout=TRYING_CHECK_S)
            if (why := self._stopped_trying()) and not self.closed:
                self._closed.set_result(f"the client has stopped trying to connect: {why}")
        return self._closed.result()

    def _stopped_trying(self) -> str:
        """Why the task that reconnects has died: the client is then neither connected nor closed, for ever; "": no."""
        trying = self.client._reconnection_task
        away = self.client.is_reconnecting or self.client.is_connecting
        if not away or trying is None or not trying.done():
            return ""
        error = None if trying.cancelled() else trying.exception()
        return "it was cancelled" if error is None else words(error)

    async def settle(self) -> None:
        """Return once the server has received everything that was sent before.

        The client's ping overtakes unwritten data (`_send_ping` of nats-py 2.x), so the first pong proves nothing; by
        then the data is written, and the second ping is behind it.
        """
        for _ in range(2):
            await self.client.flush(timeout=FLUSH_TIMEOUT_S)  # type: ignore[arg-type]  # seconds

    async def drain(self) -> None:
        """Deliver what was received, send what was published, close; without a server, only close."""
        # Closed already: the client would raise, and nothing is left to deliver.
        if self.closed:
            return
        self._ending = True
        try:
            async with asyncio.timeout(DRAIN_TIMEOUT_S + 3 * FLUSH_TIMEOUT_S):
                # Without a server `drain` cannot flush; it raises at once, and closing is all that is left.
                if self.connected:
                    await self.settle()
                await self.client.drain()  # raises while reconnecting
        except FAILURES as error:
            log.warning("bus.drain_failed", why=words(error))
        await self._give_up()

    def report(self, kind: str, **details: Any) -> None:
        """Log trouble of one kind, at most once in a while."""
        held_back = self._log_limit.may_say(kind, self.clock.monotonic())
        if held_back is not None:
            log.warning("bus.troubled", kind=kind, held_back=held_back, **details)

    async def _give_up(self) -> None:
        # A task of its own and `asyncio.wait`, as in `_connected_within`: the client may swallow a cancellation.
        closing = asyncio.create_task(self._close())
        await asyncio.wait({closing}, timeout=GIVE_UP_S)
        closing.cancel()
        if not self.closed:
            self._closed.set_result("closed by this process")
        self._tell()

    async def _close(self) -> None:
        with contextlib.suppress(*FAILURES):
            await self.client.close()
        # Where a refused try was cancelled in the middle of its own end, nats-py takes itself for closed already.
        self._close_last_try()

    def _close_last_try(self) -> None:
        """Close the connection of a try that the server refused, which nats-py forgets: its socket would stay open
        until a collection (docs/facts/nats.md#the-python-client)."""
        if (last_try := self.client._transport) is not None:
            last_try.close()  # type: ignore[no-untyped-call]

    def _next_server(self, servers: list[Server], _info: dict[str, Any]) -> tuple[Server, float]:
        """The server that failed least, after a growing random pause: the client's own choice would never change."""
        self._close_last_try()
        # Without this pause thousands of clients would come back in the same moment, every 2 s.
        delay = delay_s(self._attempt, base_s=RECONNECT_BASE_S, cap_s=RECONNECT_CAP_S, roll=random.random())  # noqa: S311 - jitter
        self._attempt += 1
        if self._at_once and self._in_vain.is_set():
            # `open` gives up now: a further try that it cancels right after the server took it would leave its socket
            # open (asyncio.wait_for before Python 3.12 loses the result).
            delay = RECONNECT_CAP_S
        return min(servers, key=lambda server: server.reconnects), delay

    async def _on_error(self, error: Exception) -> None:
        if isinstance(error, nats.errors.SlowConsumerError):
            telemetry.DROPPED.labels(self.service, "slow_consumer").inc()
            self.report("slow_consumer", subject=error.subject)
            return
        if isinstance(error, TimeoutError):
            # A limit that a busy machine cannot meet would make every try be in vain for as long as it is busy.
            self._allow_to_connect_within(min(2 * self._connect_s, CONNECT_CAP_S))
        # Also before the first connection: waiting for a server shows as a count, while it is logged once.
        telemetry.BUS_ERRORS.labels(type(error).__name__).inc()
        if self._opened:
            self.report(type(error).__name__, why=str(error))
        else:
            self._log_waiting(error)
            self._count_try()

    def _allow_to_connect_within(self, seconds: float) -> None:
        self._connect_s = self.client.options["connect_timeout"] = seconds

    def _count_try(self) -> None:
        self._tries += 1
        to = read_nats_url(self._url)
        if self._tries >= len(to.servers) * max(1, len(to.passwords)):
            self._in_vain.set()

    def _log_waiting(self, error: Exception) -> None:
        if not self._waiting_said:
            self._waiting_said = True
            log.warning("bus.awaited", server=without_secrets(self._url), why=words(error))

    async def _on_disconnected(self) -> None:
        if self._opened:
            telemetry.DISCONNECTS.inc()
            telemetry.CONNECTED.set(0)
            # One that ends its connection itself is not warned of it.
            say = log.info if self._ending else log.warning
            say("bus.disconnected", why=str(self.client.last_error or ""))

    async def _on_reconnected(self) -> None:
        self._attempt = 0
        self._allow_to_connect_within(CONNECT_BASE_S)
        telemetry.RECONNECTS.inc()
        telemetry.CONNECTED.set(1)
        log.info("bus.reconnected")
        # The client renews subscriptions, but a reader with a pending pull request must restart: the request died with
        # the connection.
        self._tell()

    async def _on_closed(self) -> None:
        if self.closed:
            return
        why = self.client.last_error
        self._closed.set_result(str(why) if why else "closed by this process")
        if self._opened:
            log.info("bus.closed", why=self._closed.result())
        self._tell()

    async def _on_lame_duck(self) -> None:
        """Handle a server that is about to stop: move to another one, if there is one, before all clients do at
        once."""
        log.warning("bus.server_leaving")
        # With one server there is no other to move to: it is left when it closes, as at any other end of a connection.
        if len(self.client.servers) > 1:
            await self.client.force_reconnect()

    def _tell(self) -> None:
        for call in tuple(self._watchers):
            call()
