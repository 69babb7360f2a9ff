"""Export of a model folder: conversion to the fastest runtime of a machine, comparison of answers, timing, and their
record."""
