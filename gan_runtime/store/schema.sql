-- Tables hold what the journals say. Those of records, and views with the columns of one of them, follow from the records
-- (records/record.py, store/record_tables.py); here are the others. The views in schema main are the public, stable SQL (docs/schema.md).
-- No primary keys and no indexes: rows come exactly once because they are committed together with their journal offset.
CREATE TABLE IF NOT EXISTS ingest.version (schema_version INTEGER);
CREATE TABLE IF NOT EXISTS ingest.offsets (run_id VARCHAR, journal VARCHAR, next_byte BIGINT);
-- Of each run and metric the last row of scalars: what a run came to is read without the rest of them.
CREATE TABLE IF NOT EXISTS ingest.last_scalars (
    run_id VARCHAR, attempt INTEGER, step BIGINT, epoch BIGINT, metric VARCHAR, value DOUBLE, wall_s DOUBLE
);
-- Of each long run its scalars in blocks of steps (store/scalar_blocks.py). `numbers`: finite ones; step and mean are their means.
CREATE TABLE IF NOT EXISTS ingest.scalar_blocks (
    run_id VARCHAR, attempt INTEGER, metric VARCHAR, block BIGINT, epoch BIGINT, first_step BIGINT, last_step BIGINT, numbers BIGINT,
    step DOUBLE, low DOUBLE, mean DOUBLE, high DOUBLE
);

-- Background jobs that have a folder, as it says (store/folder_watcher.py).
CREATE TABLE IF NOT EXISTS ingest.jobs (
    job_id VARCHAR, kind VARCHAR, state VARCHAR, asked_by VARCHAR, run_id VARCHAR, asked_at TIMESTAMPTZ, started_at TIMESTAMPTZ,
    ended_at TIMESTAMPTZ, message VARCHAR
);

-- Folders that cannot be read as runs, by name, and why. Nothing else of them is stored.
CREATE TABLE IF NOT EXISTS ingest.set_aside (run_id VARCHAR, reason VARCHAR);

-- The state of each run: no clock has a part in it, as those of trainer and owner may disagree (journal.standing).
CREATE OR REPLACE VIEW ingest.newest AS
SELECT run_id, unnest(newest), started_at
FROM (
    SELECT run_id,
           arg_max(
               {'attempt': attempt, 'stage': stage, 'source': source, 'place': place,
                'status': status, 'reason': reason, 'code': code, 'queue_rank': queue_rank, 'changed_at': changed_at},
               (attempt, stage, source, place)
           ) AS newest,
           min(changed_at) FILTER (status = 'starting') AS started_at
    FROM ingest.statuses GROUP BY run_id
);

-- Which number of each run has a role; of several with the same role the one that its workload declares first.
CREATE OR REPLACE VIEW ingest.roles AS
SELECT run_id, m.metric, m.role
FROM ingest.created c JOIN metrics m ON m.workload = c.spec->>'workload' WHERE m.role NOT IN ('', 'loss')
QUALIFY row_number() OVER (PARTITION BY run_id, m.role ORDER BY m.place) = 1;

