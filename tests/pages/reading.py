"""The content of a page that Streamlit's test runner has drawn."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from streamlit.testing.v1 import AppTest

from gan_runtime.base.options import GROUPS


def texts(app: AppTest) -> str:
    """Returns all text on the page outside of charts."""
    kinds = (
        app.title,
        app.markdown,
        app.caption,
        app.info,
        app.error,
        app.warning,
        app.header,
        app.subheader,
    )
    pieces = [str(element.value) for kind in kinds for element in kind]
    return "\n".join([*pieces, *(str(element.proto.body) for element in app.get("html"))])


def shown_commands(app: AppTest) -> list[str]:
    """Returns the commands of the command line on the page."""
    bodies = [element.proto.body for element in app.get("html")]
    return [
        html.unescape(match)
        for body in bodies
        for match in re.findall(r"<pre class='command'>(.*)</pre>", body)
    ]


def charts(app: AppTest) -> list[dict[str, object]]:
    """Returns the Vega-Lite specs on the page."""
    return [json.loads(element.proto.spec) for element in app.get("vega_lite_chart")]


def rows_of(app: AppTest, title: str, name: str = "rows") -> Any:
    """The rows of the chart with this title; `name` is "" if the chart is rebuilt with its rows."""
    chart = next(
        element.proto for element in app.get("vega_lite_chart") if title in element.proto.spec
    )
    named = {dataset.name: dataset.data.data for dataset in chart.datasets}
    return pa.ipc.open_stream(named[name] if name else next(iter(named.values()))).read_pandas()


def opened(app: AppTest, *groups: str) -> AppTest:
    """Opens these groups of Launch, by default all of them, as a click would."""
    for group in groups or GROUPS:
        app.session_state[f"group.{group}"] = True
    return app.run()


def titles(app: AppTest) -> list[str]:
    """Returns the titles of the charts on the page without subtitles; some are under a heading and
    have none.
    """
    headings = [chart["title"] for chart in charts(app) if "title" in chart]
    return [str(title["text"]) if isinstance(title, dict) else str(title) for title in headings]


def evaluation(show: Callable[..., AppTest], *run_ids: str, **query: str) -> AppTest:
    """Opens the Evaluation tab of the first of these runs, or of the newest, compared with the
    others. `query`: the rest of the URL.
    """
    first = {"run": run_ids[0]} if run_ids else {}
    more = {"with": ",".join(run_ids[1:])} if run_ids[1:] else {}
    return show("run", tab="evaluation", **first, **more, **query)


def open_tab(app: AppTest, title: str) -> AppTest:
    """Opens another tab of the evaluation, with the state and URL that a click leaves."""
    app.query_params["view"] = title
    app.session_state["view"] = title
    return app.run()
