"use strict";
// Joins the picture, the text and the list of sentences of one explanation: what is pointed at in one is shown in all.
function attachView(root) {
  const picture = root.querySelector(".cg-arcs");
  const panel = root.querySelector(".chosen-sentence");
  if (!picture || !panel) return;
  const dots = new Map([...picture.querySelectorAll(".sentence")].map((dot) => [dot.dataset.sentence, dot]));
  const spans = new Map([...root.querySelectorAll(".text .s")].map((span) => [span.dataset.sentence, span]));
  const items = new Map([...root.querySelectorAll(".sentences > li")].map((item) => [item.dataset.sentence, item]));
  const links = [...picture.querySelectorAll(".link")];
  const numbers = [...dots.keys()];
  let held = null;
  // One stop for the tab key, whatever the number of sentences: arrow keys do the rest.
  dots.forEach((dot) => dot.setAttribute("tabindex", "-1"));
  if (numbers.length) dots.get(numbers[0]).setAttribute("tabindex", "0");

  function show(number) {
    dots.forEach((dot, key) => dot.classList.toggle("on", key === number));
    spans.forEach((span, key) => { span.classList.toggle("on", key === number); span.classList.remove("linked-with"); });
    picture.classList.toggle("chosen", number !== null);
    links.forEach((link) => {
      const { source, target } = link.dataset;
      const on = source === number || target === number;
      link.classList.toggle("on", on);
      if (on) spans.get(source === number ? target : source)?.classList.add("linked-with");
    });
    if (number === null) { panel.replaceChildren(); return; }
    panel.replaceChildren(...[...items.get(number).childNodes].map((node) => node.cloneNode(true)));
    panel.dataset.sentence = number;
  }
  function hold(number) {
    held = number;
    show(number);
    if (number !== null) root.dispatchEvent(new CustomEvent("sentence-chosen", { detail: Number(number), bubbles: true }));
  }
  [dots, spans].forEach((group) => group.forEach((element, number) => {
    element.addEventListener("mouseenter", () => show(number));
    element.addEventListener("mouseleave", () => show(held));
    element.addEventListener("click", () => hold(held === number ? null : number));
  }));
  dots.forEach((dot, number) => dot.addEventListener("focus", () => hold(number)));
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = numbers.indexOf(document.activeElement?.dataset?.sentence);
    let next = null;
    if (event.key === "Escape") { hold(null); return; }
    if (event.key === "Home") next = 0;
    else if (event.key === "End") next = numbers.length - 1;
    else if (step && at >= 0) next = Math.min(Math.max(at + step, 0), numbers.length - 1);
    if (next === null) return;
    event.preventDefault();
    dots.forEach((dot) => dot.setAttribute("tabindex", "-1"));
    dots.get(numbers[next]).setAttribute("tabindex", "0");
    dots.get(numbers[next]).focus();
  });
  root.refreshSentence = (number, item) => {
    items.get(String(number))?.replaceChildren(...item.childNodes);
    if (panel.dataset.sentence === String(number) && panel.hasChildNodes()) show(String(number));
  };
}
