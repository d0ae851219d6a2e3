import { type Context, chooseStart, isSafeName, type Planned } from "./context.ts";
import { buildStage, type Cache, imageLines, run } from "./dockerfile.ts";
import { PlanError, type Tree } from "./input.ts";

/** Tools that only some projects install with, in an environment apart from the application's. */
const UV = "0.13.9";
const POETRY = "2.5.1";
const PIPENV = "2026.10.3";

const ENVIRONMENT = "/app/.venv";
const TOOLS = "/opt/slipway";
const PIP_CACHE: Cache = { id: "pip", target: "/cache/pip" };
const UV_CACHE: Cache = { id: "uv", target: "/cache/uv" };

interface Install {
  /** What it is installed from. */
  manifests: string[];
  setup?: string;
  /** Undefined when there is nothing to install. */
  command?: string;
  /** The command reads the application itself. */
  needsAll?: true;
}

/** A Python application in a virtual environment inside its folder. */
export function planPython(context: Context): Planned {
  const { tree, image, port, commands, detected } = context;
  const install = chooseInstall(tree);
  if (install.manifests[0] !== undefined) {
    detected(`Dependencies are those of ${install.manifests[0]}.`);
  }
  const command = commands.preBuild ?? install.command;
  const needsAll = commands.preBuild !== undefined || install.needsAll === true;
  const start = chooseStart(context, () => detectStart(context));
  const path = { VIRTUAL_ENV: ENVIRONMENT, PATH: `${ENVIRONMENT}/bin:$PATH` };
  return {
    stages: [
      {
        from: image.build,
        name: "dependencies",
        phase: "install",
        lines: [
          ...buildStage({
            PIP_CACHE_DIR: PIP_CACHE.target,
            PIP_DISABLE_PIP_VERSION_CHECK: "1",
            PIP_ROOT_USER_ACTION: "ignore",
            UV_CACHE_DIR: UV_CACHE.target,
            UV_LINK_MODE: "copy",
            UV_PYTHON_DOWNLOADS: "never",
            UV_PROJECT_ENVIRONMENT: ENVIRONMENT,
            PYTHONDONTWRITEBYTECODE: "1",
            ...path,
          }),
          run(`python3 -m venv ${ENVIRONMENT}`),
          ...(install.setup === undefined || commands.preBuild !== undefined
            ? []
            : [run(install.setup, [PIP_CACHE])]),
          ...(needsAll
            ? ["COPY . ./"]
            : install.manifests.length > 0
              ? [`COPY ${install.manifests.join(" ")} ./`]
              : []),
          ...(command === undefined ? [] : [run(command, [PIP_CACHE, UV_CACHE])]),
        ],
      },
      {
        from: "dependencies",
        name: "build",
        phase: "build",
        lines: [
          ...(needsAll ? [] : ["COPY . ./"]),
          ...(commands.build === undefined ? [] : [run(commands.build, [PIP_CACHE, UV_CACHE])]),
        ],
      },
      {
        from: image.run,
        phase: "package",
        // Logs come line by line, as they are written.
        lines: imageLines({
          from: "build",
          env: { PYTHONUNBUFFERED: "1", PYTHONDONTWRITEBYTECODE: "1", ...path },
          port,
          start,
        }),
      },
    ],
    start,
  };
}

function chooseInstall(tree: Tree): Install {
  if (tree.has("uv.lock")) {
    return {
      manifests: ["uv.lock", "pyproject.toml"],
      setup: tool(`uv==${UV}`),
      command: `${TOOLS}/bin/uv sync --locked --no-dev --no-install-project`,
    };
  }
  if (tree.has("poetry.lock")) {
    return {
      manifests: ["poetry.lock", "pyproject.toml"],
      setup: tool(`poetry==${POETRY}`),
      command: `${TOOLS}/bin/poetry install --only main --no-root --no-interaction`,
    };
  }
  if (tree.has("Pipfile.lock")) {
    return {
      manifests: ["Pipfile.lock", "Pipfile"],
      setup: tool(`pipenv==${PIPENV}`),
      command: `${TOOLS}/bin/pipenv install --deploy --ignore-pipfile`,
    };
  }
  if (tree.has("Pipfile")) {
    throw new PlanError("DEPENDENCY_LOCKFILE_REQUIRED", { name: "Pipfile.lock" });
  }
  if (tree.has("requirements.txt")) {
    // Other files, and the application itself, may be named in it.
    const names = /^\s*(-r|-c|-e|--requirement|--constraint|--editable|\.|file:)/m.test(
      tree.text("requirements.txt"),
    );
    return {
      manifests: ["requirements.txt"],
      command: "pip install -r requirements.txt",
      ...(names ? { needsAll: true } : {}),
    };
  }
  if (
    tree.has("pyproject.toml") &&
    /^\[(project|build-system|tool\.poetry)\]/m.test(tree.text("pyproject.toml"))
  ) {
    return { manifests: ["pyproject.toml"], command: "pip install .", needsAll: true };
  }
  if (tree.has("setup.py")) {
    return { manifests: ["setup.py"], command: "pip install .", needsAll: true };
  }
  return { manifests: [] };
}

const tool = (requirement: string): string =>
  `python3 -m venv ${TOOLS} && ${TOOLS}/bin/pip install ${requirement}`;

/** What the manifests name, as far as that decides on a server. */
function uses(tree: Tree, name: string): boolean {
  const texts = ["requirements.txt", "pyproject.toml", "Pipfile"].map((path) =>
    tree.text(path).toLowerCase(),
  );
  return texts.some((text) => new RegExp(`(^|[\\s"'])${name}([\\s"'=<>~!;,\\[]|$)`, "m").test(text));
}

function detectStart(context: Context): string | undefined {
  const { tree, detected } = context;
  const file = tree.first("main.py", "app.py", "server.py", "wsgi.py", "src/main.py");
  const module = file?.replace(/\.py$/, "").replaceAll("/", ".");
  if (tree.has("manage.py")) {
    detected("manage.py makes it a Django project.");
    return startDjango(context);
  }
  if (module !== undefined && uses(tree, "uvicorn") && uses(tree, "(fastapi|starlette)")) {
    return `exec uvicorn ${module}:app --host 0.0.0.0 --port "$PORT"`;
  }
  if (module !== undefined && uses(tree, "gunicorn") && uses(tree, "flask")) {
    return `exec gunicorn --bind "0.0.0.0:$PORT" ${module}:app`;
  }
  return file === undefined ? undefined : `python3 ${file}`;
}

function startDjango({ tree, note }: Context): string {
  const settings = tree.matching((path) => /^[^/]+\/wsgi\.py$/.test(path))[0]?.split("/")[0];
  if (uses(tree, "gunicorn") && settings !== undefined && isSafeName(settings)) {
    return `exec gunicorn --bind "0.0.0.0:$PORT" ${settings}.wsgi`;
  }
  note(
    "Django's development server serves the application. Add gunicorn to the dependencies for production.",
  );
  return 'exec python3 manage.py runserver --noreload "0.0.0.0:$PORT"';
}
