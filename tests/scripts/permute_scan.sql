-- Every account once before any is seen again, in an order that no cache foresees: a counter of the client, permuted.
\set turn :turn + 1
\set aid 1 + permute(:turn * 4 + :client_id, 2000, 271828)
UPDATE account SET balance = balance + :turn WHERE aid = :aid;
