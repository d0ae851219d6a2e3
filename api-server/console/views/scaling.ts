import { changeForm, outcome } from "../lib/actions.ts";
import { projectPath } from "../lib/api.ts";
import { type Child, h, replace } from "../lib/dom.ts";
import { card, facts } from "../lib/parts.ts";
import { type ScalingForm, saveScaling, scalingForm } from "../lib/scaling.ts";
import type { Project } from "../lib/shapes.ts";
import type { ProjectContext } from "../lib/view.ts";

/** How many instances a project has, by what they are scaled, and a form that changes both. */
export function scaling(context: ProjectContext): HTMLElement {
  const about = h("div", {});
  const form = h("div", {});
  const to = outcome();
  /** What the form was made from. */
  let made: string | undefined;
  const show = (project: Project) => {
    replace(about, describe(project));
    const now = JSON.stringify(scalingForm(project));
    // While it is closed: what is being typed is not replaced by a refresh.
    if (form.querySelector("details")?.open !== true && made !== now) {
      made = now;
      form.replaceChildren(change(project));
    }
  };
  const { api, route, signal } = context;
  const requests = {
    load: async () => (await api.get<Project>(projectPath(route.project), {}, signal)).data,
    send: async (body: object) => {
      await api.change("PATCH", projectPath(route.project, "autoscaling"), body, signal);
    },
  };
  const change = (project: Project) => {
    const { elements, read } = fields(project);
    const run = async () => {
      const saved = await saveScaling(scalingForm(project), read(), requests);
      if (saved.isSaved) {
        form.replaceChildren();
        made = undefined;
      }
      if (saved.project) {
        show(saved.project);
      }
      return saved.said;
    };
    const summary = h("summary", { "data-key": "change scaling" }, "Change the instances");
    return h("details", {}, summary, changeForm("Save", { run, outcome: to, signal }, ...elements));
  };
  show(context.project);
  context.onChange(show);
  return h("div", { class: "stack" }, about, to.element, form);
}

function describe({ instances, autoscaling: of, request_scaling: requests }: Project): HTMLElement {
  const percent = (value: number | undefined) => (value === undefined ? undefined : `${value} %`);
  const scaled = of?.enabled === true ? of : undefined;
  const target = scaled?.requests_per_second_target;
  return card(
    "Instances",
    facts([
      ["At the least", String(instances)],
      ["At the most", scaled && String(scaled.max_instances)],
      ["CPU to hold", percent(scaled?.cpu_target_percentage)],
      ["Memory to hold", percent(scaled?.memory_target_percentage)],
      ["Requests to hold", target === undefined ? undefined : `${target} a second for each`],
      [
        "Needed for requests",
        scaled && requests && `${requests.instances}, at ${requests.requests_per_second} a second`,
      ],
    ]),
  );
}

function fields(project: Project): { elements: Child[]; read: () => ScalingForm } {
  const made = scalingForm(project);
  const number = (max: number, value: string, attributes: { required?: true; placeholder?: string } = {}) =>
    h("input", { type: "number", min: 1, max, value, autocomplete: "off", ...attributes });
  const least = number(100, made.least, { required: true });
  const most = number(100, made.most, { required: true });
  const cpu = number(100, made.cpu, { placeholder: "None" });
  const memory = number(100, made.memory, { placeholder: "None" });
  const requests = number(10_000, made.requests, { placeholder: "None" });
  const isScaled = h("input", { type: "checkbox", checked: made.isScaled });
  const enable = () => {
    for (const input of [most, cpu, memory, requests]) {
      input.disabled = !isScaled.checked;
    }
  };
  isScaled.addEventListener("change", enable);
  enable();
  const field = (name: string, input: HTMLElement) =>
    h("label", { class: "field" }, h("span", {}, name), input);
  return {
    elements: [
      field("Instances at the least", least),
      h("label", { class: "check" }, isScaled, "More by their load"),
      field("Instances at the most", most),
      field("CPU to hold, percent", cpu),
      field("Memory to hold, percent", memory),
      // Only what passes the ingress is counted.
      project.type_project === "http" ? field("Requests a second for each instance", requests) : undefined,
    ],
    read: () => ({
      least: least.value,
      isScaled: isScaled.checked,
      most: most.value,
      cpu: cpu.value,
      memory: memory.value,
      requests: requests.value,
    }),
  };
}
