"use strict";
// Two pictures with a divider between them, and one zoom for all pictures of the page.
(() => {
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;
  const stage = $("stage");
  const slider = $("slider");
  const sources = [...document.querySelectorAll(".gallery .shown")];
  const named = new Map(sources.map((image) => [image.dataset.name, image]));
  const pixels = Number(sources[0].dataset.width);
  const largest = 32; // page pixels for one of a picture
  const still = 4; // a pointer that moves less than this has clicked

  // The view: how many times larger than fitting, and the point of the picture in its middle, as shares of width and height.
  let zoom = 1;
  let middle = { x: 0.5, y: 0.5 };

  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const fitted = () => stage.clientWidth / pixels;
  const limit = () => Math.max(8, largest / fitted());

  const show = () => {
    const inside = (share) => clamp(share, 0.5 / zoom, 1 - 0.5 / zoom);
    middle = { x: inside(middle.x), y: inside(middle.y) };
    root.style.setProperty("--zoom", zoom);
    root.style.setProperty("--x", `${(0.5 - middle.x * zoom) * 100}%`);
    root.style.setProperty("--y", `${(0.5 - middle.y * zoom) * 100}%`);
    root.toggleAttribute("data-zoomed", zoom > 1);
    for (const view of document.querySelectorAll(".view")) view.classList.toggle("pixelated", (view.clientWidth * zoom) / pixels >= 2);
    $("magnification").textContent = `${Math.round(fitted() * zoom * 100)} %`;
    $("out").disabled = $("fit").disabled = zoom <= 1;
    $("in").disabled = zoom >= limit();
    $("actual").disabled = fitted() >= 1;
  };

  // Zoom by keeping the point at `at` (shares of the view) where it is.
  const zoomTo = (wanted, at = { x: 0.5, y: 0.5 }) => {
    const next = clamp(wanted, 1, limit());
    const kept = (axis) => middle[axis] + (at[axis] - 0.5) / zoom - (at[axis] - 0.5) / next;
    middle = { x: kept("x"), y: kept("y") };
    zoom = next;
    show();
  };
  const move = (x, y) => {
    middle = { x: middle.x + x / zoom, y: middle.y + y / zoom };
    show();
  };
  const split = (share) => {
    slider.value = clamp(share, 0, 1) * 100;
    root.style.setProperty("--split", `${slider.value}%`);
  };
  const place = (view, event) => {
    const box = view.getBoundingClientRect();
    return { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
  };

  const listen = (view) => {
    const pointers = new Map();
    let dragged = false;
    let held = false; // the divider
    let divides = false;
    const spread = () => {
      const [a, b] = [...pointers.values()];
      return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, size: Math.hypot((a.x - b.x) * view.clientWidth, (a.y - b.y) * view.clientHeight) };
    };
    view.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      view.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, place(view, event));
      if (pointers.size === 1) {
        dragged = false;
        held = event.target === $("divider");
        divides = held || (view === stage && zoom === 1);
      } else dragged = true;
    });
    view.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) return;
      const now = place(view, event);
      if (pointers.size === 2) {
        const from = spread();
        pointers.set(event.pointerId, now);
        const to = spread();
        zoomTo(zoom * (to.size / Math.max(from.size, 1)), to);
        move(from.x - to.x, from.y - to.y);
        return;
      }
      const far = Math.hypot((now.x - before.x) * view.clientWidth, (now.y - before.y) * view.clientHeight);
      if (!dragged && far < still) return;
      dragged = true;
      pointers.set(event.pointerId, now);
      if (divides) split(now.x);
      else move(before.x - now.x, before.y - now.y);
    });
    const end = (event) => {
      const known = pointers.delete(event.pointerId);
      if (!known || dragged || held || event.type !== "pointerup") return;
      zoomTo(zoom > 1 ? 1 : Math.max(1 / fitted(), 3), place(view, event));
    };
    view.addEventListener("pointerup", end);
    view.addEventListener("pointercancel", end);
    // Without Ctrl the wheel scrolls the page, until the reader has zoomed in.
    view.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && zoom === 1) return;
        event.preventDefault();
        zoomTo(zoom * Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), place(view, event));
      },
      { passive: false },
    );
    view.addEventListener("dragstart", (event) => event.preventDefault());
  };

  const keys = {
    "+": () => zoomTo(zoom * 1.5),
    "=": () => zoomTo(zoom * 1.5),
    "-": () => zoomTo(zoom / 1.5),
    0: () => zoomTo(1),
    ArrowLeft: () => move(-0.1, 0),
    ArrowRight: () => move(0.1, 0),
    ArrowUp: () => move(0, -0.1),
    ArrowDown: () => move(0, 0.1),
  };
  stage.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });

  for (const [side, chosen] of [["left", "incomplete"], ["right", "completed"]]) {
    const select = $(side);
    for (const image of sources) select.add(new Option(image.dataset.title, image.dataset.name));
    const choose = () => {
      const picture = $(`${side}-picture`);
      picture.src = named.get(select.value).src;
      picture.alt = named.get(select.value).dataset.title;
      picture.parentElement.classList.toggle("dark", select.value === "mask");
    };
    select.value = chosen;
    select.addEventListener("change", choose);
    choose();
  }
  for (const picture of [$("left-picture"), $("right-picture")]) {
    picture.width = sources[0].getAttribute("width");
    picture.height = sources[0].getAttribute("height");
  }
  $("marks").style.maskImage = `url(${named.get("mask").src})`;
  $("overlay").addEventListener("change", (event) => { $("marks").hidden = !event.target.checked; });
  slider.addEventListener("input", () => split(slider.value / 100));
  $("in").addEventListener("click", () => zoomTo(zoom * 1.5));
  $("out").addEventListener("click", () => zoomTo(zoom / 1.5));
  $("fit").addEventListener("click", () => zoomTo(1));
  $("actual").addEventListener("click", () => zoomTo(1 / fitted()));

  $("compare").hidden = false;
  stage.style.maxWidth = slider.style.maxWidth = `${sources[0].getAttribute("width")}px`;
  for (const view of document.querySelectorAll(".view")) listen(view);
  new ResizeObserver(show).observe(stage);
  split(slider.value / 100);
  show();
})();
