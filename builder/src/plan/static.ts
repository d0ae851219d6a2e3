import { execForm, startWords } from "./command.ts";
import type { Context, Planned } from "./context.ts";
import { APPLICATION_USER, buildStage, envLines, run, type Stage } from "./dockerfile.ts";
import { PlanError } from "./input.ts";
import { nodeBuildStages } from "./node.ts";
import { readPackageJson } from "./node-manager.ts";

/** Exit code of the step that finds no site: failures are classified by it. */
export const NO_SITE = 80;

/** Takes the folder that the build has made. */
const TAKE_SITE = [
  "for folder in dist build out public _site dist/*/browser dist/*",
  'do if [ -f "$folder/index.html" ]; then cp -R "$folder" /site && exit 0; fi; done',
  `echo "slipway: no folder with an index.html" >&2`,
  `exit ${NO_SITE}`,
].join("; ");

/** Files behind a web server: those of the repository, or what a build makes of them. */
export function planStatic(context: Context): Planned {
  const { tree, image, port, commands, detected } = context;
  const start = commands.start === undefined ? image.command : startWords(commands.start);
  const source = tree.has("package.json") ? builtSite(context) : plainSite(context);
  detected(
    source.from === "build" ? "The build makes the site." : "The files of the repository are the site.",
  );
  return {
    stages: [
      ...source.stages,
      {
        from: image.run,
        phase: "package",
        lines: [
          ...envLines({ HOME: "/tmp", PORT: String(port) }),
          ...source.copies.map((line) => `COPY ${line}`),
          `USER ${APPLICATION_USER}`,
          `EXPOSE ${port}`,
          ...(start === undefined ? [] : [`CMD ${execForm(start)}`]),
        ],
      },
    ],
    start: start ?? [],
  };
}

interface Source {
  from: "build" | "repository";
  stages: Stage[];
  copies: string[];
}

function builtSite(context: Context): Source {
  const pkg = readPackageJson(context.tree);
  if (context.commands.build === undefined && pkg.scripts?.build === undefined) {
    if (context.tree.has("index.html")) {
      return plainSite(context);
    }
    throw new PlanError("NODE_BUILD_SCRIPT_MISSING", { name: "build" });
  }
  return {
    from: "build",
    stages: [
      ...nodeBuildStages(context, pkg, context.otherImage("node").build),
      { from: "build", name: "site", phase: "package", lines: [run(TAKE_SITE)] },
    ],
    copies: [`--from=site --chown=${APPLICATION_USER} /site /srv`],
  };
}

function plainSite({ tree, commands, image, otherImage }: Context): Source {
  const own = [commands.preBuild, commands.build].filter((command) => command !== undefined);
  if (own.length > 0) {
    // Generators of sites that are in the repository; their language is unknown.
    const base = tree.has("package.json") ? otherImage("node").build : image.build;
    return {
      from: "build",
      stages: [
        {
          from: base,
          name: "build",
          phase: "build",
          lines: [...buildStage(), "COPY . ./", ...own.map((command) => run(command)), run(TAKE_SITE_OR_ALL)],
        },
      ],
      copies: [`--from=build --chown=${APPLICATION_USER} /site /srv`],
    };
  }
  const folder = tree.has("index.html")
    ? "."
    : ["public", "dist"].find((name) => tree.has(`${name}/index.html`));
  if (folder === undefined) {
    throw new PlanError("DEPENDENCY_MANIFEST_MISSING", { name: "index.html" });
  }
  return { from: "repository", stages: [], copies: [`--chown=${APPLICATION_USER} ${folder} /srv`] };
}

const TAKE_SITE_OR_ALL = `if [ -f index.html ]; then cp -R . /site && exit 0; fi; ${TAKE_SITE}`;
