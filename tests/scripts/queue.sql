-- Workers that take the heaviest job nobody else has taken.
BEGIN;
SELECT coalesce(max(id), 0) AS id, coalesce(max(weight), -1) AS weight
  FROM (SELECT id, weight FROM job ORDER BY weight DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED) AS first \gset job_
\if :job_id > 0
DELETE FROM job WHERE id = :job_id;
INSERT INTO done VALUES (:job_id, :job_weight, :client_id);
\endif
COMMIT;
