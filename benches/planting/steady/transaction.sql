\set one random(1, 100000)
\set other random(1, 100000)
\set third random(1, 100000)
BEGIN;
UPDATE kept SET value = value + 1 WHERE id = :one;
SELECT value FROM kept WHERE id = :other;
SELECT value FROM kept WHERE id = :third;
UPDATE kept SET value = value - 1 WHERE id = :other;
END;
