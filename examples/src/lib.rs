//! Shared parts of the example hosts.