CREATE OR REPLACE VIEW set_aside AS SELECT run_id, reason FROM ingest.set_aside;
CREATE OR REPLACE VIEW runs AS
WITH latest AS (
    SELECT run_id, status, reason AS note, code, queue_rank, changed_at, started_at, attempt FROM ingest.newest
), changed AS (
    SELECT run_id, arg_max(spec, attempt) AS spec FROM ingest.changes GROUP BY run_id
), named AS (
    SELECT run_id, arg_max(name, place) AS name FROM ingest.names GROUP BY run_id
), marked AS (
    SELECT run_id,
           arg_max(tags, place) FILTER (tags IS NOT NULL) AS tags,
           arg_max(remark, place) FILTER (remark IS NOT NULL) AS remark,
           arg_max(pinned, place) FILTER (pinned IS NOT NULL) AS pinned,
           arg_max(hidden, place) FILTER (hidden IS NOT NULL) AS hidden
    FROM ingest.marks GROUP BY run_id
), hosted AS (
    SELECT run_id, arg_max(facts, attempt) AS host FROM ingest.hosts GROUP BY run_id
), created AS (
    -- Read once: with a ->> for each option 1,000 runs took 111 ms and 62 MB instead of 35 ms and 19 MB.
    SELECT * EXCLUDE (options),
           options[1] AS own_name, options[2] AS workload, options[3] AS dataset, options[4] AS engine, options[5] AS replicas,
           options[6] AS workers, options[7] AS precision, options[8] AS xla, options[9] AS batch_size_global, options[10] AS epochs,
           options[11] AS seed
    FROM (
        SELECT *, json_extract_string(
                   spec, ['$.name', '$.workload', '$.dataset', '$.engine', '$.replicas', '$.workers', '$.precision', '$.xla',
                          '$.batch_size_global', '$.epochs', '$.seed']) AS options
        FROM ingest.created
    )
)
SELECT c.run_id,
       coalesce(named.name, nullif(c.own_name, ''), c.run_id) AS name,
       latest.status,
       c.workload,
       c.dataset,
       c.engine,
       c.accelerator,
       TRY_CAST(c.replicas AS INTEGER) AS replicas,
       coalesce(TRY_CAST(c.workers AS INTEGER), 1) AS workers,
       c.precision,
       c.xla,
       TRY_CAST(c.batch_size_global AS INTEGER) AS batch_size_global,
       TRY_CAST(coalesce(changed.spec->>'epochs', c.epochs) AS INTEGER) AS epochs,
       TRY_CAST(c.seed AS BIGINT) AS seed,
       coalesce(changed.spec, c.spec) AS spec,
       c.created_at,
       latest.started_at,
       CASE WHEN latest.status IN ('finished', 'stopped', 'failed', 'lost') THEN latest.changed_at END AS finished_at,
       latest.attempt,
       hosted.host,
       latest.note,
       latest.queue_rank,
       c.color,
       c.preset,
       c.study->>'study_id' AS study_id,
       c.study->>'variant' AS variant,
       TRY_CAST(c.study->>'repeat' AS INTEGER) AS repeat,
       c.images_per_step,
       coalesce(marked.tags, []) AS tags,
       coalesce(marked.remark, '') AS remark,
       coalesce(marked.pinned, false) AS pinned,
       coalesce(marked.hidden, false) AS hidden,
       latest.code AS reason_code
FROM created c JOIN latest USING (run_id) LEFT JOIN changed USING (run_id) LEFT JOIN named USING (run_id) LEFT JOIN marked USING (run_id)
LEFT JOIN hosted USING (run_id);

-- The newest answer of each key.
CREATE OR REPLACE VIEW ingest.newest_evaluations AS
    SELECT * FROM ingest.evaluations QUALIFY place = max(place) OVER (PARTITION BY run_id, evaluation, key);
CREATE OR REPLACE VIEW evaluations AS
    SELECT run_id, evaluation, key, measured_at, epoch, step, checkpoint, facts, metric_prefix, precedence FROM ingest.newest_evaluations;
CREATE OR REPLACE VIEW evaluation_scores AS
    SELECT run_id, evaluation, key, epoch, step, score, value, error, low, high, floor, floor_error, ceiling, baselines, samples
    FROM ingest.evaluation_scores JOIN ingest.newest_evaluations USING (run_id, evaluation, key, place);
CREATE OR REPLACE VIEW evaluation_curves AS
    SELECT run_id, evaluation, key, epoch, step, curve, number, series.name AS series, x, y, series."values" AS value, series.error AS error,
           facts
    FROM (
        SELECT run_id, evaluation, key, e.epoch, e.step, c.curve, c.number, c.x, c.y, unnest(c.series) AS series, c.facts
        FROM ingest.evaluation_curves c JOIN ingest.newest_evaluations e USING (run_id, evaluation, key, place)
    );
CREATE OR REPLACE VIEW evaluation_arrays AS
    SELECT run_id, evaluation, key, e.epoch, e.step, a.name, a.number, a.file, a.places, a.value, a.facts
    FROM ingest.evaluation_arrays a JOIN ingest.newest_evaluations e USING (run_id, evaluation, key, place);
