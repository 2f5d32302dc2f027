"use strict";
// Columns are sorted by a click on their head: once upwards, once more downwards; what is not known comes last.
(() => {
  const table = document.getElementById("index");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const words = new Intl.Collator(undefined, { numeric: true });
  const sort = (head) => {
    const column = heads.indexOf(head);
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const numbers = head.dataset.sort === "number";
    const value = (row) => row.cells[column].dataset.value;
    const rows = [...body.rows].sort((a, b) => {
      const [one, other] = [value(a), value(b)];
      if (one === "" || other === "") return (one === "") - (other === "");
      return sign * (numbers ? Number(one) - Number(other) : words.compare(one, other));
    });
    body.append(...rows);
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  };
  for (const head of heads.filter((cell) => cell.dataset.sort)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort(head));
    head.replaceChildren(button);
  }
})();
