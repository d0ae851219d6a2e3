import { readFileSync } from "node:fs";
import { allowedHosts, GitError, githubAppConfig, githubEnvironment, mountedGithubApp } from "@slipway/git";
import { z } from "zod";
import { Failure } from "../../errors/failure.ts";
import { connectGithub } from "../../git/connect.ts";
import { type GitServers, gitServers } from "../../git/servers.ts";
import { type AdminContext, AdminError } from "../context.ts";
import { requireOrganization } from "../credentials.ts";

/** Connects an organization with the account of GitHub in which the platform's App has this installation. */
export async function connectGithubAccount(
  context: AdminContext,
  { organization, installation }: { organization: string; installation: string },
): Promise<{ organization_id: string; connection_id: string; account: string }> {
  if (!/^[0-9]{1,20}$/.test(installation)) {
    throw new AdminError(`an installation is a number, not ${installation}`);
  }
  await requireOrganization(context, organization);
  const git = openGitServers(context.env);
  if (!git.hasGithubApp) {
    throw new AdminError("this platform has no GitHub App: set git.github of the chart");
  }
  const catalog = { current: await context.catalog() };
  const services = { kube: await context.kube(), git, catalog, now: () => new Date() };
  try {
    const { metadata, spec } = await connectGithub(installation, organization, services);
    return { organization_id: organization, connection_id: metadata.name, account: spec.account ?? "" };
  } catch (error) {
    if (error instanceof GitError || error instanceof Failure) {
      throw new AdminError(error.message);
    }
    throw error;
  } finally {
    await git.close();
  }
}

const environment = z.object({
  SLIPWAY_GIT_ALLOWED_HOSTS: allowedHosts,
  SLIPWAY_GIT_CA_FILE: z.string().min(1).optional(),
  ...githubEnvironment,
});

/** @throws AdminError when a variable is wrong */
function openGitServers(env: AdminContext["env"]): GitServers {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const { data, error } = environment.safeParse(given);
  if (error) {
    throw new AdminError(z.prettifyError(error));
  }
  return gitServers({
    allowedHosts: data.SLIPWAY_GIT_ALLOWED_HOSTS,
    ca: data.SLIPWAY_GIT_CA_FILE === undefined ? undefined : readFileSync(data.SLIPWAY_GIT_CA_FILE, "utf8"),
    githubApp: mountedGithubApp(githubAppConfig(data)),
  });
}
