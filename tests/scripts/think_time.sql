-- A user who thinks before each request: exponential times, cut at five times their mean.
\set think random_exponential(1, 2000, 5.0)
\sleep :think us
INSERT INTO tick VALUES (:client_id, :think);
\sleep 1ms
\sleep 0 s
