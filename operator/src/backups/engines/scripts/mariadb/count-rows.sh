# shellcheck shell=sh
# Counts the rows of each table of the database, in the same format as dump.sh. __CLIENT__ is the client with its login.

cat >__OWN__.sql <<'SQL'
SELECT CONCAT('SELECT CONCAT(', QUOTE(CONCAT(CHAR(96), REPLACE(TABLE_NAME, CHAR(96), CONCAT(CHAR(96), CHAR(96))), CHAR(96))),
  ', CHAR(9), COUNT(*)) FROM ', CHAR(96), REPLACE(TABLE_NAME, CHAR(96), CONCAT(CHAR(96), CHAR(96))), CHAR(96), ';')
FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE';
SQL
__CLIENT__ --skip-column-names --batch --raw <__OWN__.sql >__OWN__.each || return
__CLIENT__ --skip-column-names --batch --raw <__OWN__.each >__CONTENTS__ || return
