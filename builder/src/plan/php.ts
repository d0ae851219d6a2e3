import { type Context, chooseStart, type Planned } from "./context.ts";
import { buildStage, imageLines, run } from "./dockerfile.ts";
import { PlanError } from "./input.ts";

const COMPOSER = { id: "composer", target: "/cache/composer" };

/** A PHP application behind the Apache of its image, which listens on the port in `PORT`. */
export function planPhp(context: Context): Planned {
  const { tree, image, port, commands, detected } = context;
  const hasComposer = tree.has("composer.json");
  if (commands.preBuild === undefined && hasComposer && !tree.has("composer.lock")) {
    throw new PlanError("DEPENDENCY_LOCKFILE_REQUIRED", { name: "composer.lock" });
  }
  const folder = ["public", "web"].find((name) => tree.has(`${name}/index.php`));
  if (folder === undefined && !tree.has("index.php") && commands.start === undefined) {
    throw new PlanError("DEPENDENCY_MANIFEST_MISSING", { name: "index.php" });
  }
  const root = folder === undefined ? "/app" : `/app/${folder}`;
  detected(`${folder === undefined ? "The root" : folder} is what the web server shows.`);
  // The extensions are those of the image that runs, not of the one that installs.
  const install =
    "composer install --no-dev --no-interaction --no-progress --prefer-dist --optimize-autoloader --ignore-platform-reqs";
  const needsAll = commands.preBuild !== undefined || hasComposer;
  const command = commands.preBuild ?? (hasComposer ? install : undefined);
  const start = chooseStart(context, () => ["apache2-foreground"]);
  const image2 = imageLines({ from: "build", env: { APACHE_DOCUMENT_ROOT: root }, port, start });
  return {
    stages: [
      {
        from: image.build,
        name: "dependencies",
        phase: "install",
        lines: [
          ...buildStage({ COMPOSER_CACHE_DIR: COMPOSER.target, COMPOSER_ALLOW_SUPERUSER: "1" }),
          ...(needsAll ? ["COPY . ./"] : []),
          ...(command === undefined ? [] : [run(command, [COMPOSER])]),
        ],
      },
      {
        from: "dependencies",
        name: "build",
        phase: "build",
        lines: [
          ...(needsAll ? [] : ["COPY . ./"]),
          ...(commands.build === undefined ? [] : [run(commands.build, [COMPOSER])]),
        ],
      },
      { from: image.run, phase: "package", lines: ["USER 0:0", APACHE, ...image2] },
    ],
    start,
  };
}

/** Apache reads `${…}` of its environment when it starts. */
const APACHE = run(
  [
    `sed -i 's/^Listen 80$/Listen \${PORT}/' /etc/apache2/ports.conf`,
    `sed -i 's/:80>/:\${PORT}>/' /etc/apache2/sites-available/000-default.conf`,
    `sed -i 's#/var/www/html#\${APACHE_DOCUMENT_ROOT}#g' /etc/apache2/sites-available/*.conf`,
    "sed -i 's#/var/www/#/app/#g' /etc/apache2/apache2.conf /etc/apache2/conf-available/*.conf",
    "a2enmod rewrite",
  ].join(" && "),
);
