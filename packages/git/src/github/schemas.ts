import { z } from "zod";
import { bounded, PAGE_SIZE, refName, sha, title, webUrl } from "../json-api.ts";

/** The parts of GitHub's REST API (version 2022-11-28) that are read. */

/** A page: GitHub never returns more than was requested. */
const page = <Item extends z.ZodType>(item: Item) => z.array(item).max(PAGE_SIZE);

export const installationToken = z.object({ token: bounded(4_096).min(1), expires_at: bounded(64) });

export const installation = z.object({
  account: z.object({ login: bounded(255).min(1) }),
  suspended_at: bounded(64).nullish(),
});

export const repository = z.object({
  id: z.int().positive(),
  full_name: bounded(512),
  default_branch: bounded(255),
  private: z.boolean(),
  html_url: webUrl,
});
export type ApiRepository = z.output<typeof repository>;
export const repositories = z.object({ total_count: z.int(), repositories: page(repository) });

/** Of branches and of tags. */
export const refs = page(z.object({ name: refName, commit: z.object({ sha }) }));

export const releases = page(
  z.object({
    id: z.int(),
    tag_name: refName,
    draft: z.boolean(),
    prerelease: z.boolean(),
    published_at: bounded(64).nullish(),
  }),
);

export const commit = z.object({ sha, commit: z.object({ message: title }) });

export const hook = z.object({ id: z.int(), config: z.object({ url: bounded(2_048).optional() }) });
export const hooks = page(hook);
