import { projectPath } from "../lib/api.ts";
import { h, replace } from "../lib/dom.ts";
import { words } from "../lib/format.ts";
import { badge, card, facts, fullMoment, moment, table, text } from "../lib/parts.ts";
import { link } from "../lib/route.ts";
import type { Deployment, PreDeployRun, Project } from "../lib/shapes.ts";
import { empty, type ProjectContext, refreshed } from "../lib/view.ts";
import { scaling } from "./scaling.ts";

const POLL_INTERVAL_MS = 10_000;

/** What a project is, and its deployments of this month. */
export function overview(context: ProjectContext): HTMLElement {
  const about = h("div", { class: "stack" });
  const show = (project: Project) => replace(about, ...describe(project, context.route.project));
  show(context.project);
  context.onChange(show);
  const isDeployed = ["http", "worker", "job"].includes(context.project.type_project);
  const isScaled = ["http", "worker"].includes(context.project.type_project);
  return h(
    "div",
    { class: "stack" },
    about,
    isScaled ? scaling(context) : undefined,
    isDeployed ? deployments(context) : undefined,
  );
}

/** What the project waits for. */
const notice = (title: string, message = ""): HTMLElement =>
  h(
    "div",
    { class: "card state", role: "status" },
    h("p", { class: "state-title" }, title),
    h("p", {}, text(message)),
  );

function describe(project: Project, id: string): (HTMLElement | undefined)[] {
  const { additional_info: info, storage, schedule, missed_runs: missed, build_failure: failure } = project;
  const {
    sleep_after_seconds: sleepAfter,
    sleeping_since: asleepSince,
    last_termination: ended,
    pre_deploy_command: command,
    references,
    variable_groups: groups,
  } = project;
  const logOf = (instance: string) => link(["project", id, "logs", "search"], { instance, range: "604800" });
  return [
    failure
      ? h(
          "div",
          { class: "card state failed", role: "alert" },
          h("p", { class: "state-title" }, "The last build failed"),
          h("p", {}, text(failure.error_message ?? failure.error_code ?? "")),
        )
      : undefined,
    references && !references.ready
      ? notice("References to other projects are not resolved", references.message)
      : undefined,
    groups?.message === undefined ? undefined : notice("Shared variables are not up to date", groups.message),
    card(
      "About",
      project.description ? h("p", { class: "description" }, text(project.description)) : undefined,
      facts([
        ["Id", h("code", {}, id)],
        ["Address", project.domain ? h("code", {}, project.domain) : undefined],
        ["Exposure", project.exposure],
        ["Custom domains", domains(project)],
        ["Image", project.image ? h("code", {}, text(project.image.url)) : undefined],
        [
          "Engine",
          project.database
            ? `${project.database.engine} ${project.database.running_version ?? project.database.version}`
            : undefined,
        ],
        ["Ready when", project.readiness ? h("code", {}, project.readiness.command.join(" ")) : undefined],
        ["Before each deployment", command ? h("code", {}, text(command.join(" "))) : undefined],
        ["Schedule (UTC)", schedule ? h("code", {}, schedule.cron) : undefined],
        ["Next run", schedule?.next_scheduled_at ? moment(schedule.next_scheduled_at) : undefined],
        ["Instances", schedule ? undefined : `${info.current_instances} of ${project.instances}`],
        ["Sleeps", sleepAfter === undefined ? undefined : `after ${sleepAfter} s without a request`],
        ["Asleep since", asleepSince ? fullMoment(asleepSince) : undefined],
        ["Each with", `${info.max_cpu} CPU, ${info.max_memory} memory`],
        ["Storage", storage.persistent ? `${storage.capacity} GB` : "not persistent"],
        ["Port", project.port === undefined ? undefined : String(project.port)],
        ["Paid", words(project.payment_mode)],
        ["Created", fullMoment(project.created_at)],
        ["Changed", fullMoment(project.updated_at)],
      ]),
    ),
    preDeploy(project.last_deployment?.pre_deploy),
    ended
      ? card(
          "Last instance that ended",
          facts([
            ["Instance", h("a", { href: logOf(ended.instance) }, h("code", {}, text(ended.instance)))],
            ["Reason", words(ended.reason)],
            ["Exit code", String(ended.exit_code)],
            ["Restarts", String(ended.restarts)],
            ["When", fullMoment(ended.finished_at)],
          ]),
          ended.last_lines ? h("pre", { class: "last-lines" }, text(ended.last_lines)) : undefined,
        )
      : undefined,
    missed && missed.total > 0
      ? card(
          "Missed runs",
          table(
            "Missed runs by reason",
            [
              { name: "Reason", cell: ({ reason }) => words(reason) },
              { name: "Count", cell: ({ count }) => String(count), isNumber: true },
              { name: "Last", cell: ({ last_scheduled_at }) => fullMoment(last_scheduled_at) },
            ],
            missed.reasons,
          ),
        )
      : undefined,
  ];
}

/** What has become of the newest deployment's pre-deploy command. */
function preDeploy(run: PreDeployRun | undefined): HTMLElement | undefined {
  return (
    run &&
    card(
      "Pre-deploy command of the last deployment",
      facts([
        ["Status", badge(run.status)],
        ["Exit code", run.exit_code === undefined ? undefined : String(run.exit_code)],
        ["Began", run.started_at ? fullMoment(run.started_at) : undefined],
        ["Ended", run.finished_at ? fullMoment(run.finished_at) : undefined],
      ]),
      run.last_lines ? h("pre", { class: "last-lines" }, text(run.last_lines)) : undefined,
    )
  );
}

function domains({
  custom_domains: names = [],
  custom_domain_setup: setup = [],
}: Project): HTMLElement | undefined {
  if (names.length === 0) {
    return undefined;
  }
  const rows = names.map((name) => {
    const status = setup.find(({ hostname }) => hostname === name)?.status;
    return h("li", {}, h("code", {}, text(name)), " ", status ? badge(status) : undefined);
  });
  return h("ul", { class: "plain" }, ...rows);
}

function deployments({ api, signal, route }: ProjectContext): HTMLElement {
  const place = h("div", {});
  refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: async () =>
        (await api.get<Deployment[]>(projectPath(route.project, "historic", "deployments"), {}, signal)).data,
      show: (all) =>
        all.length === 0
          ? empty("No deployments this month")
          : table("Deployments of this month", columns, all),
    },
    { signal },
  );
  return h("section", { class: "card flush" }, h("h2", {}, "Deployments this month"), place);
}

const columns = [
  { name: "When", cell: (one: Deployment) => fullMoment(one.created_at) },
  {
    name: "Status",
    cell: (one: Deployment) => [
      badge(one.status),
      one.message ? h("small", {}, text(one.message)) : undefined,
    ],
  },
  {
    name: "Image",
    cell: (one: Deployment) => (one.image ? h("code", { class: "long" }, text(one.image)) : "–"),
  },
  { name: "What", cell: (one: Deployment) => (one.updated_image ? "another image" : "settings") },
];
