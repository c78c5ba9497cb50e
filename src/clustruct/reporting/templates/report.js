"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  const turn = (header, headers) => {
    const up = header.getAttribute("aria-sort") !== "ascending";
    headers.forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    return up ? 1 : -1;
  };

  // Groups: rows are there, and are put in another order.
  const groups = byId("group-table");
  const heads = [...groups.tHead.rows[0].cells];
  heads.forEach((header, column) => {
    const button = header.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const sign = turn(header, heads);
      const value = (row) => Number(row.cells[column].dataset.value);
      const rows = [...groups.tBodies[0].rows];
      rows.sort((a, b) => sign * (value(a) - value(b)));
      groups.tBodies[0].append(...rows);
    });
  });

  // Members: rows are data, and are drawn a page at a time. Texts are set as text, never as markup.
  const source = byId("member-data");
  if (source) {
    const PER_PAGE = 15;
    const data = JSON.parse(source.textContent);
    const table = byId("member-table");
    const state = { page: 0, group: null, rows: data.rows };
    const shown = (value) => {
      if (value === null) return "";
      return typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 5 }) : value;
    };
    const cell = (name, text, numeric) => {
      const element = document.createElement(name);
      element.textContent = text;
      if (numeric) element.className = "num";
      return element;
    };
    const head = table.createTHead().insertRow();
    const body = table.createTBody();
    data.columns.forEach((name, column) => {
      const header = document.createElement("th");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      header.append(button);
      if (data.numeric[column]) header.className = "num";
      head.append(header);
      button.addEventListener("click", () => {
        const sign = turn(header, [...head.cells]);
        data.rows.sort((a, b) => sign * compare(a[column], b[column]));
        filter();
      });
    });
    const draw = () => {
      const pages = Math.max(1, Math.ceil(state.rows.length / PER_PAGE));
      state.page = Math.min(state.page, pages - 1);
      const first = state.page * PER_PAGE;
      body.replaceChildren(...state.rows.slice(first, first + PER_PAGE).map((row) => {
        const line = document.createElement("tr");
        line.append(...row.map((value, column) => cell("td", shown(value), data.numeric[column])));
        return line;
      }));
      byId("found").textContent = `${state.rows.length.toLocaleString("en")} found`;
      byId("page").textContent = `page ${state.page + 1} of ${pages}`;
      byId("previous").disabled = state.page === 0;
      byId("next").disabled = state.page === pages - 1;
      byId("all").hidden = state.group === null;
    };
    const filter = () => {
      const wanted = byId("search").value.trim().toLowerCase();
      state.rows = data.rows.filter((row) =>
        (state.group === null || String(row[data.group]) === state.group) &&
        (!wanted || row.some((value) => String(value).toLowerCase().includes(wanted))));
      state.page = 0;
      draw();
    };
    byId("search").addEventListener("input", filter);
    byId("previous").addEventListener("click", () => { state.page -= 1; draw(); });
    byId("next").addEventListener("click", () => { state.page += 1; draw(); });
    byId("all").addEventListener("click", () => { state.group = null; filter(); });
    document.querySelectorAll("button.more").forEach((button) => button.addEventListener("click", () => {
      state.group = button.dataset.group;
      byId("search").value = "";
      filter();
      byId("members").scrollIntoView();
    }));
    filter();
  }

  const copy = byId("copy");
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    const code = byId("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      // Without leave to write to the clipboard, the lines are selected for the reader to copy.
      getSelection().selectAllChildren(code);
    }
    copy.textContent = "copied";
    copy.dataset.copied = code.textContent;
    setTimeout(() => { copy.textContent = "copy"; }, 1500);
  });

  // A link to what is folded away unfolds it.
  const unfold = () => { if (location.hash === "#details") byId("details").open = true; };
  addEventListener("hashchange", unfold);
  unfold();

  const theme = byId("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
})();
