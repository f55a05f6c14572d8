-- Documents: a number counted up, a tag added to those that have few.
\set id random_zipfian(1, 50, 1.2)
\set tag random(1, 9)
SELECT body ->> 'name' AS name, jsonb_array_length(body -> 'tags') AS tags FROM document WHERE id = :id \gset
UPDATE document
   SET body = jsonb_set(body, '{count}', to_jsonb((body ->> 'count')::int + 1))
 WHERE id = :id AND body @> jsonb_build_object('name', $name$document $name$ || :id);
\if :tags < 5
UPDATE document SET body = jsonb_set(body, '{tags}', body -> 'tags' || to_jsonb(:tag::int)) WHERE id = :id;
\endif
