// A browser notification when a run ends, fails or collapses, after the user has enabled it by a click (notices.py draws the button).
// It asks this server only. Runs that ended before that click give none. Tabs share the list of shown events; the tag keeps the browser from showing one twice.
(() => {
  const EVERY_MS = 5000, SHOWN = "gan-notices-shown", SINCE = "gan-notices-since", MOST_SHOWN = 200
  const state = () => {
    if (!("Notification" in window) || !window.isSecureContext) return "impossible"
    if (Notification.permission !== "granted") return Notification.permission === "denied" ? "denied" : "off"
    return localStorage.getItem(SHOWN) ? "on" : "off"
  }
  const mark = () => { document.documentElement.dataset.notices = state() }
  const events = async () => {
    const answer = await fetch(new URL("notices.json", window.__streamlit.BACKEND_BASE_URL)).catch(() => null)
    return answer?.ok ? answer.json() : []
  }
  const store = (ids) => localStorage.setItem(SHOWN, JSON.stringify(ids.slice(-MOST_SHOWN)))
  const show = ({ id, title, text, run }) => {
    const notice = new Notification(title, { body: text, tag: id })
    notice.onclick = () => {
      window.focus()
      location.assign(new URL(`run?run=${encodeURIComponent(run)}`, window.__streamlit.BACKEND_BASE_URL))
    }
  }
  const enable = (list) => {
    localStorage.setItem(SINCE, list.map((event) => event.ended).sort().at(-1) ?? "")
    store(list.map((event) => event.id))
  }
  const look = async () => {
    if (state() !== "on") return
    for (const event of (await events()).reverse()) {
      const shown = JSON.parse(localStorage.getItem(SHOWN) ?? "[]")
      if (shown.includes(event.id) || (event.ended && event.ended <= localStorage.getItem(SINCE))) continue
      store([...shown, event.id])
      show(event)
    }
  }
  document.addEventListener("click", async (click) => {
    if (!click.target.closest?.(".browser-notices")) return
    if (state() === "on") localStorage.removeItem(SHOWN)
    else if (await Notification.requestPermission() === "granted") enable(await events())
    mark()
  })
  mark()
  setInterval(() => { mark(); look() }, EVERY_MS)
})()
