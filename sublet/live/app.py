"""`TopApp` shows pools and pods as they are now, on a terminal: keys, scrolling, sorting, a filter and help."""

from collections.abc import Awaitable, Callable
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import DataTable, Footer, Input, Static

from shared.core.cpus.cpuset import CpuSet
from sublet.live.rows import SORT_KEYS, SortKey, TopRow, row_title, top_rows
from sublet.views.cpu_map import machine_map
from sublet.views.facts import NodeFacts
from sublet.views.figures import UNKNOWN, cores, memory
from sublet.views.headline import headline
from sublet.views.top import machine_line
from sublet.views.usage import bar

HELP = """\
up down page-up page-down home end   move      left right   see wide lines whole
c  m  n   pods by CPU, memory, name      s   the next of these
/         only pods with these letters; Enter keeps it, Esc drops it
p         show or hide the CPU map       space   hold the picture, or let it go on
?         this help                      q   end"""
COLUMNS = (("pool / pod", "name"), ("CPU", "cpu"), ("of its CPUs", "ratio"), ("memory", "memory"), ("load1", "load"),
           ("count", "count"), ("CPUs", "cpus"))  # fmt: skip
MAP_FROM_ROWS = 30
"""A lower terminal is the table's alone until the map is asked for."""

Look = Callable[[], Awaitable[NodeFacts]]


class PodTable(DataTable[Text]):
    """A table in which home and end go to the first and the last line, as in a pager."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("home", "scroll_top", "first", show=False),
        Binding("end", "scroll_bottom", "last", show=False),
    ]


class TopApp(App[None]):
    """The screen; `look` asks the services, `period_s` apart."""

    CSS = """
    #head { height: auto; }
    #map { height: auto; max-height: 50%; display: none; }
    #help { height: auto; display: none; border: round $primary; }
    #filter { display: none; height: 3; }
    DataTable { height: 1fr; }
    """
    TITLE = "sublet top"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "end"),
        Binding("c", "sort('cpu')", "by CPU"),
        Binding("m", "sort('memory')", "by memory"),
        Binding("n", "sort('name')", "by name"),
        Binding("s", "sort_next", "sort", show=False),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("escape", "drop_filter", "no filter", show=False),
        Binding("p", "toggle_map", "CPU map"),
        Binding("space", "hold_picture", "hold", show=False),
        Binding("question_mark", "toggle_help", "help", key_display="?"),
    ]

    def __init__(self, look: Look, period_s: float = 1.0) -> None:
        super().__init__()
        self._look, self._period_s = look, period_s
        self._facts: NodeFacts | None = None
        self._sort: SortKey = "cpu"
        self._wanted = ""
        self._held = False
        self._map_shown: bool | None = None

    def compose(self) -> ComposeResult:
        """The parts, from top to bottom."""
        yield Static(id="head")
        yield Static(HELP, id="help", markup=False)
        yield VerticalScroll(Static(id="drawn"), id="map")
        yield PodTable(cursor_type="row", zebra_stripes=False)
        yield Input(placeholder="letters of a pod's or pool's name", id="filter")
        yield Footer()

    async def on_mount(self) -> None:
        """Show the first picture, then one each period."""
        table = self.query_one(PodTable)
        for title, key in COLUMNS:
            table.add_column(title, key=key)
        table.focus()
        await self.refresh_facts()
        self.set_interval(self._period_s, self.refresh_facts)

    async def refresh_facts(self) -> None:
        """Ask the services, unless the picture is held."""
        if not self._held:
            self._facts = await self._look()
            self._draw()

    def action_sort(self, key: SortKey) -> None:
        """Order pods by this figure."""
        self._sort = key
        self._draw()

    def action_sort_next(self) -> None:
        """Order pods by the next figure."""
        self.action_sort(SORT_KEYS[(SORT_KEYS.index(self._sort) + 1) % len(SORT_KEYS)])

    def action_filter(self) -> None:
        """Let letters be typed that a name must hold."""
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    def action_drop_filter(self) -> None:
        """Show every pod again."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self.query_one(PodTable).focus()

    def action_toggle_map(self) -> None:
        """Show or hide the CPU map."""
        self._map_shown = not self._shows_map()
        self._draw()

    def action_hold_picture(self) -> None:
        """Stop asking, or go on."""
        self._held = not self._held
        self._draw()

    def action_toggle_help(self) -> None:
        """Show or hide the keys."""
        self.query_one("#help").display = not self.query_one("#help").display

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter with each letter."""
        self._wanted = event.value
        self._draw()

    def on_input_submitted(self) -> None:
        """Keep the filter, and let keys move in the table again."""
        self.query_one("#filter").display = False
        self.query_one(PodTable).focus()

    def on_resize(self) -> None:
        """Fit the map to the new size."""
        self._draw()

    def _shows_map(self) -> bool:
        return self.size.height >= MAP_FROM_ROWS if self._map_shown is None else self._map_shown

    def _draw(self) -> None:
        if self._facts is None:
            return
        self.query_one("#head", Static).update(self._head(self._facts))
        drawn = machine_map(self._facts, usage=True) if self._shows_map() else None
        self.query_one("#map").display = drawn is not None
        if drawn is not None:
            self.query_one("#drawn", Static).update(drawn)
        self._fill(top_rows(self._facts, self._sort, self._wanted))

    def _head(self, facts: NodeFacts) -> Text:
        text = Text(headline(facts).words(), "bold", no_wrap=True, overflow="ellipsis")
        text.append(f"\n{machine_line(facts)}", "not bold")
        pods = sum(not row.is_pool for row in top_rows(facts, self._sort, self._wanted))
        every = sum(not row.is_pool for row in top_rows(facts, self._sort, ""))
        shown = f"{every} pods" if pods == every else f"{pods} of {every} pods have {self._wanted!r} in their name"
        text.append(f"\n{shown}, by {self._sort}{', held' if self._held else ''}", "not bold")
        if facts.silent:
            text.append(f"; {', '.join(facts.silent)} did not answer", "bold red")
        return text

    def _fill(self, rows: list[TopRow]) -> None:
        """Put rows into the table; the cursor stays with what it is on."""
        table = self.query_one(PodTable)
        marked = table.ordered_rows[table.cursor_row].key.value if table.row_count else None
        scrolled = table.scroll_y
        table.clear()
        for row in rows:
            table.add_row(*_cells(row), key=row.key)
        keys = [row.key for row in rows]
        if marked in keys:
            table.move_cursor(row=keys.index(marked), animate=False, scroll=False)
        table.scroll_to(y=scrolled, animate=False)


def _cells(row: TopRow) -> list[Text]:
    usage = row.usage
    style = "bold" if row.is_pool else ""
    count = UNKNOWN if usage.cpus is None else str(len(CpuSet.parse(usage.cpus)))
    figures = (cores(usage.cpu_usage_cores), bar(usage), memory(usage.memory_bytes), cores(usage.load1), count)
    return [
        Text(row_title(row), style),
        *(Text(figure, style, justify="right") for figure in figures),
        Text(usage.cpus or UNKNOWN, style),
    ]
