"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const [text, before, earlier, results, exportsBox, status, trouble] =
    ["text", "before", "earlier", "results", "exports", "status", "trouble"].map($);
  const PAUSE = 500; // milliseconds without a key before the text is looked at
  const token = new URLSearchParams(location.hash.slice(1)).get("token") || sessionStorage.getItem("token");
  if (token) sessionStorage.setItem("token", token);
  let timer = null, running = null, shown = null, comparing = false;

  function say(words) { status.textContent = words; }
  function complain(words) { trouble.textContent = words; trouble.hidden = !words; }

  async function post(path, body, signal) {
    const headers = { "Content-Type": "application/json" };
    if (token) headers.Authorization = `Bearer ${token}`;
    let answer;
    try {
      answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("The server does not answer. Your text is still here: start the server again, then press the button.");
    }
    if (!answer.ok) {
      let detail = `The server answers with ${answer.status}.`;
      try { detail = (await answer.json()).detail || detail; } catch { /* no description */ }
      if (answer.status === 429) detail = "The server is busy: try again in a moment.";
      throw new Error(detail);
    }
    return answer;
  }

  function fragmentOf(html) {
    const holder = document.createElement("template");
    holder.innerHTML = html;
    return holder.content;
  }

  async function look() {
    clearTimeout(timer);
    running?.abort();
    running = new AbortController();
    const mine = running;
    const wanted = { text: text.value, before: before.value, comparing };
    complain("");
    if (!wanted.text.trim() || (comparing && !wanted.before.trim())) {
      results.replaceChildren();
      exportsBox.hidden = true;
      shown = null;
      say(comparing ? "Paste both versions." : "Paste a text to begin.");
      return;
    }
    say("Reading …");
    results.classList.add("stale");
    const start = performance.now();
    try {
      const answer = comparing
        ? await post("/page/comparison", { before: wanted.before, after: wanted.text }, mine.signal)
        : await post("/page/explanation", { text: wanted.text, what_if: 0 }, mine.signal);
      const html = await answer.text();
      if (mine !== running) return;
      results.replaceChildren(fragmentOf(html));
      results.querySelectorAll(".explanation").forEach((one, place) => {
        if (comparing) one.prepend(Object.assign(document.createElement("p"), { className: "version-name", textContent: place ? "Your text" : "Earlier version" }));
        one.dataset.text = comparing && place === 0 ? wanted.before : wanted.text;
        attachView(one);
      });
      shown = wanted;
      exportsBox.hidden = false;
      say(`Looked at in ${((performance.now() - start) / 1000).toFixed(2)} s.`);
    } catch (error) {
      if (error.name === "AbortError") return;
      say("");
      complain(error.message);
    } finally {
      if (mine === running) results.classList.remove("stale");
    }
  }

  // What removing or moving a sentence would change is asked for when somebody chooses the sentence.
  const asked = new WeakMap();
  results.addEventListener("sentence-chosen", async (event) => {
    const view = event.target, number = event.detail;
    const seen = asked.get(view) || asked.set(view, new Set()).get(view);
    if (seen.has(number)) return;
    seen.add(number);
    const place = () => view.querySelector(`.chosen-sentence[data-sentence="${number}"] .what-if`);
    if (place()) place().textContent = "Trying the text without it, and with it elsewhere …";
    try {
      const answer = await post("/page/explanation", { text: view.dataset.text, what_if: [number] });
      const item = fragmentOf(await answer.text()).querySelector(`.sentences > li[data-sentence="${number}"]`);
      if (!item.querySelector(".what-if").textContent.trim()) item.querySelector(".what-if").textContent = "The text is too long to try changes with.";
      view.refreshSentence(number, item);
    } catch (error) {
      seen.delete(number);
      if (place()) place().textContent = error.message;
    }
  });

  function download(content, type, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  exportsBox.addEventListener("click", async (event) => {
    const format = event.target.dataset?.format;
    if (!format || !shown) return;
    complain("");
    say("Writing …");
    try {
      const answer = await post(`/v1/explain?format=${format}`, { text: shown.text, what_if: 12 });
      download(await answer.text(), answer.headers.get("Content-Type"), `coherence.${format}`);
      say("Saved.");
    } catch (error) { say(""); complain(error.message); }
  });

  async function take(files) {
    const found = await Promise.all([...files].map(async (file) => ({ name: file.name, text: await file.text() })));
    if (!found.length) return;
    if (found.length === 1) { put(found[0].text); return; }
    const rows = $("file-rows");
    $("several").hidden = false;
    rows.replaceChildren();
    say(`Reading ${found.length} files …`);
    complain("");
    let done = 0;
    for (const one of found) {
      const row = rows.insertRow();
      const button = Object.assign(document.createElement("button"), { type: "button", className: "as-link", textContent: one.name });
      button.addEventListener("click", () => put(one.text));
      row.insertCell().append(button);
      const cells = [row.insertCell(), row.insertCell(), row.insertCell()];
      try {
        const verdict = (await (await post("/v1/assess", { text: one.text })).json()).results[0];
        [verdict.level ?? "none", verdict.sureness ?? "", verdict.notices.join(" ")].forEach((words, i) => { cells[i].textContent = words; });
        done += 1;
      } catch (error) { cells[2].textContent = error.message; }
    }
    say(`${done} of ${found.length} files read.`);
  }
  function put(value) { text.value = value; look(); text.focus(); }

  [text, before].forEach((area) => {
    area.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, PAUSE); });
    area.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) look(); });
  });
  $("look").addEventListener("click", look);
  $("example").addEventListener("click", (event) => put(event.target.dataset.text));
  $("open").addEventListener("click", () => $("files").click());
  $("files").addEventListener("change", (event) => { take(event.target.files); event.target.value = ""; });
  $("compare").addEventListener("click", (event) => {
    comparing = !comparing;
    event.target.setAttribute("aria-pressed", comparing);
    earlier.hidden = !comparing;
    if (comparing && !before.value) before.value = text.value;
    look();
  });
  let depth = 0;
  addEventListener("dragenter", (event) => { if (event.dataTransfer?.types.includes("Files")) { depth += 1; document.body.classList.add("dropping"); } });
  addEventListener("dragleave", () => { depth = Math.max(0, depth - 1); if (!depth) document.body.classList.remove("dropping"); });
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    depth = 0;
    document.body.classList.remove("dropping");
    take(event.dataTransfer.files);
  });
})();
