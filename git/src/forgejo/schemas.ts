import { z } from "zod";

/** The parts of API v1's answers that are read; Gitea and Forgejo give the same. */

const sha = z.string().regex(/^([0-9a-f]{40}|[0-9a-f]{64})$/);

export const user = z.object({ login: z.string() });

export const repository = z.object({
  id: z.int().positive(),
  full_name: z.string(),
  default_branch: z.string(),
  private: z.boolean(),
  html_url: z.string().optional(),
  clone_url: z.string(),
});
export type ApiRepository = z.output<typeof repository>;

export const branches = z.array(z.object({ name: z.string(), commit: z.object({ id: sha }) }));
export const tags = z.array(z.object({ name: z.string(), commit: z.object({ sha }) }));

export const releases = z.array(
  z.object({
    id: z.int(),
    tag_name: z.string(),
    draft: z.boolean(),
    prerelease: z.boolean(),
    published_at: z.string().nullish(),
  }),
);

export const commits = z.array(z.object({ sha, commit: z.object({ message: z.string() }) }));

export const hook = z.object({ id: z.int(), config: z.record(z.string(), z.string()).nullish() });
export const hooks = z.array(hook);
