import { z } from "zod";
import { bounded, PAGE_SIZE, refName, sha, title, webUrl } from "../json-api.ts";

/** The parts of API v1's answers that are read; Gitea and Forgejo give the same. */

/** A page: a server that returns more than was requested is no Git server. Gitea's branches of an empty repository are null. */
const page = <Item extends z.ZodType>(item: Item) =>
  z
    .array(item)
    .max(PAGE_SIZE)
    .nullable()
    .transform((items) => items ?? []);

export const user = z.object({ login: bounded(255) });

export const repository = z.object({
  id: z.int().positive(),
  full_name: bounded(512),
  default_branch: bounded(255),
  private: z.boolean(),
  html_url: webUrl,
});
export type ApiRepository = z.output<typeof repository>;
export const repositories = page(repository);

export const branches = page(z.object({ name: refName, commit: z.object({ id: sha }) }));
export const tags = page(z.object({ name: refName, commit: z.object({ sha }) }));

export const releases = page(
  z.object({
    id: z.int(),
    tag_name: refName,
    draft: z.boolean(),
    prerelease: z.boolean(),
    published_at: bounded(64).nullish(),
  }),
);

export const commits = page(z.object({ sha, commit: z.object({ message: title }) }));

export const hook = z.object({
  id: z.int(),
  config: z.object({ url: bounded(2_048).optional() }).nullish(),
});
export const hooks = page(hook);
