-- Writes a line for each table that has rows of its own, except those of extensions. A line ends where a name might have
-- a control character, so these are replaced.

\o __CONTENTS__
SELECT format('SELECT %L || chr(9) || count(*) FROM %I.%I',
  regexp_replace(quote_ident(n.nspname) || '.' || quote_ident(c.relname), '[[:cntrl:]]', '?', 'g'), n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e') \gexec
\o
