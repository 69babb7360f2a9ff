-- Run once, when the volume is empty.
CREATE DATABASE prefect;
CREATE DATABASE mlflow;
