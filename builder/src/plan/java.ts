import { type Context, chooseStart, type Planned } from "./context.ts";
import { buildStage, type Cache, imageLines, run } from "./dockerfile.ts";
import { PlanError, type Tree } from "./input.ts";

const MAVEN: Cache = { id: "maven", target: "/root/.m2" };
const GRADLE: Cache = { id: "gradle", target: "/cache/gradle" };

/** Takes the one jar that can be run, or says on stderr that there is none. */
const TAKE_JAR = [
  "mkdir -p /out",
  "set -- $(ls target/*.jar build/libs/*.jar 2>/dev/null | grep -v -e -sources.jar -e -javadoc.jar -e -plain.jar -e -tests.jar -e /original-)",
  '[ $# -eq 1 ] || { echo "slipway: expected one runnable jar, found $#: $*" >&2; exit 81; }',
  'cp "$1" /out/application.jar',
].join("; ");

/** A Java application, packaged as one jar by Maven or Gradle. */
export function planJava(context: Context): Planned {
  const { tree, image, port, commands, detected } = context;
  const tool = buildTool(tree, commands.build);
  detected(`${tool.manifest} is what it is built from.`);
  // A start command may start anything that the build made.
  const own = commands.start !== undefined;
  const isSpring = /spring-boot/.test(tree.text(tool.manifest));
  const java = "exec java -XX:MaxRAMPercentage=75 -jar application.jar";
  const start = chooseStart(context, () =>
    isSpring ? `SERVER_PORT="\${SERVER_PORT:-$PORT}" ${java}` : java,
  );
  const caches = [tool.cache];
  return {
    stages: [
      {
        from: image.build,
        name: "dependencies",
        phase: "install",
        lines: [
          ...buildStage({ GRADLE_USER_HOME: GRADLE.target }),
          "COPY . ./",
          ...(commands.preBuild === undefined ? [] : [run(commands.preBuild, caches)]),
        ],
      },
      {
        from: "dependencies",
        name: "build",
        phase: "build",
        lines: [run(commands.build ?? tool.command, caches)],
      },
      ...(own ? [] : [{ from: "build", name: "jar", phase: "package" as const, lines: [run(TAKE_JAR)] }]),
      {
        from: image.run,
        phase: "package",
        lines: imageLines({
          from: own ? "build" : "jar",
          copies: own ? { "/app": "./" } : { "/out/": "./" },
          port,
          start,
        }),
      },
    ],
    start,
  };
}

function buildTool(
  tree: Tree,
  build: string | undefined,
): { manifest: string; command: string; cache: Cache } {
  if (tree.has("pom.xml")) {
    const maven = tree.has("mvnw") ? "sh ./mvnw" : "mvn";
    return { manifest: "pom.xml", command: `${maven} -B -ntp package -DskipTests`, cache: MAVEN };
  }
  const gradle = tree.first("build.gradle", "build.gradle.kts");
  if (gradle === undefined) {
    throw new PlanError("DEPENDENCY_MANIFEST_MISSING", { name: "pom.xml" });
  }
  if (!tree.has("gradlew") && build === undefined) {
    throw new PlanError("DEPENDENCY_MANIFEST_MISSING", { name: "gradlew" });
  }
  return { manifest: gradle, command: "sh ./gradlew --no-daemon assemble", cache: GRADLE };
}
