"""A model folder in the form that a machine computes fastest: conversion, comparison, timing, and the record of all three."""
