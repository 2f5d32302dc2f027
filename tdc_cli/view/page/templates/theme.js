"use strict";
// Light, dark, or as the system says; the choice is kept where the browser allows it.
(() => {
  const button = document.getElementById("theme");
  const choices = ["as the system", "light", "dark"];
  const store = (choice) => {
    try {
      if (choice === undefined) return localStorage.getItem("tdc-theme");
      localStorage.setItem("tdc-theme", choice);
    } catch {
      // A page opened from a file may have no storage: the choice then lasts as long as the page.
    }
    return null;
  };
  const show = (choice) => {
    document.documentElement.dataset.theme = choice;
    button.textContent = `Theme: ${choice}`;
  };
  const kept = store();
  show(choices.includes(kept) ? kept : choices[0]);
  button.hidden = false;
  button.addEventListener("click", () => {
    const next = choices[(choices.indexOf(document.documentElement.dataset.theme) + 1) % choices.length];
    show(next);
    store(next);
  });
})();
