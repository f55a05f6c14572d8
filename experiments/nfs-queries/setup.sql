-- An index in another order than the accounts lie in, and a table as long as theirs to join them with.
CREATE INDEX accounts_scattered ON pgbench_accounts (hashint4(aid));
CREATE TABLE owners AS SELECT aid AS owner, hashint4(aid) & 1023 AS region FROM pgbench_accounts;
ANALYZE pgbench_accounts;
ANALYZE owners;
