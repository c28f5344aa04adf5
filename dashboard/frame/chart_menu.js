// Two more buttons in the toolbar of every chart, after Streamlit's "Download as PNG": the chart as SVG, its rows as CSV.
// They appear when the pointer or the focus is on a chart. Also hides the marks of a drag from screen readers: Vega gives them a role
// and no name. front_page.py loads this on every page.
(formulaBeginnings) => {
  const ROWS = "rows" // the table of a chart, as plots.py names it; others hold marks such as the ends of an axis
  const PNG = 'button[aria-label^="Download as PNG"]'

  // The Vega view of a chart. No element refers to it, so it is read from React's record of Streamlit's component.
  // Undefined until the chart is drawn, and with another build of Streamlit.
  function viewOf(chart) {
    const record = chart[Object.keys(chart).find((key) => key.startsWith("__reactFiber$"))]
    for (let component = record; component; component = component.return)
      for (let hook = component.memoizedState; hook?.next !== undefined; hook = hook.next)
        if (typeof hook.memoizedState?.current?.toImageURL === "function") return hook.memoizedState.current
  }

  // A field as in RFC 4180. A text that a spreadsheet would evaluate gets an apostrophe, as in files of `export`.
  function cell(value) {
    const text = value == null ? "" : value instanceof Date ? value.toISOString() : String(value)
    const harmless = typeof value === "string" && text && formulaBeginnings.includes(text[0]) ? `'${text}` : text
    return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
  }

  function csv(rows) {
    const names = [...new Set(rows.flatMap(Object.keys))].filter((name) => name !== "(index)")
    return [names, ...rows.map((row) => names.map((name) => row[name]))].map((line) => line.map(cell).join(",") + "\r\n").join("")
  }

  // The file is named after the chart's title.
  function save(text, type, svg) {
    const title = new DOMParser().parseFromString(svg, "image/svg+xml").querySelector(".role-title-text text")?.textContent
    const name = (title ?? "").normalize("NFKD").replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "").toLowerCase() || "chart"
    const url = URL.createObjectURL(new Blob([text], { type }))
    Object.assign(document.createElement("a"), { href: url, download: `${name}.${type === "text/csv" ? "csv" : "svg"}` }).click()
    setTimeout(() => URL.revokeObjectURL(url), 60_000)
  }

  const KINDS = { SVG: (_, svg) => save(svg, "image/svg+xml", svg), CSV: (view, svg) => save(csv(view.data(ROWS)), "text/csv", svg) }

  function button(kind, png, chart) {
    const place = png.closest("[data-testid=stElementToolbarButton]").cloneNode(true)
    const own = place.querySelector("button")
    own.ariaLabel = own.title = `Download as ${kind}`
    own.replaceChildren(Object.assign(document.createElement("span"), { textContent: kind, style: "font-size:.6875rem;font-weight:600" }))
    own.addEventListener("click", async (event) => {
      event.stopPropagation()
      const view = viewOf(chart)
      KINDS[kind](view, await view.toSVG())
    })
    return place
  }

  function complete(event) {
    const frame = event.target.closest?.("[data-testid=stFullScreenFrame]")
    const chart = frame?.querySelector("[data-testid=stVegaLiteChart]"), png = frame?.querySelector(PNG)
    if (!chart || !png || frame.querySelector('button[aria-label="Download as SVG"]') || !viewOf(chart)) return
    png.closest("[data-testid=stElementToolbarButton]").after(...Object.keys(KINDS).map((kind) => button(kind, png, chart)))
  }

  new MutationObserver((records) => {
    for (const { addedNodes } of records)
      for (const node of addedNodes)
        for (const brush of node.querySelectorAll?.(".zoom_brush, .zoom_brush_bg") ?? []) brush.ariaHidden = "true"
  }).observe(document, { childList: true, subtree: true })

  for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, complete, { capture: true, passive: true })
}
