"""A page with a text of somebody's in every place that takes one, and how a browser's parser would see it."""

from html.parser import HTMLParser

from sublet.pages.chart import Chart, ChartAxes, ChartBand, ChartLine, Scatter, ScatterDot
from sublet.pages.page import Block, Page, PageCell, PageCharts, PageFigures, PageProse, PageSection, PageTable, render


def page_of(text: str) -> str:
    """The page with the text everywhere."""
    axes = ChartAxes(0.0, 1.0, 0.0, 1.0, text)
    chart = Chart(text, axes, [0.0, 1.0], [ChartLine(text, "shared", [0.0, None])], [ChartBand(0, 1, text)], text, text)
    blocks: list[Block] = [
        PageProse([text]),
        PageProse([text], listed=True, tone="bad"),
        PageFigures([(text, text)]),
        PageTable([text], [[PageCell(text, text, "best", 0.5)]], cards=True, left=True, note=text),
        PageCharts([chart, Scatter(text, text, text, [ScatterDot(text, 1.0, 2.0)], text)], across=2),
    ]
    return render(Page(text, text, [text], [PageSection(text, blocks)]))


class Seen(HTMLParser):
    """Elements with the names of their attributes, and what is inside of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self._in_script = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts.append(data)
