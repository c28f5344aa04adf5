-- Public views of the evaluation "physics" on the tables of evaluations (docs/schema.md). What its answers hold: records/earlier_records.py.
CREATE OR REPLACE VIEW physics AS
    SELECT run_id, measured_at, epoch, step, checkpoint, TRY_CAST(facts->>'showers' AS BIGINT) AS showers,
           TRY_CAST(facts->'grid' AS BIGINT[]) AS grid, score, value, error, floor, floor_error
    FROM ingest.newest_evaluations JOIN ingest.evaluation_scores USING (run_id, evaluation, key, place)
    WHERE evaluation = 'physics';
CREATE OR REPLACE VIEW physics_curves AS
    SELECT run_id, epoch, step, curve,
           TRY_CAST(limits[1] AS DOUBLE) AS energy_low, TRY_CAST(limits[2] AS DOUBLE) AS energy_high,
           TRY_CAST(limits[3] AS DOUBLE) AS angle_low, TRY_CAST(limits[4] AS DOUBLE) AS angle_high,
           x, y, own."values" AS real, own.error AS real_error, other."values" AS generated, other.error AS generated_error
    FROM (
        SELECT run_id, e.epoch, e.step, c.curve, c.x, c.y,
               json_extract_string(c.facts, ['$.energy[0]', '$.energy[1]', '$.angle[0]', '$.angle[1]']) AS limits,
               list_filter(c.series, lambda s: s.name = 'real')[1] AS own, list_filter(c.series, lambda s: s.name = 'generated')[1] AS other
        FROM ingest.newest_evaluations e JOIN ingest.evaluation_curves c USING (run_id, evaluation, key, place)
        WHERE evaluation = 'physics'
    );
CREATE OR REPLACE VIEW physics_showers AS
    SELECT run_id, e.epoch, e.step, TRY_CAST(a.facts->>'pair' AS BIGINT) AS pair, a.name AS side,
           TRY_CAST(a.facts->>'energy_gev' AS DOUBLE) AS energy_gev, TRY_CAST(a.facts->>'angle' AS DOUBLE) AS angle,
           grid, a.places AS cells, a.value AS mev, TRY_CAST(a.facts->>'share' AS DOUBLE) AS share
    FROM (SELECT *, TRY_CAST(facts->'grid' AS BIGINT[]) AS grid FROM ingest.newest_evaluations WHERE evaluation = 'physics') e
    JOIN ingest.evaluation_arrays a USING (run_id, evaluation, key, place)
    -- No page makes room for more, and none draws a cell beyond its grid.
    WHERE a.name IN ('real', 'generated') AND len(grid) = 3 AND list_min(grid) >= 1 AND list_product(grid) <= 10000000
        AND coalesce(list_max(a.places), 0) < list_product(grid);