CREATE OR REPLACE VIEW surfaces AS
    SELECT run_id, e.measured_at AS computed_at, key AS network,
           g.x[1:columns] AS x, g.y[1:len(g.y):greatest(1, columns)] AS y, g.series[1]."values" AS loss,
           TRY_CAST(list_filter(p.series, lambda s: s.name = 'epoch')[1]."values" AS BIGINT[]) AS path_epoch, p.x AS path_x, p.y AS path_y,
           list_filter(p.series, lambda s: s.name = 'loss')[1]."values" AS path_loss,
           TRY_CAST(e.facts->>'share_x' AS DOUBLE) AS share_x, TRY_CAST(e.facts->>'share_y' AS DOUBLE) AS share_y,
           TRY_CAST(e.facts->>'images' AS BIGINT) AS images
    FROM (SELECT * FROM ingest.newest_evaluations WHERE evaluation = 'loss_surface') e
    JOIN (SELECT *, TRY_CAST(facts->>'columns' AS BIGINT) AS columns FROM ingest.evaluation_curves WHERE curve = 'loss') g
        USING (run_id, evaluation, key, place)
    JOIN (SELECT * FROM ingest.evaluation_curves WHERE curve = 'path') p USING (run_id, evaluation, key, place);
-- What is known of a run along its steps: what it has recorded, and the finite scores of evaluations that give numbers of a run, under
-- names of their own (`metric_prefix`). Of several answers that give an epoch the same number, the one of highest precedence counts, then the
-- newest. Training seconds of a checkpoint: of the epochs until then.
CREATE OR REPLACE VIEW ingest.measured_numbers AS
    SELECT run_id, arg_max(step, (precedence, place)) AS step, epoch, metric_prefix || score AS metric,
           arg_max(value, (precedence, place)) AS value,
           arg_max_null(CASE WHEN isfinite(error) THEN error END, (precedence, place)) AS error
    FROM ingest.newest_evaluations JOIN ingest.evaluation_scores USING (run_id, evaluation, key, place)
    WHERE metric_prefix <> '' GROUP BY run_id, epoch, metric_prefix || score
    HAVING isfinite(arg_max(value, (precedence, place)));
CREATE OR REPLACE VIEW numbers AS
    SELECT run_id, step, epoch, metric, value, CAST(NULL AS DOUBLE) AS error, wall_s FROM ingest.scalars
    UNION ALL
    SELECT m.run_id, m.step, m.epoch, metric, value, error, coalesce(wall_s, 0.0)
    FROM ingest.measured_numbers m ASOF LEFT JOIN (
        SELECT run_id, step, sum(seconds) OVER (PARTITION BY run_id ORDER BY step) AS wall_s FROM ingest.epochs
    ) e ON m.run_id = e.run_id AND m.step >= e.step;
CREATE OR REPLACE VIEW jobs AS
    SELECT job_id, kind, state, asked_by, run_id, asked_at, started_at, ended_at, message FROM ingest.jobs;
CREATE OR REPLACE VIEW events AS
    SELECT run_id, attempt, logged_at, level, kind, message FROM ingest.events
    UNION ALL
    SELECT run_id, attempt, ended_at, CASE WHEN state IN ('failed', 'lost') THEN 'error' ELSE 'info' END, 'job',
           job_id || ' is ' || state || ': ' || message
    FROM ingest.jobs LEFT JOIN (SELECT run_id, max(attempt) AS attempt FROM ingest.statuses GROUP BY run_id) USING (run_id)
    WHERE ended_at IS NOT NULL AND (run_id IS NULL OR attempt IS NOT NULL)
    UNION ALL
    SELECT run_id, attempt, changed_at,
           CASE WHEN status IN ('failed', 'lost') THEN 'error' ELSE 'info' END, status, reason
    FROM ingest.statuses;

CREATE OR REPLACE VIEW studies AS
SELECT c.study->>'study_id' AS study_id,
       any_value(c.study->>'title') AS title,
       any_value(c.study->>'question') AS question,
       min(c.created_at) AS created_at,
       count(*) AS runs,
       count(*) FILTER (r.status = 'finished') AS finished,
       count(*) FILTER (r.status = 'queued') AS waiting,
       count(*) FILTER (r.status IN ('starting', 'compiling', 'running')) AS training
FROM ingest.created c JOIN runs r USING (run_id) WHERE c.study IS NOT NULL GROUP BY ALL;

-- What the supervisor asks four times a second: waiting and training runs only.
CREATE OR REPLACE VIEW runs_live AS
SELECT run_id, status, attempt, accelerator, queue_rank
FROM ingest.newest JOIN ingest.created USING (run_id)
WHERE status IN ('queued', 'starting', 'compiling', 'running');
