-- Each answer names the next question.
\set first random(0, 100)
BEGIN;
SELECT next AS item, visits FROM chain WHERE id = :first \gset
SELECT next AS item FROM chain WHERE id = :item \gset second_
SELECT next + :visits * 0 AS "item" FROM chain WHERE id = :second_item
\gset third_
UPDATE chain SET visits = visits + 1 WHERE id IN (:first, :item, :second_item, :third_item);
\if :third_item > 50 or :third_item = :first
INSERT INTO step VALUES (:client_id, :first, :third_item, 'far');
\else
INSERT INTO step VALUES (:client_id, :first, :third_item, 'near');
\endif
COMMIT;
