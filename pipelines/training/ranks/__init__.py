"""The processes that compute a job: entry points, collective operations, and errors passed to the launcher."""
