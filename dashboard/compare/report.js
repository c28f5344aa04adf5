// Draws the charts of a report, and shows the samples of the epoch on the slider.
import { n as vegaEmbed } from "embed"
import { n as interpreter } from "vega-interpreter"

const style = getComputedStyle(document.documentElement), color = (name) => style.getPropertyValue(name).trim()
const theme = () => ({
  background: color("--page"),
  font: "system-ui, sans-serif",
  title: { anchor: "start", color: color("--text"), fontSize: innerWidth < 600 ? 13 : 15, fontWeight: 600, offset: 12 },
  axis: { gridColor: color("--line"), domainColor: color("--line"), tickColor: color("--line"), labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400 },
  view: { stroke: null },
})

const specifications = JSON.parse(document.getElementById("charts").textContent)
const places = [...document.querySelectorAll(".chart")]

async function draw() {
  // `theme` gives default colors; a chart's own settings override them.
  const options = { ast: true, expr: interpreter.expressionInterpreter, config: theme(), actions: { export: true, source: false, compiled: false, editor: false } }
  const results = await Promise.all(places.map((place, index) => vegaEmbed.default(place, structuredClone(specifications[index]), options)))
  window.views = results.map((result) => result.view)
}

const slider = document.querySelector("input[type=range]")
slider?.addEventListener("input", () => {
  const epoch = JSON.parse(slider.dataset.epochs)[slider.value]
  document.querySelector("output").value = epoch
  for (const figure of document.querySelectorAll(".samples figure")) {
    const images = [...figure.querySelectorAll("img")], until = images.filter((image) => image.dataset.epoch <= epoch)
    for (const image of images) image.hidden = image !== (until.at(-1) ?? images[0])
  }
})

await draw()
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw)
