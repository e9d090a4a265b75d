"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const [text, before, earlier, results, exportsBox, status, trouble] =
    ["text", "before", "earlier", "results", "exports", "status", "trouble"].map($);
  const PAUSE = 500; // milliseconds without a key before the text is looked at
  // Milliseconds on a sentence before its changes are tried, and more for each sentence of the text, as it costs more.
  const STAY = 200, STAY_EACH = 5;
  let timer = null, running = null, staying = null, trying = null, shown = null, comparing = false;

  // What is said is for people; what is set next to it, as data-state and data-code, is for programs and stays the same.
  function say(words, state = "") { status.textContent = words; status.dataset.state = state; }
  function complain(words, code = "") { trouble.textContent = words; trouble.hidden = !words; trouble.dataset.code = code; }
  function wrong(words, code) { return Object.assign(new Error(words), { code }); }

  function tokenGiven() {
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (given) sessionStorage.setItem("token", given);
    return sessionStorage.getItem("token");
  }

  async function post(path, body, signal) {
    const headers = { "Content-Type": "application/json" };
    const token = tokenGiven();
    if (token) headers.Authorization = `Bearer ${token}`;
    let answer;
    try {
      answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw wrong("The server does not answer. Your text is still here: start the server again, then press the button.", "no-answer");
    }
    if (!answer.ok) {
      let detail = `The server answers with ${answer.status}.`, code = `status-${answer.status}`;
      try {
        const problem = await answer.json();
        [detail, code] = [problem.detail || detail, problem.code || code];
      } catch { /* no description */ }
      if (answer.status === 401) detail = "This server asks for a token: put #token= and the token behind the address of this page.";
      if (answer.status === 413) detail = "The text is too long for this server: try a part of it.";
      if (answer.status === 429) detail = "The server is busy: try again in a moment.";
      throw wrong(detail, code);
    }
    return answer;
  }

  function fragmentOf(html) {
    const holder = document.createElement("template");
    holder.innerHTML = html;
    return holder.content;
  }

  function tryNoMore() { clearTimeout(staying); trying?.abort(); }

  async function look() {
    clearTimeout(timer);
    tryNoMore();
    running?.abort();
    running = new AbortController();
    const mine = running;
    const wanted = { text: text.value, before: before.value, comparing };
    complain("");
    if (!wanted.text.trim() || (comparing && !wanted.before.trim())) {
      results.replaceChildren();
      results.classList.remove("stale");
      exportsBox.hidden = true;
      shown = null;
      say(comparing ? "Paste both versions." : "Paste a text to begin.", "empty");
      return;
    }
    say("Reading …", "reading");
    results.classList.add("stale");
    const start = performance.now();
    try {
      const answer = wanted.comparing
        ? await post("/page/comparison", { before: wanted.before, after: wanted.text }, mine.signal)
        : await post("/page/explanation", { text: wanted.text, what_if: 0 }, mine.signal);
      const html = await answer.text();
      if (mine !== running) return;
      results.replaceChildren(fragmentOf(html));
      results.querySelectorAll(".explanation").forEach((one, place) => {
        one.dataset.text = wanted.comparing && place === 0 ? wanted.before : wanted.text;
        attachView(one);
      });
      results.classList.remove("stale");
      shown = wanted;
      exportsBox.hidden = false;
      say(`Looked at in ${((performance.now() - start) / 1000).toFixed(2)} s.`, "done");
    } catch (error) {
      if (error.name === "AbortError") return;
      say("");
      complain(error.message, error.code); // and what is shown stays pale: it is not about this text
    }
  }

  // What removing or moving a sentence would change is asked for when somebody stays on the sentence: who goes through
  // the picture with the arrow keys passes many.
  const asked = new WeakMap();
  results.addEventListener("sentence-chosen", (event) => {
    tryNoMore();
    if (event.detail === null) return;
    const wait = STAY + STAY_EACH * event.target.querySelectorAll(".sentences > li").length;
    staying = setTimeout(tryChanges, wait, event.target, event.detail);
  });
  async function tryChanges(view, number) {
    const seen = asked.get(view) || asked.set(view, new Set()).get(view);
    if (seen.has(number)) return;
    const mine = trying = new AbortController();
    function tell(words, code = "") {
      const place = view.querySelector(`.chosen-sentence[data-sentence="${number}"] .what-if`);
      if (place) { place.textContent = words; place.dataset.code = code; }
    }
    tell("Trying the text without it, and with it elsewhere …");
    try {
      const answer = await post("/page/explanation", { text: view.dataset.text, what_if: [number] }, mine.signal);
      const item = fragmentOf(await answer.text()).querySelector(`.sentences > li[data-sentence="${number}"]`);
      if (!item.querySelector(".what-if").textContent.trim()) item.querySelector(".what-if").textContent = "The text is too long to try changes with.";
      view.refreshSentence(number, item);
      seen.add(number);
    } catch (error) {
      if (error.name === "AbortError") tell("");
      else tell(error.message, error.code);
    }
  }

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
    const both = shown.comparing && format !== "svg";
    say(both || format === "svg" ? "Writing …" : "Writing, and trying what removing or moving the loosest sentences would change: a few seconds, more for a long text …", "writing");
    const buttons = exportsBox.querySelectorAll("button");
    buttons.forEach((button) => { button.disabled = true; });
    try {
      const answer = both
        ? await post(`/v1/compare?format=${format}`, { before: shown.before, after: shown.text })
        : await post(`/v1/explain?format=${format}`, { text: shown.text, what_if: 12 });
      download(await answer.text(), answer.headers.get("Content-Type"), `coherence.${format}`);
      say("Saved.", "saved");
    } catch (error) { say(""); complain(error.message, error.code); }
    buttons.forEach((button) => { button.disabled = false; });
  });

  async function read(file) {
    try {
      return { name: file.name, text: new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()) };
    } catch (error) {
      const [why, code] = error instanceof TypeError
        ? ["is not plain text: save it as plain text (UTF-8)", "not-text"] : ["cannot be read", "cannot-read"];
      return { name: file.name, wrong: `${file.name} ${why}.`, code };
    }
  }
  let taken = 0, listed = [];
  // A spreadsheet would take a cell that begins with one of these for a formula.
  function cell(value) { return `"${String(value).replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`; }
  $("save-files").addEventListener("click", () => {
    const names = [...new Set(listed.flatMap(Object.keys))];
    const lines = [names, ...listed.map((entry) => names.map((name) => entry[name] ?? ""))];
    download(`\ufeff${lines.map((line) => line.map(cell).join(",")).join("\r\n")}\r\n`, "text/csv", "coherence.csv");
  });
  async function take(files) {
    const found = await Promise.all([...files].map(read));
    if (!found.length) return;
    taken += 1;
    const mine = taken;
    complain("");
    if (found.length === 1) {
      if (found[0].wrong) complain(found[0].wrong, found[0].code);
      else put(found[0].text);
      return;
    }
    const rows = $("file-rows");
    $("several").hidden = false;
    rows.replaceChildren();
    delete rows.dataset.read;
    say(`Reading ${found.length} files …`, "reading-files");
    let done = 0;
    listed = [];
    for (const one of found) {
      if (mine !== taken) return; // others were dropped meanwhile
      const row = rows.insertRow();
      row.dataset.code = one.code || "";
      const button = Object.assign(document.createElement("button"), { type: "button", className: "as-link", textContent: one.name });
      button.addEventListener("click", () => {
        [...rows.rows].forEach((other) => { other.classList.toggle("open", other === row); other.ariaCurrent = other === row ? "true" : null; });
        put(one.text);
      });
      row.insertCell().append(one.wrong ? one.name : button);
      const entry = { file: one.name, level: "", score: "", sure: "", "mind this": one.wrong || "" };
      const cells = Object.fromEntries(Object.keys(entry).slice(1).map((name) => [name, row.insertCell()]));
      Object.entries(cells).forEach(([name, cell]) => { cell.dataset.column = name; });
      listed.push(entry);
      if (!one.wrong) {
        try {
          const verdict = (await (await post("/v1/assess", { text: one.text })).json()).results[0];
          Object.assign(entry, {
            level: verdict.level ?? "none", score: verdict.score?.toFixed(1) ?? "", sure: verdict.sureness ?? "",
            "mind this": verdict.notices.join(" "),
          });
          Object.entries(verdict.probabilities).forEach(([level, probability]) => { entry[`probability of ${level}`] = probability.toFixed(4); });
          done += 1;
        } catch (error) { entry["mind this"] = error.message; row.dataset.code = error.code; }
      }
      Object.entries(cells).forEach(([name, cell]) => { cell.textContent = entry[name]; });
    }
    if (mine !== taken) return;
    Object.assign(rows.dataset, { read: done, of: found.length });
    say(`${done} of ${found.length} files read.`, "files-read");
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
  // Words that are dragged about are none of our business: the browser puts them where they belong.
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  let depth = 0;
  addEventListener("dragenter", (event) => { if (holdsFiles(event)) { depth += 1; document.body.classList.add("dropping"); } });
  addEventListener("dragleave", () => { depth = Math.max(0, depth - 1); if (!depth) document.body.classList.remove("dropping"); });
  addEventListener("dragover", (event) => { if (holdsFiles(event)) event.preventDefault(); });
  addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    depth = 0;
    document.body.classList.remove("dropping");
    take(event.dataTransfer.files);
  });
})();
