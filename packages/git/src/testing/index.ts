/** What tests of other rooms use. */
export { type GithubServer, startGithub } from "./github-server.ts";
