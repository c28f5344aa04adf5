// A page whose WebSocket is refused stays empty while Streamlit retries. This asks the server for the reason and shows it.
(() => {
  const EVERY_MS = 3000, PATIENT_TRIES = 5
  const box = Object.assign(document.createElement("div"), { role: "alert" })
  box.style.cssText = "position:fixed;inset:4rem 1rem auto;margin:auto;max-width:40rem;padding:1rem 1.25rem;z-index:1000000;" +
    "font:1rem/1.5 system-ui,sans-serif;color:#10171F;background:#FDF0E6;border:1px solid #D55E00;border-radius:4px"
  let tries = 0
  const timer = setInterval(async () => {
    if (document.querySelector("[data-test-connection-state=CONNECTED]")) {
      clearInterval(timer)
      return box.remove()
    }
    const answer = await fetch(new URL("_stcore/stream", window.__streamlit.BACKEND_BASE_URL), { method: "POST" }).catch(() => null)
    // 426: the server would connect. It may only be busy, so this blames a proxy only after some tries.
    if (![403, 426].includes(answer?.status) || (answer.status === 426 && ++tries < PATIENT_TRIES)) return
    box.textContent = await answer.text()
    document.body.append(box)
  }, EVERY_MS)
})()
