// Films of the same length under one slider, with a play button. Each film arrives once, with all frames in one image ("sheet");
// playing asks the server for nothing. Streamlit calls this function at every redraw of the page: the same film then continues.

export default function ({ parentElement, data }) {
  const player = parentElement.querySelector(".player");
  if (player.film === data.film) return player.stop;
  player.stop?.();
  player.film = data.film;
  player.stop = start(player, data, player.step ?? data.first);
  return player.stop;
}

function start(player, data, first) {
  const [button, slider, label] = ["button", "input", "output"].map((name) => player.querySelector(name));
  const films = data.panels.map((panel) => figure(panel, data));
  player.querySelector(".panels").replaceChildren(...films.map((film) => film.figure));
  slider.max = data.steps.length - 1;
  let playing = null;

  const draw = () => {
    const now = Number(slider.value);
    films.forEach((film) => film.draw(now));
    label.textContent = data.steps[now];
    slider.setAttribute("aria-valuetext", data.steps[now]);
    player.step = now;
  };
  const go = (step) => {
    slider.value = step;
    draw();
  };
  const pause = () => {
    clearInterval(playing);
    playing = null;
    button.textContent = "Play";
  };
  const play = () => {
    // After the last frame it starts over.
    playing = setInterval(() => go((Number(slider.value) + 1) % data.steps.length), 1000 / data.frames_per_s);
    button.textContent = "Pause";
  };
  button.onclick = () => (playing ? pause() : play());
  slider.oninput = draw;
  pause();
  // A film of another quantity continues at the step of the previous one.
  Promise.all(films.map((film) => film.sheet.decode())).then(() => go(Math.min(first, slider.max)), console.error);
  return pause;
}

function figure(panel, data) {
  const element = (name, values = {}) => Object.assign(document.createElement(name), values);
  const whole = element("figure");
  const canvas = element("canvas", { width: data.width, height: data.height });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", panel.title);
  const scale = element("div", { className: "scale" });
  scale.style.background = panel.gradient;
  const ends = element("div", { className: "ends" });
  ends.append(...panel.ticks.map((tick) => element("span", { textContent: tick })));
  whole.append(element("figcaption", { textContent: panel.title }), canvas, scale, ends);
  const sheet = element("img", { src: panel.sheet });
  const context = canvas.getContext("2d");
  const draw = (step) => {
    const left = (step % data.across) * data.width;
    const top = Math.floor(step / data.across) * data.height;
    context.drawImage(sheet, left, top, data.width, data.height, 0, 0, data.width, data.height);
  };
  return { figure: whole, sheet, draw };
}
