import { homedir } from "node:os";
import { join } from "node:path";

/** Servers and credentials by the name of their profile, as the file has them. */
export interface Profile {
  readonly url: string;
  readonly apiKey: string;
}
export interface ProfileFile {
  readonly current: string;
  readonly profiles: Readonly<Record<string, Profile>>;
}

export interface Settings {
  readonly file: string;
  readonly profile: string;
  readonly url: string | undefined;
  readonly apiKey: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Where profiles are: https://specifications.freedesktop.org/basedir-spec/latest/ . Pure. */
export function profilePath({ XDG_CONFIG_HOME, HOME }: Environment): string {
  // A relative folder is ignored, as the specification demands.
  const folder = XDG_CONFIG_HOME?.startsWith("/") ? XDG_CONFIG_HOME : join(HOME ?? homedir(), ".config");
  return join(folder, "slipway", "profiles.json");
}

/** What holds for a call: options, then variables, then the profile. Pure. */
export function resolveSettings(
  file: ProfileFile | undefined,
  options: { profile?: string; url?: string },
  environment: Environment,
): Settings {
  const profile = options.profile ?? set(environment.SLIPWAY_PROFILE) ?? file?.current ?? "default";
  const stored = file?.profiles[profile];
  return {
    file: profilePath(environment),
    profile,
    url: options.url ?? set(environment.SLIPWAY_URL) ?? stored?.url,
    apiKey: set(environment.SLIPWAY_API_KEY) ?? stored?.apiKey,
  };
}

/** A variable that is empty is none. */
const set = (value: string | undefined): string | undefined => (value === "" ? undefined : value);
