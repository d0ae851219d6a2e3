import { h } from "./dom.ts";
import { visible } from "./log-text.ts";

export interface LogLine {
  text: string;
  /** Its prefix: a step, a time. */
  label?: string;
  isError?: boolean;
}

/** Lines that are kept in the page; the oldest go first. */
const MAX_LINES = 5_000;
/** Characters of a line that are shown. */
const LONGEST = 20_000;

/** A log that grows. It is scrolled to its end until the user scrolls back, and lines can be filtered by a text. */
export interface LogPane {
  element: HTMLElement;
  append: (lines: readonly LogLine[]) => void;
  /** Empties it. */
  clear: () => void;
  /** Shows the state of the log beside it: `Live`, `Ended`. */
  state: (text: string, kind?: "good" | "moving" | "bad" | "still") => void;
}

export function logPane(name: string): LogPane {
  const list = h("ol", { class: "lines" });
  const nothing = h("p", { class: "quiet" }, "No lines yet.");
  const box = h(
    "div",
    { class: "log", role: "log", "aria-label": name, tabindex: 0, "data-key": name },
    nothing,
    list,
  );
  const sign = h("span", { class: "badge still", role: "status" }, "Waiting");
  const filter = h("input", {
    type: "search",
    placeholder: "Only lines with…",
    "aria-label": "Only lines with this text",
    maxlength: 200,
    autocomplete: "off",
    spellcheck: "false",
  });
  const follow = h("input", { type: "checkbox", checked: true });
  const wrap = h("input", { type: "checkbox", checked: true });

  const matches = (item: Element) =>
    (item.textContent ?? "").toLowerCase().includes(filter.value.toLowerCase());
  const toEnd = () => {
    if (follow.checked) {
      box.scrollTop = box.scrollHeight;
    }
  };
  filter.addEventListener("input", () => {
    for (const item of list.children) {
      (item as HTMLElement).hidden = !matches(item);
    }
    toEnd();
  });
  follow.addEventListener("change", toEnd);
  wrap.addEventListener("change", () => list.classList.toggle("unwrapped", !wrap.checked));
  box.addEventListener("scroll", () => {
    follow.checked = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
  });

  const item = ({ text, label, isError }: LogLine) => {
    const line = h(
      "li",
      { class: isError ? "bad-line" : undefined },
      label === undefined ? undefined : h("span", { class: "line-label" }, visible(label)),
      // Long lines are cut: a browser lays out one of megabytes for seconds.
      visible(text.slice(0, LONGEST)),
    );
    line.hidden = filter.value !== "" && !matches(line);
    return line;
  };
  return {
    element: h(
      "div",
      { class: "log-pane" },
      h(
        "div",
        { class: "toolbar" },
        sign,
        filter,
        h("label", { class: "check" }, follow, "Follow"),
        h("label", { class: "check" }, wrap, "Wrap"),
      ),
      box,
    ),
    append: (lines) => {
      if (lines.length === 0) {
        return;
      }
      nothing.hidden = true;
      list.append(...lines.slice(-MAX_LINES).map(item));
      while (list.children.length > MAX_LINES) {
        list.firstElementChild?.remove();
      }
      toEnd();
    },
    clear: () => {
      list.replaceChildren();
      nothing.hidden = false;
    },
    state: (text, kind = "still") => {
      sign.className = `badge ${kind}`;
      if (sign.textContent !== text) {
        sign.textContent = text;
      }
    },
  };
}
