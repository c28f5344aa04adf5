-- Public views of the evaluation "rollout" on the tables of evaluations (docs/schema.md). What its answers hold: records/earlier_records.py.
CREATE OR REPLACE VIEW ingest.newest_flow AS
    SELECT run_id, evaluation, key, place, facts->>'iteration' AS iteration, facts->>'way' AS way, measured_at, epoch, step, checkpoint, facts
    FROM ingest.newest_evaluations WHERE evaluation = 'rollout';
CREATE OR REPLACE VIEW flow AS
    SELECT run_id, iteration, way, measured_at, epoch, step, checkpoint, facts->>'engine' AS engine,
           TRY_CAST(facts->>'cores' AS INTEGER) AS cores, TRY_CAST(facts->'tile' AS BIGINT[]) AS tile,
           TRY_CAST(facts->>'overlap' AS BIGINT) AS overlap, facts->>'blend' AS blend, TRY_CAST(facts->>'tiles' AS BIGINT) AS tiles,
           TRY_CAST(facts->'grid' AS BIGINT[]) AS grid, TRY_CAST(facts->>'reynolds' AS DOUBLE) AS reynolds,
           TRY_CAST(facts->>'trajectory' AS BIGINT) AS trajectory, TRY_CAST(facts->>'start' AS BIGINT) AS start,
           TRY_CAST(facts->>'steps' AS BIGINT) AS steps, TRY_CAST(facts->>'is_usual' AS BOOLEAN) AS is_usual,
           TRY_CAST(facts->>'solver_steps' AS BIGINT) AS solver_steps, coalesce(file, '') AS frames, facts->>'film' AS film,
           TRY_CAST(facts->>'obstacle_width' AS DOUBLE) AS obstacle_width, facts->>'replay' AS replay
    FROM ingest.newest_flow LEFT JOIN (
        SELECT run_id, evaluation, key, place, file FROM ingest.evaluation_arrays WHERE name = 'frames'
    ) USING (run_id, evaluation, key, place);
CREATE OR REPLACE VIEW flow_scores AS
    SELECT run_id, iteration, way, score, value, coalesce(baselines['reference'], CAST('NaN' AS DOUBLE)) AS reference,
           coalesce(baselines['replay'], CAST('NaN' AS DOUBLE)) AS replay
    FROM ingest.newest_flow JOIN ingest.evaluation_scores USING (run_id, evaluation, key, place);
CREATE OR REPLACE VIEW flow_steps AS
    SELECT run_id, iteration, way, score, TRY_CAST(unnest(x) AS BIGINT) AS step,
           unnest(list_filter(series, lambda s: s.name = 'prediction')[1]."values") AS value,
           unnest(list_filter(series, lambda s: s.name = 'persistence')[1]."values") AS persistence,
           unnest(list_filter(series, lambda s: s.name = 'truth')[1]."values") AS truth,
           unnest(list_filter(series, lambda s: s.name = 'replay')[1]."values") AS replay
    FROM (
        SELECT run_id, f.iteration, f.way, c.curve AS score, c.x, c.series
        FROM ingest.newest_flow f JOIN ingest.evaluation_curves c USING (run_id, evaluation, key, place) WHERE c.curve <> 'stages'
    );
CREATE OR REPLACE VIEW flow_stages AS
    SELECT run_id, iteration, way, unnest(TRY_CAST(facts->'names' AS VARCHAR[])) AS stage, TRY_CAST(unnest(x) AS BIGINT) AS number,
           unnest(list_filter(series, lambda s: s.name = 'seconds')[1]."values") AS seconds,
           TRY_CAST(unnest(list_filter(series, lambda s: s.name = 'times')[1]."values") AS BIGINT) AS times,
           unnest(list_filter(series, lambda s: s.name = 'median_s')[1]."values") AS median_s
    FROM (
        SELECT run_id, f.iteration, f.way, c.facts, c.x, c.series
        FROM ingest.newest_flow f JOIN ingest.evaluation_curves c USING (run_id, evaluation, key, place) WHERE c.curve = 'stages'
    );
