import { openDatabase } from "./connections.js";

const database = openDatabase();
// It runs before every deployment, while instances of the version before serve.
await database.query(`
  create table if not exists orders (
    id bigint generated always as identity primary key,
    item text not null,
    status text not null default 'waiting',
    handled_by text
  )`);
console.log("the table orders exists");
await database.end();
