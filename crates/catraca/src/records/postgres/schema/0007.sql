-- Finds the namespaces that exist without reading every subject.
CREATE INDEX subjects_by_namespace ON catraca.subjects (namespace);
