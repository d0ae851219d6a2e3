import { type Context, chooseStart, type Planned } from "./context.ts";
import { buildStage, imageLines, run } from "./dockerfile.ts";
import { PlanError } from "./input.ts";

const CACHE = { id: "bundler", target: "/cache/bundler" };
/** Gems that link to libraries which the small image lacks. */
const LINKED = /^ {4}(pg|mysql2|rmagick|ruby-vips|charlock_holmes) \(/m;

/** A Ruby application with exactly the gems of its lockfile. */
export function planRuby(context: Context): Planned {
  const { tree, image, port, commands, detected, note } = context;
  if (!tree.has("Gemfile")) {
    throw new PlanError("DEPENDENCY_MANIFEST_MISSING", { name: "Gemfile" });
  }
  if (!tree.has("Gemfile.lock") && commands.preBuild === undefined) {
    throw new PlanError("DEPENDENCY_LOCKFILE_REQUIRED", { name: "Gemfile.lock" });
  }
  const lock = tree.text("Gemfile.lock");
  const isRails = /^ {4}rails \(/m.test(lock) && tree.has("config/application.rb");
  if (isRails) {
    detected("The lockfile and config/application.rb make it a Rails application.");
  }
  const hasAssets = isRails && /^ {4}(sprockets|propshaft) \(/m.test(lock);
  const build =
    commands.build ?? (hasAssets ? "SECRET_KEY_BASE_DUMMY=1 bundle exec rails assets:precompile" : undefined);
  const isLinked = LINKED.test(lock);
  if (isLinked) {
    note("Some gems link to system libraries: the image is made from the larger base image.");
  }
  const bundle = {
    BUNDLE_DEPLOYMENT: "1",
    BUNDLE_FROZEN: "1",
    BUNDLE_PATH: "/app/vendor/bundle",
    BUNDLE_WITHOUT: "development:test",
  };
  const environment = { ...bundle, RAILS_ENV: "production", RACK_ENV: "production" };
  const start = chooseStart(context, () => {
    if (isRails) {
      return 'exec bundle exec rails server -b 0.0.0.0 -p "$PORT"';
    }
    if (!tree.has("config.ru")) {
      const file = tree.first("app.rb", "main.rb", "server.rb");
      return file === undefined ? undefined : `bundle exec ruby ${file}`;
    }
    return /^ {4}puma \(/m.test(lock)
      ? 'exec bundle exec puma -b "tcp://0.0.0.0:$PORT"'
      : 'exec bundle exec rackup -o 0.0.0.0 -p "$PORT"';
  });
  return {
    stages: [
      {
        from: image.build,
        name: "dependencies",
        phase: "install",
        lines: [
          ...buildStage({ ...environment, BUNDLE_USER_CACHE: CACHE.target }),
          // The Gemfile may name files and gems of the repository.
          "COPY . ./",
          run(commands.preBuild ?? "bundle install --jobs 2", [CACHE]),
        ],
      },
      {
        from: "dependencies",
        name: "build",
        phase: "build",
        lines: build === undefined ? [] : [run(build, [CACHE])],
      },
      {
        from: isLinked ? image.build : image.run,
        phase: "package",
        lines: imageLines({
          from: "build",
          env: { ...environment, RAILS_LOG_TO_STDOUT: "1", RAILS_SERVE_STATIC_FILES: "1" },
          port,
          start,
        }),
      },
    ],
    start,
  };
}
