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
  let held = null, walking = false, pressed;
  // One stop for the tab key, whatever the number of sentences: arrow keys do the rest.
  function stopAt(number) { dots.forEach((dot, key) => dot.setAttribute("tabindex", key === number ? "0" : "-1")); }
  if (numbers.length) stopAt(numbers[0]);

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
    if (number === null) { panel.replaceChildren(); delete panel.dataset.sentence; return; }
    panel.replaceChildren(...[...items.get(number).childNodes].map((node) => node.cloneNode(true)));
    panel.dataset.sentence = number;
  }
  // A long picture and a long text scroll in their boxes: what is chosen in one comes into sight in the other.
  function reveal(element) {
    const box = element.closest(".picture, .text");
    const inner = element.getBoundingClientRect(), outer = box.getBoundingClientRect();
    if (inner.left < outer.left || inner.right > outer.right) box.scrollLeft += (inner.left + inner.right - outer.left - outer.right) / 2;
    if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += (inner.top + inner.bottom - outer.top - outer.bottom) / 2;
  }
  function hold(number, from) {
    held = number;
    show(number);
    if (number !== null) {
      reveal((from === dots ? spans : dots).get(number));
      panel.scrollIntoView({ block: "nearest" });
    }
    root.dispatchEvent(new CustomEvent("sentence-chosen", { detail: number && Number(number), bubbles: true }));
  }
  [dots, spans].forEach((group) => group.forEach((element, number) => {
    // Where arrow keys scroll the picture, sentences pass under a mouse that rests: that is no pointing.
    element.addEventListener("mouseenter", () => { if (!walking) show(number); });
    element.addEventListener("mousemove", (event) => {
      if (walking && (event.movementX || event.movementY)) { walking = false; show(number); }
    });
    element.addEventListener("mouseleave", () => show(held));
    // To press a dot focuses it, which chooses it: whether the click is the second one must be known from before.
    element.addEventListener("pointerdown", () => { pressed = held; });
    element.addEventListener("click", () => {
      const before = pressed === undefined ? held : pressed;
      pressed = undefined;
      hold(before === number ? null : number, group);
    });
  }));
  dots.forEach((dot, number) => dot.addEventListener("focus", () => { stopAt(number); hold(number, dots); }));
  root.addEventListener("keydown", (event) => { if (event.key === "Escape") hold(null); });
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = numbers.indexOf(document.activeElement?.dataset?.sentence);
    let next = null;
    if (event.key === "Home") next = 0;
    else if (event.key === "End") next = numbers.length - 1;
    else if (step && at >= 0) next = Math.min(Math.max(at + step, 0), numbers.length - 1);
    if (next === null) return;
    event.preventDefault();
    walking = true;
    dots.get(numbers[next]).focus();
  });
  root.refreshSentence = (number, item) => {
    items.get(String(number))?.replaceChildren(...item.childNodes);
    if (panel.dataset.sentence === String(number) && panel.hasChildNodes()) show(String(number));
  };
}
