"use strict";
// The frames of a clip, one after another or any one of them; the pictures of the page, the marks and the charts follow.
(() => {
  const $ = (id) => document.getElementById(id);
  const { frames, images } = JSON.parse($("reel").content.textContent);
  const pictures = [...document.querySelectorAll(".gallery .shown")];
  const charts = [...document.querySelectorAll("svg[data-first]")];
  const slider = $("frame");
  const ahead = 8; // frames that are decoded before they are needed
  const pace = 1 / 25; // seconds for a frame where the clip has no times
  const last = frames.length - 1;

  const time = (i) => frames[i].time ?? i * pace;
  const length = last ? ((time(last) - time(0)) * (last + 1)) / last : pace;
  const clamp = (i) => Math.min(Math.max(i, 0), last);

  const decoded = new Map();
  const decode = (key) => {
    if (!decoded.has(key)) {
      const image = new Image();
      image.src = images[key];
      decoded.set(key, { image, ready: image.decode() });
    }
    return decoded.get(key).ready;
  };

  let wanted = Number(slider.value);
  const show = async (i) => {
    const frame = frames[(wanted = clamp(i))];
    slider.value = wanted;
    const when = frame.time === null ? "" : `, ${frame.time.toFixed(2)} s`;
    $("now").textContent = `Frame ${frame.number}${when}: ${frame.caption}`;
    slider.setAttribute("aria-valuetext", $("now").textContent);
    $("back").disabled = wanted === 0;
    $("on").disabled = wanted === last;
    await Promise.all(Object.values(frame.pictures).map(decode));
    // While these were decoded another frame may have been asked for.
    if (frame !== frames[wanted]) return;
    for (const picture of pictures) picture.src = images[frame.pictures[picture.dataset.name]];
    for (const side of ["left", "right"]) $(side).dispatchEvent(new Event("change"));
    $("marks").style.maskImage = `url(${images[frame.pictures.mask]})`;
    for (const chart of charts) {
      const { first, last: end, left, right } = chart.dataset;
      const x = Number(left) + ((right - left) * (frame.number - first)) / Math.max(end - first, 1);
      const line = chart.querySelector(".now");
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      line.removeAttribute("visibility");
    }
    for (let next = wanted + 1; next <= clamp(wanted + ahead); next++) Object.values(frames[next].pictures).map(decode);
  };

  let stop = null;
  const pause = () => {
    if (stop) stop();
    stop = null;
    $("play").textContent = "Play";
    $("now").setAttribute("aria-live", "polite");
  };
  const play = () => {
    let running = true;
    stop = () => { running = false; };
    $("play").textContent = "Pause";
    // A reader of the screen is not told every frame.
    $("now").setAttribute("aria-live", "off");
    let before = performance.now();
    let at = wanted === last ? 0 : time(wanted) - time(0);
    const tick = (now) => {
      if (!running) return;
      at = (at + ((now - before) / 1000) * Number($("speed").value)) % length;
      before = now;
      let i = last;
      while (i > 0 && time(i) - time(0) > at) i--;
      if (i !== wanted) show(i);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  };
  const step = (by) => {
    pause();
    show(wanted + by);
  };

  $("play").addEventListener("click", () => (stop ? pause() : play()));
  $("back").addEventListener("click", () => step(-1));
  $("on").addEventListener("click", () => step(1));
  slider.addEventListener("input", () => step(Number(slider.value) - wanted));
  const keys = { ",": () => step(-1), ".": () => step(1) };
  document.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  for (const chart of charts) {
    chart.addEventListener("click", (event) => {
      const { first, last: end, left, right } = chart.dataset;
      const box = chart.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
      const number = Math.round(Number(first) + ((x - left) / (right - left)) * (end - first));
      step(clamp(number - frames[0].number) - wanted);
    });
  }
  pause();
  show(wanted);
})();
