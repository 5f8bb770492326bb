//! Fuzz targets: thin wrappers over plain functions.
