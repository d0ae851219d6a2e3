import { z } from "zod";

/** The parts of GitHub's REST API (version 2022-11-28) that are read. */

const sha = z.string().regex(/^([0-9a-f]{40}|[0-9a-f]{64})$/);

export const installationToken = z.object({ token: z.string().min(1), expires_at: z.string() });

export const installation = z.object({
  account: z.object({ login: z.string().min(1) }),
  suspended_at: z.string().nullish(),
});

export const repository = z.object({
  id: z.int().positive(),
  full_name: z.string(),
  default_branch: z.string(),
  private: z.boolean(),
  html_url: z.string().optional(),
});
export type ApiRepository = z.output<typeof repository>;
export const repositories = z.object({ total_count: z.int(), repositories: z.array(repository) });

/** Of branches and of tags. */
export const refs = z.array(z.object({ name: z.string(), commit: z.object({ sha }) }));

export const releases = z.array(
  z.object({
    id: z.int(),
    tag_name: z.string(),
    draft: z.boolean(),
    prerelease: z.boolean(),
    published_at: z.string().nullish(),
  }),
);

export const commit = z.object({ sha, commit: z.object({ message: z.string() }) });

export const hook = z.object({ id: z.int(), config: z.object({ url: z.string().optional() }) });
export const hooks = z.array(hook);
