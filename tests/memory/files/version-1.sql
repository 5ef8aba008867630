-- The tables of version 1 with one session; {schema} is replaced by a name.
CREATE SCHEMA {schema};
SET search_path TO {schema};
CREATE TABLE sessions (
            key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE,
            updated DOUBLE PRECISION NOT NULL, directory TEXT, meta TEXT NOT NULL, stamp TEXT NOT NULL,
            token BIGINT NOT NULL DEFAULT 0, holder TEXT NOT NULL DEFAULT '',
            until DOUBLE PRECISION NOT NULL DEFAULT 0
        );
CREATE INDEX sessions_updated ON sessions (updated);
CREATE TABLE records (
            key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session BIGINT NOT NULL,
            version INTEGER NOT NULL, record TEXT NOT NULL,
            number BIGINT, role TEXT, timestamp DOUBLE PRECISION, words TSVECTOR
        );
CREATE INDEX records_session ON records (session, key);
CREATE INDEX records_words ON records USING gin (words);
CREATE TABLE checkpoints (
            key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL,
            saved DOUBLE PRECISION NOT NULL, data TEXT NOT NULL
        );
CREATE INDEX checkpoints_name ON checkpoints (name, key);
CREATE TABLE version (version INTEGER NOT NULL);
INSERT INTO version VALUES (1);
INSERT INTO sessions (id, updated, directory, meta, stamp) VALUES ('20261116_145111_d65244e9bbb83c14f40d705678fbfe0e', 1794840672.1008964, NULL, '{"id":"20261116_145111_d65244e9bbb83c14f40d705678fbfe0e","title":"What is the capital of France?","created":1794840671.9976633,"updated":1794840672.1008964,"version":1,"sequence":1,"messages":2,"turns":1,"cost":0.0}', '623781df38f17237');
INSERT INTO records (session, version, record, number, role, timestamp, words) VALUES (1, 1, '{"type":"message","message":{"role":"user","content":[{"type":"text","text":"What is the capital of France?"}],"timestamp":1794840672.1001923},"number":0}', 0, 'user', 1794840672.1001923, '''capital'':4 ''france'':6 ''is'':2 ''of'':5 ''the'':3 ''what'':1');
INSERT INTO records (session, version, record, number, role, timestamp, words) VALUES (1, 1, '{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"Paris, since 987."}],"provider":"","model":"test:m","stop_reason":"stop","usage":{},"cost":null,"error_message":null,"error_kind":null,"timestamp":1794840672.1002104},"number":1}', 1, 'assistant', 1794840672.1002104, '''987'':3 ''paris'':1 ''since'':2');
INSERT INTO records (session, version, record, number, role, timestamp, words) VALUES (1, 1, '{"type":"state","state":{"asked":1}}', NULL, NULL, NULL, NULL);
RESET search_path;
